"""Which ledger is used: what Airflow's connections and configuration say."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, conf

from airflow_provider_sms.exceptions import InputError, SmsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.models.connection import Connection as AirflowConnection
    from sqlalchemy.engine import URL

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.reader import LedgerReader

log = logging.getLogger(__name__)

LOCAL_EXECUTORS = frozenset({"LocalExecutor", "SequentialExecutor", "DebugExecutor", "InProcessExecutor"})
"""Executors that run every task on the scheduler's machine."""

LIBPQ_EXTRAS = frozenset(
    (  # noqa: SIM905  # a list would be a page
        "application_name channel_binding client_encoding connect_timeout fallback_application_name gssdelegation "
        "gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname "
        "load_balance_hosts max_protocol_version min_protocol_version options passfile require_auth requirepeer "
        "scram_client_key scram_server_key service servicefile ssl_max_protocol_version ssl_min_protocol_version "
        "sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslkeylogfile sslmode sslnegotiation sslpassword "
        "sslrootcert sslsni target_session_attrs tcp_user_timeout"
    ).split()
)
"""Extras of a connection that are PostgreSQL's own: all that its library takes, but for the fields of the connection.

What else is there is for Airflow's hook: ``cursor``, ``iam``, ``sqlalchemy_query``, and so on.
"""

_PRIMARIES = ("read-write", "primary")


class ConnectionLike(Protocol):
    """The fields of Airflow's connection that are read here."""

    conn_id: str
    conn_type: str | None
    host: str | None
    login: str | None
    password: str | None
    schema: str | None
    port: int | None


def open_ledger(ledger_conn_id: str | None) -> LedgerBackend:
    """Open the ledger for a task, and make it where there is none.

    It is the connection given, else ``[sms] ledger_conn_id``, else a file of this machine.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None or empty for the configuration's.
    :raises InputError: the connection, or a file where tasks run on several machines, cannot be the ledger.
    :raises LedgerError: it cannot be opened.
    """
    if conn_id := _configured(ledger_conn_id):
        from airflow_provider_sms.ledger.postgres import open_postgres

        connection = BaseHook.get_connection(conn_id)
        url = postgres_url(connection, connection.extra_dejson)
        return open_postgres(url, require_standby=_requires_standby())
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    if not conf.getboolean("sms", "allow_local_ledger", fallback=False):
        refuse_several_machines(conf.get("core", "executor", fallback="LocalExecutor"), os.environ)
    return open_sqlite(_path())


@contextmanager
def look_into_ledger(ledger_conn_id: str | None) -> Iterator[LedgerBackend | None]:
    """Open the ledger for a task that sends nothing, where there is one.

    :param ledger_conn_id: as for :func:`open_ledger`.
    :return: None where there is none, or it cannot be opened.
    """
    store: LedgerBackend | None = None
    try:
        if _configured(ledger_conn_id) or _path().is_file():
            store = open_ledger(ledger_conn_id)
    except (AirflowNotFoundException, SmsError) as error:
        log.info("The plan is without the ledger, which cannot be opened: %s", error)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def open_existing_ledger(
    ledger_conn_id: str | None, *, connection: Callable[[str], Any] | None = None
) -> LedgerBackend:
    """Open the ledger that tasks made, wherever they run, for a person at a terminal or to add to it.

    :param ledger_conn_id: as for :func:`open_ledger`.
    :param connection: gives an Airflow connection; None: as it is read outside of tasks.
    :raises InputError: there is none, or the connection cannot be one; says where it was looked for.
    :raises LedgerError: it cannot be opened.
    """
    from airflow_provider_sms.ledger.open import require_ledger

    if conn_id := _configured(ledger_conn_id):
        from airflow_provider_sms.ledger.postgres import open_postgres
        from airflow_provider_sms.ledger.postgres_engine import LOOK_SECONDS

        stored = (connection or _stored_connection)(conn_id)
        url = postgres_url(stored, stored.extra_dejson)
        require_ledger(url, f"The database {url.database!r} of connection {conn_id!r}")
        # At a terminal nobody waits for a send, and one statement may close or forget much.
        return open_postgres(url, wait_seconds=LOOK_SECONDS, require_standby=_requires_standby())
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    path = _path()
    if not path.is_file():
        raise InputError(
            f"There is no ledger at {path}. Set AIRFLOW_HOME, [sms] ledger_path or --ledger-conn-id as it is for the "
            "tasks that send"
        )
    require_ledger(sqlalchemy.engine.URL.create("sqlite", database=str(path)), f"The file {path}")
    return open_sqlite(path)


