from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class FileRan:
    """What the run of a DAG file left behind.

    :param xcoms: task → what it returned.
    """

    state: str
    xcoms: dict[str, Any]


@pytest.fixture
def run_file(sms_default, ledger_path, tmp_path):
    """Run the only DAG of a file, given as text, against the sandbox; ``/data/`` is a folder of this test's own."""

    def run(code):
        import pendulum
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        folder = tmp_path / "dags"
        folder.mkdir(exist_ok=True)
        (folder / "dag.py").write_text(code.replace("/data/", f"{tmp_path}/").replace("retries=3", "retries=0"))
        manager = DagBundlesManager()
        manager.sync_bundles_to_db()
        (bundle,) = manager.get_all_dag_bundles()
        bag = BundleDagBag(folder, bundle_path=folder, bundle_name=bundle.name)
        assert bag.import_errors == {}
        sync_bag_to_db(bag, bundle.name, None)
        (dag,) = bag.dags.values()
        finished = dag.test(logical_date=pendulum.now("UTC"))
        where = {"dag_id": finished.dag_id, "run_id": finished.run_id, "key": "return_value"}
        with create_session() as session:
            found = session.scalars(select(XComModel).filter_by(**where)).all()
            return FileRan(str(finished.state), {each.task_id: XComModel.deserialize_value(each) for each in found})

    return run
