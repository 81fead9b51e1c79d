"""Opening the ledger that Airflow's connections and configuration name."""

from __future__ import annotations

import logging
import math
import os
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, conf

from airflow_provider_sms.exceptions import InputError, NoConnectionError, SmsError
from airflow_provider_sms.hooks.stored_connection import stored_connection
from airflow_provider_sms.ledger.transitions import PATIENCE_SECONDS
from airflow_provider_sms.masking import MOST_OF_AN_ID, mask_numbers_in, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.providers.common.compat.sdk import Connection as AirflowConnection
    from sqlalchemy.engine import URL

    from airflow_provider_sms.hooks.connection import ConnectionLike
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.reader import LedgerReader

log = logging.getLogger(__name__)

LOCAL_EXECUTORS = frozenset({"LocalExecutor", "SequentialExecutor", "DebugExecutor", "InProcessExecutor"})
"""Executors that run every task on the scheduler's machine."""

LIBPQ_EXTRAS = frozenset(
    (  # noqa: SIM905  # a list would take a page
        "application_name channel_binding client_encoding connect_timeout fallback_application_name gssdelegation "
        "gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname "
        "load_balance_hosts max_protocol_version min_protocol_version options passfile require_auth requirepeer "
        "scram_client_key scram_server_key service servicefile ssl_max_protocol_version ssl_min_protocol_version "
        "sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslkeylogfile sslmode sslnegotiation sslpassword "
        "sslrootcert sslsni target_session_attrs tcp_user_timeout"
    ).split()
)
"""Extras of a connection that libpq takes as parameters, without those that are fields of the connection.

Other extras, such as ``cursor``, ``iam`` and ``sqlalchemy_query``, are meant for Airflow's hook.
"""

_PRIMARIES = ("read-write", "primary")


def open_ledger(ledger_conn_id: str | None) -> LedgerBackend:
    """Open the ledger for a task, and create it if there is none.

    The ledger is that of the given connection, else of ``[sms] ledger_conn_id``, else a file on this machine.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None or empty means the configured one.
    :raises InputError: there is no such connection, it cannot hold a ledger, or the ledger is a file and tasks run on
        several machines.
    :raises LedgerError: it cannot be opened.
    """
    if conn_id := _configured_conn_id(ledger_conn_id):
        from airflow_provider_sms.ledger.postgres import open_postgres

        connection = _ledger_connection(conn_id, ledger_conn_id, BaseHook.get_connection)
        url = postgres_url(connection, connection.extra_dejson)
        return open_postgres(url, require_standby=_requires_standby())
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    if not _is_on("allow_local_ledger"):
        refuse_several_machines(conf.get("core", "executor", fallback="LocalExecutor"), os.environ)
    return open_sqlite(_ledger_path())


@contextmanager
def open_ledger_if_present(ledger_conn_id: str | None) -> Iterator[LedgerBackend | None]:
    """Open the ledger for a task that sends nothing, and create none.

    :param ledger_conn_id: as for :func:`open_ledger`.
    :returns: None if there is no ledger, or it cannot be opened.
    """
    store: LedgerBackend | None = None
    try:
        if _configured_conn_id(ledger_conn_id) or _ledger_path().is_file():
            store = open_ledger(ledger_conn_id)
    except SmsError as error:
        log.info("The plan is made without the ledger, which cannot be opened: %s", error)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def open_existing_ledger(
    ledger_conn_id: str | None,
    *,
    connection: Callable[[str], Any] | None = None,
    argument: str = "--ledger-conn-id",
) -> LedgerBackend:
    """Open the ledger that tasks created, outside a task that sends; never create one.

    :param ledger_conn_id: as for :func:`open_ledger`.
    :param connection: returns an Airflow connection; None means to read it as processes other than tasks do.
    :param argument: the option with which the user gives the connection, for the error.
    :raises InputError: there is no ledger, or the connection cannot hold one; the error names the place.
    :raises LedgerError: it cannot be opened.
    """
    from airflow_provider_sms.ledger.open import require_ledger

    if conn_id := _configured_conn_id(ledger_conn_id):
        stored = _ledger_connection(conn_id, ledger_conn_id, connection or stored_connection)
        url = postgres_url(stored, stored.extra_dejson)
        require_ledger(url, f"The database {url.database!r} of connection {conn_id!r}")
        return open_ledger_server(url)
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    path = _ledger_path()
    if not path.is_file():
        raise InputError(
            f"There is no ledger at {path}. Set AIRFLOW_HOME, [sms] ledger_path or {argument} to the values of the "
            "tasks that send"
        )
    require_ledger(sqlalchemy.engine.URL.create("sqlite", database=str(path)), f"The file {path}")
    return open_sqlite(path)


