from __future__ import annotations

import os
import subprocess
import sys

import pytest

LOADED = "[pytest]\naddopts = -p airflow_provider_sms.testing\n"
ACCOUNT = """
import os
import pytest
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.hooks.sms import SmsHook
from airflow_provider_sms.sandbox.config import SandboxConfig

pytestmark = pytest.mark.slow
def test(sms_sandbox):
    assert SmsHook().get_balance().amount == 100_000
    assert os.environ["AIRFLOW__SMS__LEDGER_CONN_ID"] == ""
    sms_sandbox.connect("sms_other", host="https://sms.example.com/v1")
    with pytest.raises(InputError, match="was not made"):
        SmsHook("sms_other").get_balance()
class TestPoor:
    @pytest.fixture
    def sms_sandbox_config(self):
        return SandboxConfig(balance=3)
    def test(self, sms_sandbox):
        assert SmsHook().get_balance().amount == 3
"""


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


@pytest.mark.slow
def test_the_account_is_a_fixture_and_no_other_machine_is_asked(tmp_path):
    """A project gives its own account by a fixture of the same name; the ledger of the environment is not used."""
    (tmp_path / "pytest.ini").write_text(LOADED)
    (tmp_path / "test_a.py").write_text(ACCOUNT)
    # In a process of its own, as in a team's CI, which knows no Airflow yet.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)}
    environment |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW__SMS__LEDGER_CONN_ID": "real"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
