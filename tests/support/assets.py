"""Assets in Airflow's database, which Airflow 2 calls datasets."""

from __future__ import annotations

from support.versions import AIRFLOW


def event_of(run_id):
    """Return the only asset event of a run."""
    from airflow.utils.session import create_session
    from sqlalchemy import select

    event, *_ = _models()
    with create_session() as session:
        return session.scalars(select(event).filter_by(source_run_id=run_id)).one()


def scheduled_by_writing(dag_id):
    """Return the DAGs that are scheduled by the only asset that a DAG has written."""
    from airflow.utils.session import create_session
    from sqlalchemy import select

    event, reference, column = _models()
    with create_session() as session:
        (asset,) = session.scalars(select(getattr(event, column)).filter_by(source_dag_id=dag_id)).all()
        return session.scalars(select(reference.dag_id).filter_by(**{column: asset})).all()


def read_by(dag_id):
    """Return pairs of a DAG's task and the URI of an asset that it reads."""
    from airflow.utils.session import create_session
    from sqlalchemy import select

    if AIRFLOW < (3, 1):
        from airflow.models.serialized_dag import SerializedDagModel

        stored = SerializedDagModel.get(dag_id).dag
        return [(task.task_id, inlet.uri) for task in stored.tasks for inlet in task.inlets]
    from airflow.models.asset import AssetModel, TaskInletAssetReference

    asset = AssetModel.id == TaskInletAssetReference.asset_id
    with create_session() as session:
        found = select(TaskInletAssetReference.task_id, AssetModel.uri).join(AssetModel, asset)
        return [tuple(row) for row in session.execute(found.where(TaskInletAssetReference.dag_id == dag_id))]


def _models():
    if AIRFLOW < (3, 0):
        from airflow.models.dataset import DagScheduleDatasetReference, DatasetEvent

        return DatasetEvent, DagScheduleDatasetReference, "dataset_id"
    from airflow.models.asset import AssetEvent, DagScheduleAssetReference

    return AssetEvent, DagScheduleAssetReference, "asset_id"
