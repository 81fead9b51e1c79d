from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.airflow import load_dags, run_dag, stored_xcoms, sync_dags


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

        folder = tmp_path / "dags"
        folder.mkdir(exist_ok=True)
        (folder / "dag.py").write_text(code.replace("/data/", f"{tmp_path}/").replace("retries=3", "retries=0"))
        bag = load_dags(folder)
        assert bag.import_errors == {}
        sync_dags(bag)
        (dag,) = bag.dags.values()
        finished = run_dag(dag, pendulum.now("UTC"))
        found = stored_xcoms(dag_id=finished.dag_id, run_id=finished.run_id, key="return_value")
        return FileRan(str(finished.state), {each.task_id: value for each, value in found})

    return run
