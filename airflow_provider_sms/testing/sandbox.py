"""The sandbox as one test sees it: it makes requests fail, says who was texted, and keeps the test on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.service.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_sms.sandbox.faults import FaultKind
    from airflow_provider_sms.sandbox.server import SandboxServer
    from airflow_provider_sms.service.client import SmsClient


class SmsSandbox:
    """A sandbox of one test, with an account and a ledger of its own.

    The fixture creates it; tests do not.

    :param service: the running sandbox: its address, and its ``state`` with the balance and all requests.
    :param ledger_path: the ledger's file.
    :param monkeypatch: the test's monkeypatch, which removes the connections in the end.
    """

    def __init__(self, service: SandboxServer, ledger_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = service
        self.ledger_path = ledger_path
        self._environment = monkeypatch

    def texts(self) -> dict[str, list[str]]:
        """Return the texts that each number got, in order, by number: digits with country code."""
        texts: dict[str, list[str]] = {}
        for destination, content in self.service.state.accepted_messages:
            texts.setdefault(destination, []).append(content)
        return texts

    def connect(self, conn_id: str = "sms_default", extra: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Make an Airflow connection to the sandbox, through the environment; ``sms_default`` exists already.

        :param conn_id: the connection.
        :param extra: its extras, such as ``{"timeout": 0.5}``; None means none.
        :param fields: other fields of the connection in place of the sandbox's, such as a wrong ``password``.
        """
        config = self.service.state.config
        connection = {
            "conn_type": "sms",
            "host": self.service.base_url,
            "login": None if config.token else config.client_id,
            "password": config.token or config.client_secret,
            "extra": dict(extra or {}),
            **fields,
        }
        self._environment.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))

    def fail_next(self, kind: FaultKind, **fields: Any) -> None:
        """Make the next request fail, after those that earlier calls make fail.

        :param kind: what goes wrong, for example ``drop_after``: the service takes the request, and its response is
            lost. The page of the sandbox lists the faults.
        :param fields: more fields of the fault, such as ``times=3`` or, for the kind ``status``, ``status=503``.
        :raises ValueError: a field is out of range.
        """
        state = self.service.state
        state.set_faults([*state.faults, {"kind": kind, **fields}])


def refuse_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every client of another machine's service, and every ledger on a server.

    It does not matter where they come from: an operator, a notifier, a team's own code.

    :param monkeypatch: of the test; it lifts the rule in the end.
    """
    from airflow_provider_sms.hooks import ledger
    from airflow_provider_sms.hooks.connection import ClientSettings

    make = ClientSettings.client

    def client(settings: ClientSettings, **options: Any) -> SmsClient:
        for url in (settings.base_url, settings.balance_url or settings.base_url):
            if not is_loopback(urlsplit(url).hostname or ""):
                raise InputError(
                    "A connection does not lead to the sandbox, and its request could text people: it was not made. "
                    "Call sms_sandbox.connect() with the connection's id first"
                )
        return make(settings, **options)

    def postgres_url(connection: Connection, extra: Mapping[str, Any]) -> NoReturn:  # noqa: ARG001 - as in ledger
        raise InputError(
            f"The ledger of connection {connection.conn_id!r} is not opened, since people would count as texted there. "
            "Leave ledger_conn_id out, and set [sms] ledger_conn_id in production"
        )

    monkeypatch.setattr(ClientSettings, "client", client)
    monkeypatch.setattr(ledger, "postgres_url", postgres_url)
