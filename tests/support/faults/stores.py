"""Ledgers for the commands: a new one of each kind."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.faults.tries import Ledgers
from support.postgres import new_database, running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = ("sqlite", "postgresql")


@contextmanager
def a_ledger(store: str) -> Iterator[Ledgers]:
    """Yield an empty ledger of a kind. Leaving the context removes it."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-ledger-") as folder:
            yield Ledgers.in_file(Path(folder) / "ledger.db")
    else:
        with running_postgres() as server:
            yield Ledgers.on_server(new_database(server))
