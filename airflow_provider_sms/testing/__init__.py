"""A pytest plugin: the fixture ``sms_sandbox`` runs a team's DAGs against the service on this machine.

A project loads it by name, in its pytest settings (``addopts = "-p airflow_provider_sms.testing"``) or in its
``conftest.py`` (``pytest_plugins = ["airflow_provider_sms.testing"]``). It is not a ``pytest11`` entry point: pytest
loads such a plugin wherever the package is installed, and a project that did not ask for it would find Airflow in
another home. Airflow, the sandbox and its server are imported by the tests that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_sms.testing.airflow_home import AirflowHome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.testing.sandbox import SmsSandbox

KEEP_HOME = "sms_sandbox_keep_airflow_home"
"""The pytest setting with which Airflow keeps the home that the environment names."""
CREDITS = 100_000
"""The balance of a sandbox without other settings, in credits."""
_HOME = pytest.StashKey[AirflowHome]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the plugin's setting, and give Airflow a home for this test run.

    Pytest calls this before it imports test modules and the ``conftest.py`` of folders, which may import Airflow.

    :param parser: takes the setting.
    :param pluginmanager: knows the configuration of this run.
    """
    parser.addini(
        KEEP_HOME,
        "run DAGs in the Airflow that the environment names, with its metadata database, and not in a temporary one",
        type="bool",
        default=False,
    )
    config: Any = pluginmanager.get_plugin("pytestconfig")
    home = config.stash[_HOME] = AirflowHome(is_temporary=not config.getini(KEEP_HOME))
    config.add_cleanup(home.close)


@pytest.fixture(scope="session")
def sms_airflow_home(pytestconfig: pytest.Config) -> AirflowHome:
    """Return the Airflow of this test run."""
    return pytestconfig.stash[_HOME]


@pytest.fixture
def sms_sandbox_config() -> SandboxConfig:
    """Return the settings of the sandbox: an account of 100,000 credits. A project may define its own fixture."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(balance=CREDITS)


@pytest.fixture
def sms_ledger_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of this test's ledger, which is made by the first task that sends."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "")  # that of a kept Airflow would outrank the path
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", str(path))
    monkeypatch.setenv("AIRFLOW__SMS__RECOVERY_PATH", str(tmp_path / "recovery"))
    return path


@pytest.fixture
def sms_sandbox(
    sms_sandbox_config: SandboxConfig,
    sms_airflow_home: AirflowHome,
    sms_ledger_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SmsSandbox]:
    """Run the sandbox for one test, with the connection ``sms_default`` to it and a ledger in ``tmp_path``."""
    try:
        from airflow_provider_sms.sandbox.server import running_sandbox
    except ModuleNotFoundError as error:
        pytest.fail(f"sms_sandbox needs {error.name}: install this package with its extra 'testing'", pytrace=False)
    from airflow_provider_sms.testing.sandbox import SmsSandbox

    with running_sandbox(sms_sandbox_config) as service:
        sandbox = SmsSandbox(service, sms_airflow_home, sms_ledger_path, monkeypatch)
        sandbox.connect()
        yield sandbox
