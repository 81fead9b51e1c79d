"""The ledger in PostgreSQL, for tasks that run on several machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from airflow_provider_sms.exceptions import LedgerError, SmsError
from airflow_provider_sms.ledger.backend import (
    BUSY_SECONDS,
    CLAIM_COLUMNS,
    LedgerBackend,
    Remains,
    RequestSize,
    busy,
    joined,
    ledger_errors,
    sql_state,
)
from airflow_provider_sms.ledger.open import prepare
from airflow_provider_sms.ledger.postgres_engine import (
    WARNINGS,
    ServerClock,
    check_durability,
    describe,
    postgres_engine,
    require_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import URL, Connection, Engine

    from airflow_provider_sms.messages.message import Outgoing

# Many rows come as one value, since the driver and the server handle arrays element by element. The keys are joined,
# and each row takes its piece.
_INSERT_REQUESTS = (
    f"INSERT INTO sms_request ({', '.join(CLAIM_COLUMNS)}, id, submitted, planned_parts, planned_cost) "  # noqa: S608 - no value
    f"SELECT {', '.join(['%s'] * len(CLAIM_COLUMNS))}, nextval(pg_get_serial_sequence('sms_request', 'id')), "
    "new.* FROM unnest(%s::int[], %s::int[], %s::text[]) AS new "
    "RETURNING id, submitted, planned_parts, planned_cost"
)
_INSERT_MESSAGES = (
    "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "
    "SELECT %s, substring(%s::bytea FROM (16 * new.place - 15)::int FOR 16), new.destination, new.request_id "
    "FROM unnest(string_to_array(%s, ', ', 'null')::bigint[], string_to_array(%s, ', ')::bigint[]) "
    "WITH ORDINALITY AS new (destination, request_id, place) ORDER BY 2, new.place "
    "ON CONFLICT DO NOTHING"
)
# Key by key, in the unique index, however large the server takes the campaign to be: one that its statistics do not
# have yet counts as a row at most, and for so few rows the server would compare a list of keys with each row instead.
_HOLDERS = (
    "SELECT string_agg((place - 1)::text, ','), string_agg(m.request_id::text, ',') "
    "FROM generate_series(1, %s) AS place CROSS JOIN LATERAL (SELECT request_id FROM sms_message "
    "WHERE campaign_id = %s AND message_key = substring(%s::bytea FROM 16 * place - 15 FOR 16) LIMIT 1) AS m"
)

# Set for the transaction, not for the session: a connection pooler hands sessions round, and refuses start options.
# Warnings must reach this process: a warning may be the only sign that a commit is not durable. A transaction that does
# nothing is ended soon: its machine may have vanished, and others wait for its lock. All other waits share one bound.
# The time is read from a row that exists only once the lock is held: SQL promises no order within one list.
_TAKE_LOCK = (
    "WITH locked AS (SELECT set_config('synchronous_commit', 'on', true), "
    "set_config('client_min_messages', 'warning', true), set_config('lock_timeout', :patience, true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true), {function}(:lock)), "
    "bounded AS (SELECT set_config('lock_timeout', :busy, true), set_config('statement_timeout', :wait, true) "
    "FROM locked) "
    "SELECT extract(epoch FROM clock_timestamp()) FROM bounded"
)
_LOCK = text(_TAKE_LOCK.format(function="pg_advisory_xact_lock"))
_LOCK_SHARED = text(_TAKE_LOCK.format(function="pg_advisory_xact_lock_shared"))
WAIT_SECONDS = 15.0
"""Seconds that a statement which writes may take, or wait for the rows of another transaction."""
IDLE_SECONDS = 5.0
"""Seconds after which the server ends a transaction that does nothing, and gives its lock to the next one."""
_LOCK_NOT_AVAILABLE = "55P03"


class PostgresBackend(LedgerBackend):
    """A ledger on a server; a campaign's transactions that write no more than their own rows run side by side."""

    def __init__(
        self,
        engine: Engine,
        description: str,
        clock: ServerClock,
        busy_seconds: float,
        *,
        require_standby: bool = False,
    ) -> None:
        reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        super().__init__(engine, reading, description, clock)
        self._server_clock = clock
        self._busy = busy_seconds
        self._require_standby = require_standby

    def _lock(self, connection: Connection, lock: int, patience: float | None, *, shared: bool) -> None:
        patience = self._busy if patience is None else patience
        values = {
            "lock": lock,
            "patience": _milliseconds(patience),
            "idle": _milliseconds(IDLE_SECONDS),
            "busy": _milliseconds(min(patience, WAIT_SECONDS)),
            "wait": _milliseconds(WAIT_SECONDS),
        }
        try:
            self._server_clock.read(connection, _LOCK_SHARED if shared else _LOCK, values)
        except DBAPIError as error:
            if sql_state(error) != _LOCK_NOT_AVAILABLE:
                raise
            raise busy(patience) from None
        if self._require_standby:
            require_waiting(connection, self.description)
        connection.info[WARNINGS].clear()

    def _require_durable(self, connection: Connection) -> None:
        # Of a commit whose wait for the synchronous standby ended early, a warning is the only sign.
        if warnings := connection.info[WARNINGS]:
            raise LedgerError(f"The commit came back with a warning, so it may not be durable: {' '.join(warnings)}")

    def remove_remains(self) -> Remains:
        """Remove nothing: the space of deleted rows is the server's."""
        return Remains(
            is_gone=None,
            words="PostgreSQL keeps deleted rows until VACUUM has removed them, and their bytes until it uses the "
            "space again; VACUUM FULL writes the tables anew. Archived WAL and backups keep them as long as you do",
        )

    def insert_requests(
        self, connection: Connection, claim: Mapping[str, Any], sizes: Sequence[RequestSize]
    ) -> Sequence[int]:
        """Insert requests, and return their ids."""
        values = (*(claim[name] for name in CLAIM_COLUMNS), *map(list, zip(*sizes, strict=True)))
        inserted = connection.exec_driver_sql(_INSERT_REQUESTS, values)
        # SQL promises no order of returned rows; but requests differ in nothing except their size.
        by_size: dict[RequestSize, list[int]] = {}
        for request_id, *size in sorted(map(tuple, inserted), reverse=True):
            by_size.setdefault((size[0], size[1], size[2]), []).append(request_id)
        return [by_size[size].pop() for size in sizes]

    def insert_messages(
        self, connection: Connection, campaign_id: int, request_ids: Sequence[int], chunks: Sequence[Outgoing]
    ) -> int:
        """Insert the messages that are free, and return how many there were."""
        keys = joined([key for chunk in chunks for key in chunk.keys])
        destinations = ", ".join([number or "null" for chunk in chunks for number in chunk.destinations])
        owners = json.dumps([owner for owner, chunk in zip(request_ids, chunks, strict=True) for _ in chunk.keys])
        values = (campaign_id, keys, destinations, owners[1:-1])
        return connection.exec_driver_sql(_INSERT_MESSAGES, values).rowcount

    def _holders(self, connection: Connection, campaign_id: int, keys: bytes, count: int) -> Sequence[str | None]:
        return connection.exec_driver_sql(_HOLDERS, (count, campaign_id, keys)).one()


