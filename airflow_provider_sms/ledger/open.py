"""Opening a database as a ledger: a server is waited for, tables are created, a newer ledger is refused."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import insert, select, update
from sqlalchemy.exc import DBAPIError

from airflow_provider_sms.exceptions import LedgerAwayError, LedgerError, LedgerVersionError
from airflow_provider_sms.formatting import duration
from airflow_provider_sms.ledger.backend import again_if_busy, first_line, sql_state
from airflow_provider_sms.ledger.locks import CREATION_LOCK
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION, ledger_version, metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 1.0
"""Seconds between two attempts to open a ledger whose server is away."""

_NO_RIGHT = ("42501", "3F000")
"""SQLSTATEs of a missing right, and of a ``search_path`` that names no existing schema."""

MIGRATIONS: dict[int, Callable[[Connection], None]] = {}
"""By version, the step that brings a ledger to the next one; new tables exist by then, new indexes do not."""


def open_patiently(opening: Callable[[], T], patience: float) -> T:
    """Return an opened ledger; while its server is away, starting up or shutting down, try again.

    :param patience: for how many seconds.
    :raises LedgerError: it cannot be opened.
    """
    give_up, is_told = time.monotonic() + patience, False
    while True:
        try:
            return opening()
        except LedgerAwayError as error:
            if time.monotonic() + RETRY_SECONDS > give_up:
                raise
            if not is_told:
                log.warning("%s. Trying again for up to %s", error, duration(patience))
                is_told = True
        time.sleep(RETRY_SECONDS)


def create_or_upgrade(store: LedgerBackend) -> None:
    """Create the tables where there are none, and upgrade those of an older version, in one transaction.

    A role that may not create tables opens a ledger of this version all the same.

    :raises LedgerVersionError: this package cannot use the version of the ledger, which is left as it is.
    :raises LedgerError: when it was not committed.
    """
    again_if_busy(lambda: _create_or_upgrade(store))


def _create_or_upgrade(store: LedgerBackend) -> None:
    with store.write(CREATION_LOCK) as connection, _refused_rights(store.description):
        metadata.create_all(connection)
        version = connection.execute(select(ledger_version.c.version)).scalar()
        if version is None:
            connection.execute(insert(ledger_version).values(version=SCHEMA_VERSION))
            return
        check_version(version)
        for older in range(version, SCHEMA_VERSION):
            MIGRATIONS[older](connection)
        if version < SCHEMA_VERSION:
            connection.execute(update(ledger_version).values(version=SCHEMA_VERSION))


@contextmanager
def _refused_rights(described: str) -> Iterator[None]:
    """Raise the server's refusal of a right as an error that says what the tables' owner has to do."""
    try:
        yield
    except DBAPIError as error:
        if sql_state(error) not in _NO_RIGHT:
            raise
        raise LedgerError(
            f"{described}: the connection's user may not create, upgrade or read the ledger's tables "
            f"({first_line(error.orig or error)}). Nothing was sent. Connect as the role that owns "
            "them"
        ) from None


def check_version(version: int) -> None:
    """Refuse a ledger of a newer version, and one of an older version that cannot be upgraded.

    :raises LedgerVersionError: says what to do.
    """
    if version > SCHEMA_VERSION:
        raise LedgerVersionError(
            f"The ledger has version {version}, which a newer airflow-provider-sms wrote: this one knows version "
            f"{SCHEMA_VERSION}. Nothing was sent. Upgrade airflow-provider-sms here"
        )
    if any(older not in MIGRATIONS for older in range(version, SCHEMA_VERSION)):
        raise LedgerVersionError(
            f"The ledger has version {version}, which is too old: this airflow-provider-sms cannot upgrade it to "
            f"version {SCHEMA_VERSION}. Nothing was sent. Install the airflow-provider-sms that wrote it, or configure "
            "another ledger, which knows of nobody who was texted"
        )