def open_ledger_server(url: URL) -> LedgerBackend:
    """Open the ledger of a server outside a task, and create or upgrade its tables.

    :param url: SQLAlchemy's.
    :raises LedgerError: it cannot be opened, or the tables cannot be made.
    """
    from airflow_provider_sms.ledger.postgres import open_postgres
    from airflow_provider_sms.ledger.postgres_engine import LOOK_SECONDS

    # A longer limit than for a send, which must not wait: one statement may close or forget many rows, or add an index.
    return open_postgres(url, wait_seconds=LOOK_SECONDS, require_standby=_requires_standby())


def ledger_reader() -> LedgerReader:
    """Return the configured ledger for a page, which only reads; it stays open for the next page.

    :raises InputError: there is no ledger, or the connection cannot hold one; the error names the place.
    :raises LedgerError: it cannot be opened.
    """
    if conn_id := _configured_conn_id(None):
        connection = _ledger_connection(conn_id, None)
        url = postgres_url(connection, connection.extra_dejson)
        return _postgres_reader(url)
    path = _ledger_path()
    if not path.is_file():
        raise InputError(f"There is no ledger at {path} yet. The first task that sends creates it")
    from airflow_provider_sms.ledger.reader import read_sqlite

    return read_sqlite(path)


@lru_cache(maxsize=4)
def _postgres_reader(url: URL) -> LedgerReader:
    from airflow_provider_sms.ledger.reader import read_postgres

    return read_postgres(url)


def configured_retention_days() -> int:
    """Return the days without activity after which a scheduled purge forgets a campaign; 0 means never.

    :raises InputError: the option is not a whole number.
    """
    configured = conf.get("sms", "retention_days", fallback="0").strip() or "0"
    if not configured.isdecimal():
        raise InputError(f"[sms] retention_days must be a whole number of days, or 0 for no end; not {configured!r}")
    return int(configured)


def configured_ledger_patience() -> float:
    """Return for how many seconds a task tries to record an outcome, and others expect it after the claim.

    :raises InputError: the option is not a number of seconds.
    """
    configured = conf.get("sms", "ledger_patience", fallback="").strip()
    try:
        seconds = float(configured) if configured else PATIENCE_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InputError(f"[sms] ledger_patience must be a number of seconds, 0 or more; not {configured!r}")
    return seconds


def _configured_conn_id(ledger_conn_id: str | None) -> str:
    return str(ledger_conn_id or conf.get("sms", "ledger_conn_id", fallback=""))


def _requires_standby() -> bool:
    return _is_on("require_synchronous_standby")


def _is_on(option: str) -> bool:
    """Return an option that is true or false, and false where it is not set.

    :raises InputError: it is neither.
    """
    try:
        return bool(conf.getboolean("sms", option, fallback=False))
    except Exception:  # noqa: BLE001  # its class depends on the version of Airflow
        raise InputError(f"[sms] {option} must be True or False, not {conf.get('sms', option)!r}") from None


def refuse_ledger_file(path: Path, argument: str) -> None:
    """Refuse to write a file over the ledger, or over one beside it with its name and a suffix.

    What the ledger wrote last is in such a file, and without it the ledger is damaged.

    :param path: of the file to write; it may be relative, or lead there by links.
    :param argument: the argument that gives the path, for the error.
    :raises InputError: names the ledger.
    """
    place = Path(os.path.realpath(path))
    for ledger in (_ledger_path(), Path(os.path.realpath(_ledger_path()))):
        suffix = place.name.removeprefix(ledger.name) if place.name.startswith(ledger.name) else None
        is_beside = suffix is not None and suffix[:1] in ("", "-", ".") and _are_same(place.parent, ledger.parent)
        if is_beside or any(_are_same(place, Path(f"{ledger}{each}")) for each in ("", "-wal", "-shm", "-journal")):
            raise InputError(
                f"{argument}: {mask_numbers_in(str(path))} is the ledger {mask_numbers_in(str(ledger))}, or a file "
                "beside it with its name: without it all campaigns would text everybody again. Choose another path"
            )