def ledger_to_read() -> LedgerReader:
    """Give the configured ledger for a page that only looks at it; it stays open for the next one.

    :raises InputError: there is none, or the connection cannot be one; says where it was looked for.
    :raises LedgerError: it cannot be opened.
    """
    if conn_id := _configured(None):
        connection = _stored_connection(conn_id)
        url = postgres_url(connection, connection.extra_dejson)
        return _postgres_to_read(url)
    path = _path()
    if not path.is_file():
        raise InputError(f"There is no ledger at {path} yet. The first task that sends makes one")
    from airflow_provider_sms.ledger.reader import read_sqlite

    return read_sqlite(path)


@lru_cache(maxsize=4)
def _postgres_to_read(url: URL) -> LedgerReader:
    from airflow_provider_sms.ledger.reader import read_postgres

    return read_postgres(url)


def _configured(ledger_conn_id: str | None) -> str:
    return str(ledger_conn_id or conf.get("sms", "ledger_conn_id", fallback=""))


def _requires_standby() -> bool:
    return bool(conf.getboolean("sms", "require_synchronous_standby", fallback=False))


def _path() -> Path:
    configured = conf.get("sms", "ledger_path", fallback="")
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow"))
    # A relative path means AIRFLOW_HOME, not the folder that a task happens to run in: that would be another ledger.
    return home.expanduser() / Path(configured or "sms_ledger.db").expanduser()


def _stored_connection(conn_id: str) -> AirflowConnection:
    """Read a connection outside of tasks, where the task's own way does not look into Airflow's database."""
    from airflow.configuration import ensure_secrets_loaded

    for backend in ensure_secrets_loaded():
        # As Airflow does it: a backend that cannot be reached does not keep the next one from being asked.
        with suppress(Exception):
            connection: AirflowConnection | None = backend.get_connection(conn_id=conn_id)
            if connection is not None:
                return connection
    raise InputError(f"ledger_conn_id: Airflow has no connection {conn_id!r}")


def refuse_several_machines(executors: str, environment: Mapping[str, str]) -> None:
    """Refuse a ledger in a file where tasks run on machines that would not share it.

    :param executors: Airflow's ``core.executor``, one or several.
    :param environment: of the process; a Kubernetes worker says what it is there.
    :raises InputError: says what to set.
    """
    # Teams are set apart by semicolons: LocalExecutor;team_a=CeleryExecutor,KubernetesExecutor. Forms of an entry:
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
            "PostgreSQL; where all tasks do share one local disk, set [sms] allow_local_ledger to True"
        )


def postgres_url(connection: ConnectionLike, extra: Mapping[str, Any]) -> URL:
    """Give SQLAlchemy's URL of an Airflow connection to PostgreSQL.

    :param extra: of the connection; what of it is PostgreSQL's own is passed on.
    :raises InputError: it is of another kind, or may lead to a standby, or there is no driver.
    """
    if connection.conn_type not in ("postgres", "postgresql"):
        raise InputError(
            f"ledger_conn_id: connection {connection.conn_id!r} is of type {connection.conn_type!r}; the ledger needs "
            "one to PostgreSQL"
        )
    own = {name: str(value) for name, value in extra.items() if name in LIBPQ_EXTRAS and value not in (None, "")}
    if own.get("target_session_attrs", _PRIMARIES[0]) not in _PRIMARIES:
        raise InputError(
            f"ledger_conn_id: connection {connection.conn_id!r} has target_session_attrs "
            f"{own['target_session_attrs']!r}, which may lead to a standby, and a standby does not know the last "
            "claims. Set it to 'read-write', or leave it out"
        )
    if own.get("connect_timeout", "1").strip().startswith(("0", "-")):
        # Which means for ever.
        del own["connect_timeout"]
    return sqlalchemy.engine.URL.create(
        f"postgresql+{_driver()}",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query=own,
    )


def _driver() -> str:
    # SQLAlchemy 1.4, which Airflow 2 has, does not know psycopg 3.
    if find_spec("psycopg") and not sqlalchemy.__version__.startswith("1."):
        return "psycopg"
    if find_spec("psycopg2"):
        return "psycopg2"
    raise InputError("ledger_conn_id: no driver for PostgreSQL: pip install 'airflow-provider-sms[postgres]'")
