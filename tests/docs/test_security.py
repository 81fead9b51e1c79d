from __future__ import annotations

import json
import re

import pytest
from support.pages import ROOT, blocks

from airflow_provider_sms.hooks.connection import client_settings

PAGE = ROOT / "docs" / "security.md"
CONNECTION, FILE = (block.code for block in blocks(PAGE, "json"))


@pytest.mark.parametrize("conn_id", ["from_json", "sms_default"])
def test_the_forms_of_a_connection_are_read(airflow_home, monkeypatch, tmp_path, conn_id):
    """The JSON form, and the file of several, make a connection that a client can be made of."""
    from airflow.providers.common.compat.sdk import BaseHook
    from airflow.secrets.local_filesystem import LocalFilesystemBackend

    if conn_id == "from_json":
        monkeypatch.setenv("AIRFLOW_CONN_FROM_JSON", CONNECTION)
        connection = BaseHook.get_connection(conn_id)
    else:
        path = tmp_path / "connections.json"
        path.write_text(FILE)
        connection = LocalFilesystemBackend(connections_file_path=str(path)).get_connection(conn_id)
    settings = client_settings(connection, connection.extra_dejson)
    assert settings.base_url == "https://rest.example.com/v1"
    assert (settings.token or settings.client_secret).startswith("THE-")


def test_the_settings_of_backends_are_json():
    """Airflow reads ``backend_kwargs`` as JSON."""
    for block in blocks(PAGE, "ini"):
        (kwargs,) = re.findall(r"^backend_kwargs = (.*)$", block.code, re.MULTILINE)
        assert json.loads(kwargs)


def test_the_files_beside_the_ledger_are_its_owners_alone(tmp_path):
    """What SQLite keeps beside the ledger holds numbers, too."""
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    store = open_sqlite(tmp_path / "sms_ledger.db")
    try:
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        store.close()
    assert modes == dict.fromkeys(("sms_ledger.db", "sms_ledger.db-wal", "sms_ledger.db-shm"), 0o600)