def _are_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file or folder, which is there."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _ledger_path() -> Path:
    return _in_home(conf.get("sms", "ledger_path", fallback="") or "sms_ledger.db")


def _in_home(configured: str) -> Path:
    """Return a path of this machine; a relative one is relative to AIRFLOW_HOME.

    If it were relative to a task's working directory, each task would have another.
    """
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / Path(configured).expanduser()


def _ledger_connection(
    conn_id: str, ledger_conn_id: str | None, look_up: Callable[[str], Any] = stored_connection
) -> AirflowConnection:
    """Return the connection to the ledger.

    :param ledger_conn_id: as it was given; empty where ``conn_id`` is the configured one.
    :param look_up: returns a connection; if there is none, it returns None or raises Airflow's error.
    :raises NoConnectionError: there is no such connection; the error says what to set.
    """
    connection: AirflowConnection | None
    try:
        connection = look_up(conn_id)
    except AirflowNotFoundException:
        connection = None
    if connection is None:
        where = "ledger_conn_id" if ledger_conn_id else "[sms] ledger_conn_id"
        raise NoConnectionError(
            f"{where}: Airflow has no connection {quoted(conn_id, MOST_OF_AN_ID)}",
            "Otherwise create it, of type postgres, or name the connection to the ledger",
        )
    return connection


def refuse_several_machines(executors: str, environment: Mapping[str, str]) -> None:
    """Raise if the ledger is a file, and tasks run on machines that would not share it.

    :param executors: Airflow's ``core.executor``, one or several.
    :param environment: the environment of the process, which marks a Kubernetes worker as one.
    :raises InputError: the error names what to set.
    """
    # Semicolons separate teams: LocalExecutor;team_a=CeleryExecutor,KubernetesExecutor. Forms of an entry:
    # LocalExecutor, an.import.path.Executor, alias:an.import.path.Executor; the first one of a team begins with team=
    entries = [entry for team in executors.split(";") for entry in team.split(",")]
    names = [entry.strip().replace("=", ":").rsplit(":", 1)[-1].rsplit(".", 1)[-1].strip() for entry in entries]
    remote = [name for name in names if name and name not in LOCAL_EXECUTORS]
    if environment.get("AIRFLOW_IS_K8S_EXECUTOR_POD"):
        remote.append("KubernetesExecutor")
    if remote:
        raise InputError(
            f"{remote[0]} runs tasks on several machines, which do not share the ledger's file, so people could be "
            "texted twice. Nothing was sent. Set ledger_conn_id, or [sms] ledger_conn_id, to an Airflow connection to "
            "PostgreSQL; if all tasks share one local disk, set [sms] allow_local_ledger to True"
        )


def postgres_url(connection: ConnectionLike, extra: Mapping[str, Any]) -> URL:
    """Return SQLAlchemy's URL for an Airflow connection to PostgreSQL.

    :param extra: the connection's extra; parameters of libpq are passed on.
    :raises InputError: the connection is of another type, or may lead to a standby, or there is no driver.
    """
    if connection.conn_type not in ("postgres", "postgresql"):
        raise InputError(
            f"ledger_conn_id: connection {connection.conn_id!r} is of type {connection.conn_type!r}; the ledger needs "
            "a connection to PostgreSQL"
        )
    own = {name: str(value) for name, value in extra.items() if name in LIBPQ_EXTRAS and value not in (None, "")}
    if own.get("target_session_attrs", _PRIMARIES[0]) not in _PRIMARIES:
        raise InputError(
            f"ledger_conn_id: connection {connection.conn_id!r} has target_session_attrs "
            f"{own['target_session_attrs']!r}, which may lead to a standby, and a standby does not know the last "
            "claims. Set it to 'read-write', or leave it out"
        )
    if own.get("connect_timeout", "1").strip().startswith(("0", "-")):
        # 0 and negative values mean no limit.
        del own["connect_timeout"]
    if not find_spec("psycopg"):
        raise InputError(
            "ledger_conn_id: no driver for PostgreSQL is installed: install this package with its extra 'postgres'"
        )
    return sqlalchemy.engine.URL.create(
        "postgresql+psycopg",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query=own,
    )
