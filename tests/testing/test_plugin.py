from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.own_pytest import run_pytest

LOADED = "[pytest]\naddopts = -p airflow_provider_sms.testing\n"
REAL = {
    "AIRFLOW_HOME": "/real",
    "AIRFLOW_CONFIG": "/real/airflow.cfg",
    "AIRFLOW__CORE__PLUGINS_FOLDER": "/real/plugins",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql:///real",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD": "cat /real",
    "AIRFLOW__SECRETS__BACKEND": "a/real.Vault",
    "AIRFLOW__SMS__LEDGER_CONN_ID": "a/real",
}
AT_HOME = """
import os
from pathlib import Path
HOME = Path(os.environ["AIRFLOW_HOME"])
def test():
    assert HOME.is_dir()
    Path("home").write_text(str(HOME))
    kept = [name for name in os.environ if name.startswith("AIRFLOW") and "/real" in os.environ[name]]
    assert kept == ["AIRFLOW__CORE__PLUGINS_FOLDER"]
"""
ONE_TASK = """
import os
from pathlib import Path
from airflow_provider_sms.operators.sms import BulkSmsOperator
def test(sms_sandbox):
    rows = [{"destination": "27820000001", "name": "Thandi"}]
    sms_sandbox.run_task(BulkSmsOperator(task_id="text", source=rows, message="Hi {name}"))
    assert sms_sandbox.texts() == {"27820000001": ["Hi Thandi"]}
    assert list(Path(os.environ["AIRFLOW_HOME"]).glob("*.db")) == []
"""
ONE_DAG = """
def test(sms_sandbox):
    from airflow.providers.common.compat.sdk import DAG
    with DAG("empty", schedule=None) as dag: ...
    sms_sandbox.run(dag)
"""
ACCOUNT = """
import pytest
from airflow_provider_sms.sandbox.config import SandboxConfig
def test(sms_sandbox):
    assert sms_sandbox.service.state.balance == 100_000
class TestPoor:
    @pytest.fixture
    def sms_sandbox_config(self):
        return SandboxConfig(balance=3)
    def test(self, sms_sandbox):
        assert sms_sandbox.service.state.balance == 3
"""


@pytest.fixture
def run(tmp_path):
    """Run pytest on files given by name, in a folder of this test's own."""

    def run(files, **environment):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return run_pytest(tmp_path, **environment)

    return run


def test_loading_the_plugin_imports_nothing_heavy():
    """Pytest loads the plugin in each run: Airflow, the sandbox's server and pandas wait for a test that needs them."""
    program = (
        "import sys, pytest\n"
        "import airflow_provider_sms.testing\n"
        "heavy = {'airflow', 'fastapi', 'uvicorn', 'pandas', 'pyarrow', 'sqlalchemy', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert loaded.stdout.splitlines()[-1] == "[]"


def test_a_project_that_does_not_load_the_plugin_keeps_its_airflow(run):
    """The installed package alone changes nothing: no fixture, no other home."""
    test = "import os\ndef test():\n    assert os.environ['AIRFLOW_HOME'] == '/none'\ndef test_no(sms_sandbox): ...\n"
    status, said = run({"pytest.ini": "[pytest]\n", "test_a.py": test}, AIRFLOW_HOME="/none")
    assert (status, "1 passed, 1 error" in said, "fixture 'sms_sandbox' not found" in said) == (1, True, True)


@pytest.mark.parametrize(
    "files",
    [
        {"pytest.ini": LOADED},
        {"pytest.ini": "[pytest]\n", "conftest.py": 'pytest_plugins = ["airflow_provider_sms.testing"]\n'},
    ],
    ids=["settings", "conftest"],
)
def test_the_plugin_gives_airflow_a_home_of_the_run(run, tmp_path, files):
    """No real database, ledger or store of secrets is in the environment of a test module; the home goes at the end."""
    status, said = run({**files, "test_a.py": AT_HOME}, **REAL)
    assert status == 0, said
    assert not Path((tmp_path / "home").read_text()).exists()


def test_a_setting_keeps_the_airflow_of_the_environment(run):
    """Tests whose Airflow has what they need in its database keep its home, and its settings."""
    test = "import os\ndef test():\n    assert os.environ['AIRFLOW_HOME'] == '/none'\n"
    ini = f"{LOADED}sms_sandbox_keep_airflow_home = true\n"
    status, said = run({"pytest.ini": ini, "test_a.py": test}, AIRFLOW_HOME="/none")
    assert status == 0, said


def test_the_account_is_a_fixture(run):
    """A project gives its own account by a fixture of the same name; without one there is credit for 100,000 texts."""
    status, said = run({"pytest.ini": LOADED, "test_a.py": ACCOUNT})
    assert status == 0, said


def test_a_task_alone_needs_no_database(run):
    """A task in no DAG is executed, and no metadata database is made."""
    status, said = run({"pytest.ini": LOADED, "test_a.py": ONE_TASK})
    assert status == 0, said


def test_a_database_without_tables_is_named(run, tmp_path):
    """In an Airflow that is kept, nothing is made: the error says which command is missing."""
    ini = f"{LOADED}sms_sandbox_keep_airflow_home = true\n"
    status, said = run({"pytest.ini": ini, "test_a.py": ONE_DAG}, AIRFLOW_HOME=str(tmp_path / "airflow"))
    assert (status, "Run airflow db migrate before pytest" in said) == (1, True)


def test_an_airflow_that_was_imported_before_is_not_used(run, tmp_path):
    """A project that imports Airflow first would run its DAGs in a real database: the error says what to change."""
    files = {"conftest.py": 'import airflow\npytest_plugins = ["airflow_provider_sms.testing"]\n', "test_a.py": ONE_DAG}
    status, said = run(files, AIRFLOW_HOME=str(tmp_path / "airflow"))
    assert (status, "it was imported before airflow_provider_sms.testing was loaded" in said) == (1, True)
    assert not (tmp_path / "airflow" / "airflow.db").exists()
