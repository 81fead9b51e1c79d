"""Running a DAG in this process with ``dag.test()``, and reading what it left."""

from __future__ import annotations

import tempfile
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path


def run_dag(
    dag: Any, logical_date: datetime, conf: Mapping[str, Any] | None = None, *, run_after: datetime | None = None
) -> Any:
    """Run a DAG that Airflow's database knows, and return Airflow's row of the run.

    :param dag: the DAG.
    :param logical_date: the run's logical date. A run of the same date is replaced.
    :param conf: the run's configuration.
    :param run_after: the date in the run's id; None means now.
    """
    with warnings.catch_warnings():
        # Airflow warns when it replaces a run of a DAG that has changed since, as between two tests.
        warnings.filterwarnings("ignore", "Multiple rows returned with uselist=False")
        return dag.test(logical_date=logical_date, run_after=run_after, run_conf=None if conf is None else dict(conf))


def returned_values(run: Any) -> dict[tuple[str, int], Any]:
    """Return what the tasks of a run returned, by task id and map index, as other tasks would get it.

    :param run: Airflow's row of the run.
    """
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    model: Any = XComModel
    with create_session() as session:
        rows = session.query(model.task_id, model.map_index, model.value)
        rows = rows.filter_by(dag_id=run.dag_id, run_id=run.run_id, key="return_value")
        return {(row.task_id, row.map_index): _value_of(row) for row in rows}


def _value_of(row: Any) -> Any:
    """Return the value of an XCom; of a class that Airflow may not load, what Airflow has stored."""
    from airflow.providers.common.compat.sdk import XCom

    try:
        # Not by the model, which reads a text as JSON.
        return XCom.deserialize_value(row)
    except ImportError:
        return row.value


def register(dag: Any) -> None:
    """Store a DAG in Airflow's database, whichever file it is from: a run needs it there.

    :param dag: the DAG.
    """
    with tempfile.TemporaryDirectory() as empty:
        bag = load_dags(empty)
    bag.bag_dag(dag)
    sync_dags(bag)


def load_dags(folder: Path | str, path: Path | str | None = None) -> Any:
    """Load DAGs as Airflow does, and return its bag of them.

    :param folder: the folder that Airflow takes for the bundle.
    :param path: the one file to load; None means the whole folder.
    """
    return _dagbag_module().BundleDagBag(path or folder, bundle_path=folder)


def sync_dags(bag: Any) -> None:
    """Store the DAGs of a bag in Airflow's database.

    :param bag: as :func:`load_dags` returns it.
    """
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    manager = DagBundlesManager()  # type: ignore[no-untyped-call]  # Airflow gives it no types
    manager.sync_bundles_to_db()
    bundle, *_ = manager.get_all_dag_bundles()
    _dagbag_module().sync_bag_to_db(bag, bundle.name, None)


def _dagbag_module() -> Any:
    from airflow import __version__

    return import_module("airflow.models.dagbag" if __version__.startswith("3.1.") else "airflow.dag_processing.dagbag")
