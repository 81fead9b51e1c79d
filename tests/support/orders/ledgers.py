"""A ledger that each process of a run opens for itself; the runs follow one another in it."""

from __future__ import annotations

import logging
from contextlib import closing, contextmanager, suppress
from copy import copy
from functools import partial

from sqlalchemy import create_engine, event

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.backend import Patience, busy
from support.faults.tries import new_ledger
from support.orders.schedule import see

PATIENCE = 90.0
"""Seconds after its claim in which the outcome of a request is expected: more than one jump of the clock."""
TICK = 0.001
"""Seconds that a commit takes: what comes after it is later, for whoever weighs balances."""
TABLES = ("sms_message", "sms_superseded", "sms_request", "sms_attempt", "sms_campaign", "sms_balance")

NONSENSE = "SELECT nothing_like_that"
"""What a database refuses."""


class _UndoneError(Exception):
    """Rolls back what then seems to be committed."""


class Ledger:
    """A ledger, and a connection to it that is not the product's own."""

    def __init__(self, ledgers):
        self._open = partial(_watched, ledgers)
        self._stores = [self._open()]
        self._used = 0
        self._first = None
        engine = create_engine(ledgers.url, isolation_level="AUTOCOMMIT")
        self._pooled = engine.raw_connection()
        self._raw = self._pooled.driver_connection

    def rows(self, query):
        """Return what the ledger holds."""
        return list(self._raw.execute(query).fetchall())

    def empty(self):
        """Forget everything but the first attempt, which is the same in each run, for a new run."""
        self._raw.execute("BEGIN")
        for name in TABLES:
            self._raw.execute(f"DELETE FROM {name}")  # our own tables
        for name in reversed(TABLES) if self._first else ():
            self._raw.execute(f"INSERT INTO {name} SELECT * FROM first_{name}")
        self._raw.execute("COMMIT")
        self._used = 0

    def first(self, prepare, world):
        """Return the ledger of the attempt that begins a run: it is prepared once, and then its rows are there."""
        if self._first is None:
            self._first = prepare(), world.now
            for name in TABLES:
                self._raw.execute(f"CREATE TEMP TABLE first_{name} AS SELECT * FROM {name}")
        ledger, world.now = self._first
        return copy(ledger)

    def open(self, world):
        """Return a store of its own for a process."""
        if self._used == len(self._stores):
            self._stores.append(self._open())
        store = self._stores[self._used]
        self._used += 1
        store.clock, store.is_away = lambda: world.now, False
        store.patience = Patience(PATIENCE, sleep=world.sleep, monotonic=store.clock)
        store.write = partial(self._write, world, type(store).write, store)
        store.fetch = partial(self._fetch, world, type(store).fetch, store)
        return store

    def _fetch(self, world, fetch, store, read):
        self._require(world, store)
        # A step only where it may fail: the reads that others may come in between have one of their own.
        fails = world.left["reads"] and world.step("reads", faults={"reads": ("fails",)}) == "fails"
        return fetch(store, (lambda connection: connection.exec_driver_sql(NONSENSE)) if fails else read)

    @contextmanager
    def _write(self, world, write, store, *args, **kwargs):
        faults = {
            "commits": ("fails", "is called failed", "is the last one"),
            "busy": ("waits too long",),
            "undone": ("is undone",),
        }
        outcome = world.step("writes", faults=faults)
        self._require(world, store)
        world.now += TICK
        if outcome == "waits too long":
            raise busy(1)
        with suppress(_UndoneError), write(store, *args, **kwargs) as connection:
            yield connection
            if outcome == "fails":
                connection.exec_driver_sql(NONSENSE)
            if outcome == "is undone":
                raise _UndoneError
        if outcome == "is the last one":
            world.is_away = store.is_away = True
        if outcome in ("is called failed", "is the last one"):
            raise LedgerError(outcome)

    def _require(self, world, store):
        """Raise where the ledger is away for a process, until its send has ended."""
        if store.is_away and not world.is_free:
            raise LedgerError("is away")

    def close(self):
        """Close every connection."""
        for store in self._stores:
            store.close()
        self._pooled.invalidate()


def _watched(ledgers):
    """Open a ledger; on SQLite, where every order is played, actors see all that their statements tell them."""

    def watch(_connection, cursor, *_):
        see((cursor.rowcount, cursor.lastrowid))
        cursor.row_factory = lambda _, row: see(row) or row

    store = ledgers()
    if ledgers.name == "sqlite":
        event.listen(store._engine, "after_cursor_execute", watch)
    return store


@contextmanager
def opened(store):
    """Yield a ledger of its own, of a kind; thousands of orders log nothing, as they say as much as a few."""
    with new_ledger(store) as ledgers, closing(Ledger(ledgers)) as ledger:
        logging.disable(logging.CRITICAL)
        try:
            yield ledger
        finally:
            logging.disable(logging.NOTSET)
