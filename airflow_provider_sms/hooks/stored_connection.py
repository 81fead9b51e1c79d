"""An Airflow connection outside a task. Apart from the ledger, because commands look up accounts this way, too."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection


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
