from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DAGS = Path(__file__).parents[2] / "dags"


@dataclass
class DagRan:
    """What a DAG run left behind.

    :param xcoms: task → key → XCom.
    :param mapped: the same of mapped tasks: task → key → XComs, in the order of their indexes.
    """

    state: str
    xcoms: dict[str, dict[str, Any]]
    mapped: dict[str, dict[str, list[Any]]]


@pytest.fixture(scope="session")
def bag(airflow_home):
    """The example DAGs, as Airflow loads them."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    (bundle,) = manager.get_all_dag_bundles()
    bag = BundleDagBag(DAGS, bundle_path=DAGS, bundle_name=bundle.name)
    sync_bag_to_db(bag, bundle.name, None)
    return bag


@pytest.fixture
def run_dag(bag, sms_default, ledger_path):
    """Run an example against the sandbox, with a ledger of this test's own."""

    def run(dag_id, logical_date, **params):
        from airflow.dag_processing.dagbag import BundleDagBag
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        # Read anew: tasks that run in this process leave the run's params in the DAG.
        read = BundleDagBag(bag.dags[dag_id].fileloc, bundle_path=DAGS, bundle_name=bag.bundle_name)
        finished = read.dags[dag_id].test(logical_date=logical_date, run_conf=params)
        ran = DagRan(str(finished.state), {}, {})
        with create_session() as session:
            query = XComModel.get_many(run_id=finished.run_id, dag_ids=dag_id).order_by(None)
            for xcom in session.scalars(query.order_by(XComModel.map_index)):
                value = XComModel.deserialize_value(xcom)
                if xcom.map_index < 0:
                    ran.xcoms.setdefault(xcom.task_id, {})[xcom.key] = value
                else:
                    ran.mapped.setdefault(xcom.task_id, {}).setdefault(xcom.key, []).append(value)
        return ran

    return run
