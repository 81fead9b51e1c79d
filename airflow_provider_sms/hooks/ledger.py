"""Opening the ledger that Airflow's connections and configuration name."""

from __future__ import annotations

import logging
import math
import os
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, conf
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import InputError, NoConnectionError, SmsError
from airflow_provider_sms.hooks.connection import stored_connection
from airflow_provider_sms.ledger.backend import PATIENCE_SECONDS, Patience
from airflow_provider_sms.masking import MOST_OF_AN_ID, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

LOCAL_EXECUTORS = frozenset({"LocalExecutor", "SequentialExecutor", "DebugExecutor", "InProcessExecutor"})
"""Executors that run every task on the scheduler's machine."""

PAGE_SECONDS = 10.0
"""Seconds that a statement of a page may take on a server, and a page's whole read in a file: people wait for it."""
_FIELDS = frozenset({"host", "port", "user", "password", "dbname", "replication"})
"""Parameters of libpq that are fields of the connection, and the one that makes no session of it."""


def open_ledger(ledger_conn_id: str | None, *, create: bool = True, stop: StopFlag | None = None) -> LedgerBackend:
    """Open the ledger for a task: that of the given connection, else of ``[sms] ledger_conn_id``, else a file.

    While a server is away, it is tried again for ``[sms] ledger_patience``, now and in each later read.

    :param create: whether to create a ledger where there is none.
    :param stop: whether the task was told to stop, and waits no more.
    """
    place = _place(ledger_conn_id, BaseHook.get_connection)
    if create and isinstance(place, Path) and not _is_on("allow_local_ledger"):
        refuse_several_machines(conf.get("core", "executor", fallback="LocalExecutor"), os.environ)
    patience = Patience(configured_ledger_patience(), stop)
    store = patience.again(lambda: _open(place, create=create))
    store.patience = patience
    return store


@contextmanager
def open_ledger_if_present(ledger_conn_id: str | None) -> Iterator[LedgerBackend | None]:
    """Open the ledger for a task that sends nothing; None if there is none, or it cannot be opened."""
    store: LedgerBackend | None = None
    try:
        store = open_ledger(ledger_conn_id, create=False)
    except SmsError as error:
        log.info("Nothing is sent now, so the plan is made without a ledger: %s", error)
    with nullcontext() if store is None else closing(store):
        yield store


def open_existing_ledger(ledger_conn_id: str | None) -> LedgerBackend:
    """Open the ledger that tasks created, for a person, who does not wait for a server."""
    return _open_for_person(_place(ledger_conn_id, stored_connection))


def ledger_reader() -> LedgerBackend:
    """Return the configured ledger for a page, which only reads; that on a server stays open for the next page."""
    place = _place(None, stored_connection)
    if isinstance(place, Path):
        return _open_for_person(place, PAGE_SECONDS)
    return _kept_for_pages(place, PAGE_SECONDS)


def _place(ledger_conn_id: str | None, look_up: Callable[[str], Connection | None]) -> URL | Path:
    """Return where the ledger is, as the connection says that ``look_up`` finds."""
    # An empty id, as of a variable that is not set, is no default: that may be another ledger.
    conn_id = conf.get("sms", "ledger_conn_id", fallback="") if ledger_conn_id is None else str(ledger_conn_id)
    if not conn_id and ledger_conn_id is None:
        # If it were relative to a task's working directory, each task would have another.
        home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
        return home / Path(conf.get("sms", "ledger_path", fallback="") or "sms_ledger.db").expanduser()
    with suppress(AirflowNotFoundException):
        if (connection := look_up(conn_id)) is not None:
            return postgres_url(connection, connection.extra_dejson)
    where = "ledger_conn_id" if ledger_conn_id else "[sms] ledger_conn_id"
    raise NoConnectionError(
        f"{where}: Airflow has no connection {quoted(conn_id, MOST_OF_AN_ID)}",
        "Otherwise create it, of type postgres, or name the connection to the ledger",
    )


