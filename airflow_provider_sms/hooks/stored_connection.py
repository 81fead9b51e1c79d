"""An Airflow connection outside a task: in commands and on pages."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Connection

_FIELDS = ("conn_type", "host", "login", "password", "schema", "port", "extra")


def stored_connection(conn_id: str) -> Connection | None:
    """Return a connection in a process whose task SDK does not read Airflow's database; None if there is none."""
    from airflow.configuration import ensure_secrets_loaded

    for backend in ensure_secrets_loaded():
        # As in Airflow, a secrets backend that cannot be reached does not stop the search in the next one.
        with suppress(Exception):
            connection: Connection | None = backend.get_connection(conn_id=conn_id)
            if connection is not None:
                return connection
    return None


@contextmanager
def lent_to_hooks(*conn_ids: str) -> Iterator[None]:
    """Let hooks in this process, which is not a task, find stored connections while the block runs.

    They are put where hooks look in every version of Airflow: into the environment, which no other process sees. A
    connection that Airflow does not have is left out, and the hook says so.
    """
    lent: list[str] = []
    for conn_id in conn_ids:
        name = f"AIRFLOW_CONN_{conn_id.upper()}"
        if name not in os.environ and (connection := stored_connection(conn_id)) is not None:
            os.environ[name] = json.dumps({field: getattr(connection, field) for field in _FIELDS})
            lent.append(name)
    try:
        yield
    finally:
        for name in lent:
            del os.environ[name]
