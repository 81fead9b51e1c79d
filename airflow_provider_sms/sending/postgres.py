"""The ledger in PostgreSQL, for tasks that run on several machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.sending.clocks import ServerClock
from airflow_provider_sms.sending.store import (
    BUSY_SECONDS,
    CLAIM_COLUMNS,
    CONTACT_TAKEN,
    HolderRow,
    Store,
    joined,
    ledger_errors,
    numbers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy.engine import URL, Connection, Engine

    from airflow_provider_sms.sending.claims import Chunk

# Many rows come as one value: the driver writes arrays element by element, and the server reads them so. Of the keys,
# one after the other, each row takes its piece.
_INSERT_REQUESTS = (
    "INSERT INTO sms_request (campaign_id, claimant_id, kind, state, claimed_at, deadline, id, submitted) "
    "SELECT %s, %s, %s, %s, %s, %s, nextval(pg_get_serial_sequence('sms_request', 'id')), new.submitted "
    "FROM unnest(%s::int[]) AS new (submitted) RETURNING id, submitted"
)
_INSERT_MESSAGES = (
    "INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "
    "SELECT %s, substring(%s::bytea FROM (16 * new.place - 15)::int FOR 16), new.destination, new.request_id "
    "FROM unnest(string_to_array(%s, ', ', 'null')::bigint[], string_to_array(%s, ', ')::bigint[]) "
    "WITH ORDINALITY AS new (destination, request_id, place) "
    "ON CONFLICT DO NOTHING"
)
_HOLDERS = (
    "SELECT m.message_key, r.id, r.state, r.deadline, r.claimant_id, r.claimed_at FROM sms_message m "
    "JOIN sms_request r ON r.id = m.request_id WHERE m.campaign_id = %s AND m.message_key = "
    "ANY(ARRAY(SELECT substring(%s::bytea FROM 16 * place - 15 FOR 16) FROM generate_series(1, %s) AS place))"
)
_OWN_STATES = "SELECT id, state FROM sms_request WHERE id = ANY(%s::bigint[]) AND claimant_id = %s"
_INSERT_CONTACTS = (
    "INSERT INTO sms_contact (group_id, destination, request_id, claimed_at) "  # noqa: S608 - no value is in it
    "SELECT %s, new.destination, new.request_id, %s "
    "FROM unnest(string_to_array(%s, ', ')::bigint[], string_to_array(%s, ', ')::bigint[]) "
    f"AS new (destination, request_id) {CONTACT_TAKEN} %s"
)
_CONTACTS_SINCE = (
    "SELECT destination FROM sms_contact WHERE group_id = %s AND claimed_at > %s "
    "AND destination = ANY(string_to_array(%s, ', ')::bigint[])"
)
# Two numbers: in no way of a campaign's lock, which is one.
_LOCK_GROUP = f"SELECT pg_advisory_xact_lock({0x5355_4D53}, %s::int)"


# Set for the transaction, not for the session: a connection pooler hands sessions round, and refuses start options.
# What time it is, is asked of a row that is there only once the lock is had: the order within one list is not promised.
_LOCK = text(
    "WITH locked AS (SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', :wait, true), "
    "set_config('idle_in_transaction_session_timeout', :wait, true), pg_advisory_xact_lock(:lock)) "
    "SELECT extract(epoch FROM clock_timestamp()) FROM locked"
)


class PostgresStore(Store):
    """A ledger on a server; one transaction of a campaign writes at a time, so that none can wait in a circle.

    :param busy_seconds: how long to wait for another process's commit.
    """

    def __init__(self, engine: Engine, description: str, clock: ServerClock, busy_seconds: float) -> None:
        super().__init__(engine, description, clock)
        self._server_clock = clock
        self._wait = _milliseconds(busy_seconds)

    def _lock(self, connection: Connection, lock: int, patience: float | None) -> None:
        wait = self._wait if patience is None else _milliseconds(patience)
        self._server_clock.read(connection, _LOCK, {"lock": lock, "wait": wait})

    def insert_requests(
        self, connection: Connection, claim: Mapping[str, Any], submitted: Sequence[int]
    ) -> Sequence[int]:
        """Insert requests, and give their ids."""
        values = (*(claim[name] for name in CLAIM_COLUMNS), list(submitted))
        inserted = connection.exec_driver_sql(_INSERT_REQUESTS, values)
        # The order of what is returned is nowhere promised, and requests differ in nothing but their size.
        by_size: dict[int, list[int]] = {}
        for request_id, size in sorted(map(tuple, inserted), reverse=True):
            by_size.setdefault(size, []).append(request_id)
        return [by_size[size].pop() for size in submitted]

    def insert_messages(
        self, connection: Connection, campaign_id: int, request_ids: Sequence[int], chunks: Sequence[Chunk]
    ) -> int:
        """Insert the messages that are free, and say how many those were."""
        keys = joined([key for chunk in chunks for key in chunk.keys])
        destinations = json.dumps([number for chunk in chunks for number in numbers(chunk)])
        owners = json.dumps([owner for owner, chunk in zip(request_ids, chunks, strict=True) for _ in chunk.keys])
        values = (campaign_id, keys, destinations[1:-1], owners[1:-1])
        return connection.exec_driver_sql(_INSERT_MESSAGES, values).rowcount

    def lock_groups(self, connection: Connection, group_ids: Sequence[int]) -> None:
        """Wait for other transactions that write who was texted in groups of campaigns."""
        for group_id in group_ids:
            connection.exec_driver_sql(_LOCK_GROUP, (group_id,))

    def insert_contacts(
        self,
        connection: Connection,
        group_id: int,
        wanted: Mapping[str, int],
        *,
        claimed_at: float,
        unless_since: float,
    ) -> int:
        """Write who is texted in a group by which request, and say how many of them could be."""
        destinations, owners = json.dumps(list(map(int, wanted))), json.dumps(list(wanted.values()))
        values = (group_id, claimed_at, destinations[1:-1], owners[1:-1], unless_since)
        return connection.exec_driver_sql(_INSERT_CONTACTS, values).rowcount

    def contacts_since(
        self, connection: Connection, group_id: int, since: float, destinations: Sequence[str]
    ) -> Iterable[int]:
        """Say which of some people were texted in a group after a moment."""
        wanted = json.dumps(list(map(int, destinations)))[1:-1]
        return cast("Iterable[int]", connection.exec_driver_sql(_CONTACTS_SINCE, (group_id, since, wanted)).scalars())

    def own_states(self, connection: Connection, claimant_id: int, request_ids: Collection[int]) -> dict[int, str]:
        """Return the states of those of some requests that are there and were made by a claimant."""
        return dict(map(tuple, connection.exec_driver_sql(_OWN_STATES, (list(request_ids), claimant_id))))

    def holders(self, connection: Connection, campaign_id: int, keys: Sequence[bytes]) -> Iterator[HolderRow]:
        """Give the requests that hold any of the keys."""
        rows = connection.exec_driver_sql(_HOLDERS, (campaign_id, joined(keys), len(keys)))
        for key, *rest in cast("Iterable[HolderRow]", rows):
            # psycopg2 gives a memoryview.
            yield cast("HolderRow", (bytes(key), *rest))


def open_postgres(url: URL, *, busy_seconds: float = BUSY_SECONDS, clock: ServerClock | None = None) -> PostgresStore:
    """Open the ledger in a PostgreSQL database, and make its tables where there are none.

    A commit returns when it is on the server's disk: where the server was told otherwise, that is switched back for the
    ledger. Times are the server's, asked in each transaction that writes, so that machines whose clocks differ agree on
    deadlines.

    :param url: of SQLAlchemy, with the driver.
    :param busy_seconds: how long to wait for another process's commit.
    :param clock: what time it is; None: the server's, and what elapsed on this machine since it was asked.
    :raises LedgerError: when it cannot be opened.
    :raises LedgerVersionError: when a newer version of this package wrote it.
    """
    arguments: dict[str, Any] = {"connect_timeout": 10, "application_name": "airflow-provider-sms"}
    if url.get_driver_name() == "psycopg":
        # A statement that was prepared in one session is not there in the next one that a pooler gives.
        arguments["prepare_threshold"] = None
    try:
        engine = create_engine(
            url,
            connect_args=arguments,
            # What a lock was waited for must be seen: in any other level a transaction looks at what was before.
            isolation_level="READ COMMITTED",
            # An error must not quote its parameters: they are people's numbers.
            hide_parameters=True,
            pool_pre_ping=True,
            future=True,
        )
    except (SQLAlchemyError, ImportError) as error:
        raise LedgerError(f"The ledger's driver {url.drivername} cannot be used: {error}") from error
    try:
        clock = clock or ServerClock()
        with ledger_errors("opened"), engine.connect() as connection:
            clock.read(connection)
        store = PostgresStore(engine, f"PostgreSQL, database {url.database} at {url.host}", clock, busy_seconds)
        store.create_or_check()
    except LedgerError:
        engine.dispose()
        raise
    return store


def _milliseconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"
