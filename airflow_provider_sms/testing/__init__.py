"""A pytest plugin: with the fixture ``sms_sandbox``, a test's DAGs text the service on this machine.

A project loads it by name, in its pytest settings (``addopts = "-p airflow_provider_sms.testing"``) or in its
``conftest.py`` (``pytest_plugins = ["airflow_provider_sms.testing"]``). Airflow and the sandbox are imported
by the tests that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.testing.sandbox import SmsSandbox

CREDITS = 100_000
"""The balance of a sandbox without other settings, in credits."""


@pytest.fixture
def sms_sandbox_config() -> SandboxConfig:
    """Return the settings of the sandbox: an account of 100,000 credits. A project may define its own fixture."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(balance=CREDITS)


@pytest.fixture
def sms_ledger_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of this test's ledger, which is made by the first task that sends."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "")  # the configured one would outrank the path
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", str(path))
    return path


@pytest.fixture
def sms_only_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse requests to another machine's service, and ledgers on a server, for one test."""
    from airflow_provider_sms.testing.sandbox import refuse_other_machines

    refuse_other_machines(monkeypatch)


@pytest.fixture
def sms_sandbox(
    sms_sandbox_config: SandboxConfig,
    sms_ledger_path: Path,
    sms_only_on_this_machine: None,  # noqa: ARG001  # it holds for the whole test
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SmsSandbox]:
    """Run the sandbox for one test, with the connection ``sms_default`` to it and a ledger in ``tmp_path``."""
    from airflow_provider_sms.sandbox.server import running_sandbox
    from airflow_provider_sms.testing.sandbox import SmsSandbox

    with running_sandbox(sms_sandbox_config) as service:
        sandbox = SmsSandbox(service, sms_ledger_path, monkeypatch)
        sandbox.connect()
        yield sandbox
