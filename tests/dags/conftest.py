from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DAGS = Path(__file__).parents[2] / "dags"


@dataclass
class DagRan:
    """What a DAG run left behind: its state, and task → key → XCom."""

    state: str
    xcoms: dict[str, dict[str, Any]]


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

    def run(dag_id, logical_date):
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        finished = bag.dags[dag_id].test(logical_date=logical_date)
        xcoms: dict[str, dict[str, Any]] = {}
        with create_session() as session:
            for xcom in session.scalars(XComModel.get_many(run_id=finished.run_id, dag_ids=dag_id)):
                xcoms.setdefault(xcom.task_id, {})[xcom.key] = XComModel.deserialize_value(xcom)
        return DagRan(str(finished.state), xcoms)

    return run
