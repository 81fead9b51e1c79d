"""Opening a database as a ledger: its tables are created where there are none, and another version is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, inspect, select
from sqlalchemy.exc import DBAPIError

from airflow_provider_sms.exceptions import InputError, LedgerError, LedgerVersionError
from airflow_provider_sms.ledger.backend import LEDGER_LOCK, first_line, ledger_errors, sql_state
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION, metadata, version

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

_NO_RIGHT = ("42501", "3F000")
"""SQLSTATEs of a missing right, and of a ``search_path`` that names no existing schema."""


def prepare(store: LedgerBackend, *, create: bool) -> None:
    """Create the tables where there are none; a role that may not opens a ledger all the same that has them."""
    # Whoever opens a ledger decides how long to try again, and so these are neither save() nor read().
    if create:
        with store.write(LEDGER_LOCK) as connection:
            _create(connection, store.description)
        return
    with ledger_errors("read"), store.reading.connect() as connection:
        if not inspect(connection).has_table(version.name):
            raise InputError(f"{store.description} holds no ledger. The first task that sends creates one")
        _check_version(connection.execute(select(version.c.version)).scalar_one())


def _create(connection: Connection, description: str) -> None:
    try:
        metadata.create_all(connection)
        found = connection.execute(select(version.c.version)).scalar()
        if found is None:
            connection.execute(insert(version).values(version=SCHEMA_VERSION))
        else:
            _check_version(found)
    except DBAPIError as error:
        if sql_state(error) not in _NO_RIGHT:
            raise
        raise LedgerError(
            f"{description}: the connection's user may not create or read the ledger's tables "
            f"({first_line(error.orig or error)}). Nothing was sent. Connect as the role that owns them"
        ) from None


def _check_version(found: int) -> None:
    if found != SCHEMA_VERSION:
        raise LedgerVersionError(
            f"The ledger has version {found}, and this airflow-provider-sms knows version {SCHEMA_VERSION}. Nothing "
            "was sent. Install the one that wrote it: another ledger knows of nobody who was texted"
        )