def open_postgres(
    url: URL,
    *,
    create: bool = True,
    busy_seconds: float = BUSY_SECONDS,
    require_standby: bool = False,
    read_seconds: float | None = None,
) -> PostgresBackend:
    """Open the ledger in a PostgreSQL database.

    A commit returns when it is on the server's disk: the ledger's transactions override a server that is set otherwise.
    Times are the server's, read in each transaction that writes, so that machines whose clocks differ agree on
    deadlines.

    :param require_standby: whether to refuse a server whose commits wait for no standby.
    :param read_seconds: how long a statement of a page may take, which then reads the time, too; None means no limit.
    """
    # What others wrote before a lock was free must be seen: at any other level, a transaction sees an older state.
    engine, clock = postgres_engine(url, isolation_level="READ COMMITTED"), ServerClock()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if read_seconds is not None:
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(read_seconds * 1000)}")
            clock.read(connection)

    try:
        with ledger_errors("opened"), engine.connect() as connection:
            clock.read(connection)
            if read_seconds is None:  # a page only reads
                check_durability(connection, describe(url), require_standby=require_standby)
        store = PostgresBackend(engine, describe(url), clock, busy_seconds, require_standby=require_standby)
        prepare(store, create=create)
    except SmsError:
        engine.dispose()
        raise
    return store


def _milliseconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"
