"""Connections to a ledger in PostgreSQL: only to a primary, and with a bound on every wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.postgres_timeouts import bounded_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy.engine import URL, Engine

CONNECT_SECONDS = 5
"""Seconds that connecting may take: for several hosts all together, but at least three for each."""
PAUSE_SECONDS = 5.0
"""Seconds for which a silent server is not asked again: what follows, such as a record of progress, fails at once."""
SLOW_SECONDS = 1.0
"""Seconds after which a failed connection counts as silence; a refusal comes sooner, and may end in an instant."""
PING_SECONDS = 5.0
"""Seconds that a kept connection may take to prove that it still stands, and to be returned to the pool."""
WAIT_SECONDS = 15.0
"""Seconds that one statement or commit may take where a send waits for it."""
LOOK_SECONDS = 300.0
"""Seconds that a statement which reads much of the ledger may take: on a large one, that is not silence."""

_KEEPALIVES = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Options of libpq: the kernel notices within 20 seconds that a machine is gone, even on an idle connection."""


class ConnectBackoff:
    """The time in which a server that did not respond is not asked again."""

    def __init__(self) -> None:
        self._until = 0.0

    @property
    def holds(self) -> bool:
        """Whether the server is not asked now."""
        return time.monotonic() < self._until

    def begin(self) -> None:
        """Do not ask the server for a while."""
        self._until = time.monotonic() + PAUSE_SECONDS

    def end(self) -> None:
        """Ask the server again."""
        self._until = 0.0


def postgres_engine(
    url: URL, *, name: str, wait_seconds: float = WAIT_SECONDS, backoff: ConnectBackoff | None = None, **options: Any
) -> Engine:
    """Return SQLAlchemy's engine for a ledger.

    Options in the URL take precedence over those set here.

    :param url: SQLAlchemy's, with the driver.
    :param name: the application name that the server shows.
    :param wait_seconds: how long one statement or commit may take.
    :param backoff: the time in which a silent server is not asked; None means one of its own.
    :param options: for ``create_engine``.
    :raises LedgerError: the driver cannot be used.
    """
    try:
        connect = bounded_connect(url.get_driver_name(), min(PING_SECONDS, wait_seconds))
        engine = create_engine(
            url,
            connect_args=_arguments(url, name),
            # An error must not quote its parameters: they are people's numbers.
            hide_parameters=True,
            pool_pre_ping=True,
            # Looking for it would cost one more query on each new connection.
            use_native_hstore=False,
            **options,
        )
    except (SQLAlchemyError, ImportError) as error:
        raise LedgerError(f"The ledger's driver {url.drivername} cannot be used: {error}") from error

    event.listen(engine, "do_connect", _PatientConnect(connect, backoff or ConnectBackoff()))

    @event.listens_for(engine, "connect")
    def _require_primary(dbapi_connection: Any, _record: Any) -> None:
        cursor = dbapi_connection.cursor()
        cursor.execute("SELECT pg_is_in_recovery()")
        (standby,) = cursor.fetchone()
        cursor.close()
        dbapi_connection.rollback()
        if standby:
            dbapi_connection.close()
            raise LedgerError(
                f"{describe(url)} is a standby, which lags behind its primary and takes no claim. Nothing was sent. "
                "Connect to the primary"
            )

    @event.listens_for(engine, "checkout")
    def _be_patient(dbapi_connection: Any, _record: Any, _proxy: Any) -> None:
        dbapi_connection.patience = wait_seconds

    @event.listens_for(engine, "checkin")
    def _be_impatient(dbapi_connection: Any, _record: Any) -> None:
        if dbapi_connection is not None:
            dbapi_connection.patience = min(PING_SECONDS, wait_seconds)

    return engine


class _PatientConnect:
    """Connects; a server that did not respond is not asked again at once.

    :param connect: the driver's function.
    """

    def __init__(self, connect: Callable[..., Any], backoff: ConnectBackoff) -> None:
        self._connect = connect
        self._backoff = backoff

    def __call__(self, dialect: Any, _record: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Connect, in place of SQLAlchemy.

        :raises OperationalError: the driver's.
        """
        if self._backoff.holds:
            raise dialect.dbapi.OperationalError("the server did not respond a moment ago, and is not asked again yet")
        began = time.monotonic()
        try:
            return self._connect(*arguments, **named)
        except dialect.dbapi.OperationalError:
            if time.monotonic() - began > SLOW_SECONDS:
                self._backoff.begin()
            raise


def describe(url: URL) -> str:
    """Return a description of a database, for people."""
    return f"PostgreSQL, database {url.database} at {url.host}"


def _arguments(url: URL, name: str) -> dict[str, Any]:
    hosts = str(url.host or "").count(",") + 1
    arguments: dict[str, Any] = {
        **_KEEPALIVES,
        "connect_timeout": str(max(3, CONNECT_SECONDS // hosts)),
        "application_name": name,
    }
    if hosts > 1:
        arguments["target_session_attrs"] = "read-write"
    arguments = {key: value for key, value in arguments.items() if key not in url.query}
    if url.get_driver_name() == "psycopg":
        # A statement prepared in one session does not exist in the next one that a pooler hands out.
        arguments["prepare_threshold"] = None
    return arguments
