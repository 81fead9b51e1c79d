"""A look at a database before it is opened as a ledger: opening it would make the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.backend import ledger_errors
from airflow_provider_sms.ledger.postgres_engine import postgres_engine
from airflow_provider_sms.ledger.schema import ledger_version

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


def require_ledger(url: URL, described: str) -> None:
    """Refuse a database that holds no ledger.

    :param url: of SQLAlchemy, with the driver.
    :param described: what the database is, for the error.
    :raises InputError: it holds none.
    :raises LedgerError: it cannot be read.
    """
    if url.get_backend_name() == "postgresql":
        engine = postgres_engine(url, name="airflow-provider-sms", poolclass=NullPool)
    else:
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
    with ledger_errors("opened"), engine.connect() as connection:
        found = inspect(connection).has_table(ledger_version.name)
    if not found:
        raise InputError(f"{described} holds no ledger")