def _open(place: URL | Path, *, create: bool, read_seconds: float | None = None) -> LedgerBackend:
    from airflow_provider_sms.ledger.postgres import open_postgres
    from airflow_provider_sms.ledger.sqlite import open_sqlite

    if not isinstance(place, Path):
        required = _is_on("require_synchronous_standby")
        return open_postgres(place, create=create, require_standby=required, read_seconds=read_seconds)
    if not (create or place.is_file()):
        raise InputError(
            f"There is no ledger at {place}. The first task that sends creates it; if one has, set AIRFLOW_HOME and "
            "[sms] ledger_path as for the tasks, or name the connection to the ledger"
        )
    return open_sqlite(place, create=create, read_seconds=read_seconds)


def _open_for_person(place: URL | Path, read_seconds: float | None = None) -> LedgerBackend:
    store = _open(place, create=False, read_seconds=read_seconds)
    store.patience = Patience(0.0)
    return store


_kept_for_pages = lru_cache(maxsize=4)(_open_for_person)


def configured_retention_days() -> int:
    """Return the days without activity after which a scheduled purge forgets a campaign; 0 means never."""
    configured = conf.get("sms", "retention_days", fallback="0").strip() or "0"
    if not configured.isdecimal():
        raise InputError(f"[sms] retention_days must be a whole number of days, or 0 for no end; not {configured!r}")
    return int(configured)


def configured_ledger_patience() -> float:
    """Return for how many seconds a task tries again while its ledger is away; others await its outcomes as long."""
    configured = conf.get("sms", "ledger_patience", fallback="").strip()
    try:
        seconds = float(configured) if configured else PATIENCE_SECONDS
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InputError(f"[sms] ledger_patience must be a number of seconds, 0 or more; not {configured!r}")
    return seconds


def _is_on(option: str) -> bool:
    try:
        return bool(conf.getboolean("sms", option, fallback=False))
    except Exception:  # noqa: BLE001  # its class depends on the version of Airflow
        raise InputError(f"[sms] {option} must be True or False, not {conf.get('sms', option)!r}") from None


def has_task_instance(*, dag_id: str, task_id: str, run_id: str, map_index: int) -> bool:
    """Return for a command whether Airflow's database has a task instance, with -1 for a task that is not mapped."""
    from airflow.models.taskinstance import TaskInstance

    try:
        found = TaskInstance.get_task_instance(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    except (SQLAlchemyError, RuntimeError) as error:  # the latter where Airflow has no database
        raise InputError(
            f"Airflow's database cannot be read ({type(error).__name__}), so nothing tells whether it has this task. "
            "Nothing was done. Run the command with the configuration of the Airflow whose tasks send"
        ) from error
    return found is not None


def refuse_several_machines(executors: str, environment: Mapping[str, str]) -> None:
    """Raise if Airflow's executors, or a Kubernetes worker's environment, tell of machines that share no file."""
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


def postgres_url(connection: Connection, extra: Mapping[str, Any]) -> URL:
    """Return SQLAlchemy's URL for an Airflow connection to PostgreSQL, with the parameters of libpq in its extra."""
    if connection.conn_type not in ("postgres", "postgresql"):
        raise InputError(
            f"ledger_conn_id: connection {connection.conn_id!r} is of type {connection.conn_type!r}; the ledger needs "
            "a connection to PostgreSQL"
        )
    try:
        from psycopg.pq import Conninfo
    except ImportError:
        raise InputError(
            "ledger_conn_id: no driver for PostgreSQL is installed: install this package with its extra 'postgres'"
        ) from None
    # Other extras, such as cursor, iam and sqlalchemy_query, are meant for Airflow's hook.
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - _FIELDS
    return URL.create(
        "postgresql+psycopg",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query={name: str(value) for name, value in extra.items() if name in known and value not in (None, "")},
    )
