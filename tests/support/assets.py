"""Assets in Airflow's database."""

from __future__ import annotations


def event_of(run_id):
    """Return the only asset event of a run."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(AssetEvent).filter_by(source_run_id=run_id)).one()


def scheduled_by_writing(dag_id):
    """Return the DAGs that are scheduled by the only asset that a DAG has written."""
    from airflow.models.asset import AssetEvent, DagScheduleAssetReference
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        (asset,) = session.scalars(select(AssetEvent.asset_id).filter_by(source_dag_id=dag_id)).all()
        return session.scalars(select(DagScheduleAssetReference.dag_id).filter_by(asset_id=asset)).all()


def read_by(dag_id):
    """Return pairs of a DAG's task and the URI of an asset that it reads."""
    from airflow.models.asset import AssetModel, TaskInletAssetReference
    from airflow.utils.session import create_session
    from sqlalchemy import select

    asset = AssetModel.id == TaskInletAssetReference.asset_id
    with create_session() as session:
        found = select(TaskInletAssetReference.task_id, AssetModel.uri).join(AssetModel, asset)
        return [tuple(row) for row in session.execute(found.where(TaskInletAssetReference.dag_id == dag_id))]
