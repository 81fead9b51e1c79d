"""A real PostgreSQL server for tests, and databases on it."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from functools import cache

import sqlalchemy

DRIVER = "postgresql+psycopg"
_numbers = itertools.count()


@contextmanager
def running_postgres():
    """Run a server on a socket in a folder of its own, and yield its URL. Leaving the context removes it."""
    from support.cluster import running_node

    with running_node() as node:
        url = node.url()
        yield url
        _administrator(url).dispose()


def new_database(url, template="template1"):
    """Make a database on a server, by default an empty one, as a copy of another."""
    name = f"ledger_{next(_numbers)}"
    _run(url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    return url.set(database=name)


def connection_of(url):
    """Return the connection of Airflow to a database, as an environment variable has it."""
    place = {"host": url.query["host"], "port": url.port, "login": url.username, "schema": url.database}
    return json.dumps({"conn_type": "postgres", **place})


@contextmanager
def temporary_database(url, template="template1"):
    """Yield a database as :func:`new_database` makes it, and drop it with every connection that was left to it."""
    made = new_database(url, template)
    try:
        yield made
    finally:
        _run(url, f"DROP DATABASE {made.database} WITH (FORCE)")


def _run(url, statement):
    with _administrator(url).connect() as connection:
        connection.execute(sqlalchemy.text(statement))


@cache
def _administrator(url):
    """Return the engine of a server's user, which keeps one connection for all statements."""
    return sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
