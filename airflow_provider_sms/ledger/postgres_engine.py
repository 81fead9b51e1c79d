"""Connections to a ledger in PostgreSQL: only to a primary that keeps what it commits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, text

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.service.elapsed import elapsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import URL, Connection, Engine
    from sqlalchemy.sql.elements import TextClause

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5
"""Seconds that connecting may take: for several hosts all together, but at least three for each."""
WARNINGS = "warnings"
"""The key in a connection's ``info`` of the warnings that the server has sent."""

_KEEPALIVES = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Options of libpq: the kernel notices within 20 seconds that a machine is gone, even on an idle connection."""

# A logical subscriber and a backup are no standbys: nobody fails over to them.
_SERVER = text(
    "SELECT current_setting('fsync') = 'on', current_setting('transaction_read_only') = 'on', "
    "current_setting('synchronous_standby_names') <> '', count(its.pid), "
    "count(its.pid) FILTER (WHERE its.sync_state IN ('sync', 'quorum')) "
    "FROM (VALUES (1)) AS server LEFT JOIN pg_stat_replication AS its ON its.state IS DISTINCT FROM 'backup' "
    "AND its.pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' "
    "AND active_pid IS NOT NULL)"
)
_WAITS_FOR_STANDBY = text("SELECT current_setting('synchronous_standby_names') <> ''")
_REMEDY = (
    "On the server, set synchronous_standby_names (Patroni: synchronous_mode and synchronous_mode_strict; "
    "CloudNativePG: spec.postgresql.synchronous)"
)
_NOW = text("SELECT extract(epoch FROM clock_timestamp())")


class ServerClock:
    """Seconds since the epoch as the server last stated them, plus what has elapsed on this machine since.

    Once a claim's deadline has passed, its messages may be sent again by others, so machines must agree on the time.
    """

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        """Return what time it is."""
        return elapsed() + self._ahead

    def read(
        self, connection: Connection, statement: TextClause = _NOW, values: Mapping[str, Any] | None = None
    ) -> None:
        """Ask the server.

        :param statement: returns the time in seconds since the epoch, as the last thing that it does.
        """
        self._ahead = float(connection.execute(statement, values or {}).scalar_one()) - elapsed()


def postgres_engine(url: URL, **options: Any) -> Engine:
    """Return SQLAlchemy's engine for a ledger.

    Options in the URL take precedence over those set here.
    """
    engine = create_engine(
        url,
        connect_args=_arguments(url),
        # An error must not quote its parameters: they are people's numbers.
        hide_parameters=True,
        pool_pre_ping=True,
        # Looking for it would cost one more query on each new connection.
        use_native_hstore=False,
        **options,
    )

    @event.listens_for(engine, "connect")
    def _require_primary(dbapi_connection: Any, record: Any) -> None:
        warnings = record.info[WARNINGS] = []
        dbapi_connection.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
        (standby,) = dbapi_connection.execute("SELECT pg_is_in_recovery()").fetchone()
        dbapi_connection.rollback()
        if standby:
            dbapi_connection.close()
            raise LedgerError(
                f"{describe(url)} is a standby, which lags behind its primary and takes no claim. Nothing was sent. "
                "Connect to the primary"
            )

    return engine


def describe(url: URL) -> str:
    """Return a description of a database, for people."""
    return f"PostgreSQL, database {url.database} at {url.host}"


def _arguments(url: URL) -> dict[str, Any]:
    hosts = str(url.host or "").count(",") + 1
    arguments: dict[str, Any] = {
        **_KEEPALIVES,
        "connect_timeout": str(max(3, CONNECT_SECONDS // hosts)),
        "application_name": "airflow-provider-sms",
    }
    if hosts > 1:
        arguments["target_session_attrs"] = "read-write"
    arguments = {key: value for key, value in arguments.items() if key not in url.query}
    # A statement prepared in one session does not exist in the next one that a pooler hands out.
    arguments["prepare_threshold"] = None
    return arguments


def check_durability(connection: Connection, described: str, *, require_standby: bool) -> None:
    """Refuse a server that would lose commits when it crashes or fails over, and warn of one that may."""
    fsync, read_only, waits, standbys, synchronous = connection.execute(_SERVER).one()
    if read_only:
        raise LedgerError(
            f"{described} is read-only for this user (default_transaction_read_only), so no claim can be written. "
            "Nothing was sent"
        )
    if not fsync:
        raise LedgerError(
            f"{described} runs with fsync = off: when its machine fails, it forgets who was texted, and they are "
            "texted again. Nothing was sent. Set fsync = on"
        )
    if require_standby and not (waits and synchronous):
        lack = (
            "has no synchronous standby attached that this user may see. Bring it back, or GRANT pg_monitor to the "
            "user of the connection"
            if waits
            else f"waits for no standby (synchronous_standby_names is empty). {_REMEDY}"
        )
        raise LedgerError(f"[sms] require_synchronous_standby is set, and {described} {lack}. Nothing was sent")
    if standbys and not waits:
        log.warning(
            "%s has %d standby %s: after a failover the last claims are missing, and "
            "people are texted twice. %s. [sms] require_synchronous_standby = True refuses such a server",
            described,
            standbys,
            by_count(standbys, "server and does not wait for it", "servers and waits for none of them"),
            _REMEDY,
        )


def require_waiting(connection: Connection, described: str) -> None:
    """Refuse to write in a transaction whose commit would wait for no standby."""
    if not connection.execute(_WAITS_FOR_STANDBY).scalar():
        raise LedgerError(
            f"{described} no longer waits for a standby: synchronous_standby_names is empty, and [sms] "
            f"require_synchronous_standby is set. Nothing more is sent. {_REMEDY}"
        )
