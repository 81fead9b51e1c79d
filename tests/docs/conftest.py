from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.airflow import load_dags, run_dag, stored_xcoms, sync_dags


@pytest.fixture
def run_file(sms_default, ledger_path, tmp_path):
    """Run the only DAG of a file, given as text, and return its state and by task what it returned, its ``xcoms``.

    ``/data/`` is a folder of this test's own.
    """

    def run(code):
        import pendulum

        folder = tmp_path / "dags"
        folder.mkdir(exist_ok=True)
        (folder / "dag.py").write_text(code.replace("/data/", f"{tmp_path}/").replace("retries=3", "retries=0"))
        bag = load_dags(folder)
        assert bag.import_errors == {}
        sync_dags(bag)
        (dag,) = bag.dags.values()
        finished = run_dag(dag, pendulum.now("UTC"))
        found = stored_xcoms(dag_id=finished.dag_id, run_id=finished.run_id, key="return_value")
        return SimpleNamespace(state=str(finished.state), xcoms={each.task_id: value for each, value in found})

    return run
