"""Airflow's audit log: who acted on a campaign or looked up a number, under Browse > Audit Log.

The ledger records acts as well, but not who asked whether a number was texted, and nobody watches it. A row is
committed before the act that it announces: an act that cannot be recorded is not done.

Airflow shows a row to everybody who may read the audit log of the row's DAG, and a row without a DAG to everybody who
may read the audit log at all. So a row holds ids, and a number only masked and as a keyed digest.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import AuditLogError
from airflow_provider_sms.masking import mask_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy.orm import Session

log = logging.getLogger(__name__)

MAX_IDS = 1000
"""Ids that a row lists: MySQL's column holds 64 KB."""
_DIGEST_BYTES = 16
"""128 bits: no two numbers of a service share a digest."""
_KEY_BYTES = 64
"""The longest key of BLAKE2b; a Fernet key is 44 characters long."""


def record_event(event: str, *, user: str, dag_id: str | None = None, details: Mapping[str, Any]) -> None:
    """Write one row of Airflow's audit log, and commit it.

    :param event: at most 60 characters, for example ``sms.pause``.
    :param user: name of the user of Airflow, or of the operating system for a command.
    :param dag_id: users who may read this DAG's audit log see the row; None means all who may read the audit log.
    :param details: values that can be written as JSON, without numbers and texts; see :func:`number_details`.
    :raises AuditLogError: Airflow's database did not take the row; the caller must not act then.
    """
    with _session() as session:
        row = Log(event, owner=user, owner_display_name=user, extra=json.dumps(details), dag_id=dag_id)
        session.add(row)


class AuditedAct:
    """An act of a person, which is in the audit log before it is done.

    :param event: as for :func:`record_event`.
    :param user: as for :func:`record_event`.
    :param details: as for :func:`record_event`; more may be added.
    """

    def __init__(self, event: str, user: str, details: Mapping[str, Any]) -> None:
        self.details = dict(details)
        self._event = event
        self._user = user
        self._dag_id: str | None = None

    def begin(self, dag_id: str | None = None) -> None:
        """Record the act, just before it is done.

        :param dag_id: as for :func:`record_event`.
        :raises AuditLogError: the act is not recorded; the caller must not do it then.
        """
        self._dag_id = dag_id
        self._record(self._event)

    def note_shown(self, **details: Any) -> None:
        """Record what is about to be shown, as the event ``EVENT.shown``.

        :param details: ids of what is shown.
        :raises AuditLogError: this is not recorded; the caller must not show it then.
        """
        self._record(f"{self._event}.shown", **details)

    def note_done(self, **details: Any) -> None:
        """Record that the act is complete, as the event ``EVENT.done``.

        :param details: counts of what was changed.
        :raises AuditLogError: it is not recorded, though it is done.
        """
        self._record(f"{self._event}.done", **details)

    def note_error(self, error: Exception) -> None:
        """Record that the act was not done: ``EVENT.refused`` for an HTTP status below 500, else ``EVENT.failed``."""
        status = getattr(error, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        end = "refused" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "failed"
        # The words of other errors may name the database's host or the ledger's file.
        reason = str(getattr(error, "detail", type(error).__name__))
        try:
            self._record(f"{self._event}.{end}", reason=reason)
        except AuditLogError as unrecorded:
            log.warning("%s.%s by %s is not in the audit log: %s", self._event, end, self._user, unrecorded)

    def _record(self, event: str, **more: Any) -> None:
        record_event(event, user=self._user, dag_id=self._dag_id, details={**self.details, **more})


@contextmanager
def audited(event: str, *, user: str, details: Mapping[str, Any]) -> Iterator[AuditedAct]:
    """Record an error that ends an act, from the check of rights on; :meth:`AuditedAct.begin` records the act itself.

    :param event: as for :func:`record_event`.
    :param user: as for :func:`record_event`.
    :param details: as for :func:`record_event`.
    """
    act = AuditedAct(event, user, details)
    try:
        yield act
    except AuditLogError:
        raise
    except Exception as error:
        act.note_error(error)
        raise


def seconds_until_allowed(*events: str, user: str, limit: int, seconds: float) -> float:
    """Return the seconds for which a user has to wait before causing one of these events again; 0 means no wait.

    The rows of the audit log are counted, since the processes of a web server share them and nothing else. Record the
    event first, so that simultaneous requests count one another.

    :param limit: the rows of all these events together that are allowed in ``seconds``, the one just recorded included.
    :raises AuditLogError: Airflow's database cannot be read.
    """
    now = datetime.now(timezone.utc)
    since = now - timedelta(seconds=seconds)
    query = (
        select(Log.dttm)
        .where(Log.event.in_(events), Log.owner == user, Log.dttm > since)
        .order_by(Log.dttm.desc())
        .limit(limit + 1)
    )
    with _session() as session:
        latest: list[Any] = list(session.execute(query).scalars())
    if len(latest) <= limit:
        return 0
    # The next event is allowed once the last of these rows, and those before it, are too old to count.
    return float((latest[limit - 1] - since).total_seconds())


def number_details(number: str) -> dict[str, str]:
    """Return a number as the audit log may hold it: masked, and as a digest by which an auditor finds it.

    :param number: its digits with country code.
    """
    return {"number": mask_number(number), "number_digest": number_digest(number)}


def number_digest(number: str) -> str:
    """Return a digest of a number, the same one in every process of one Airflow; empty if Airflow has no Fernet key.

    There are few enough numbers to try them all, so a digest without a key would reveal the number to any reader. The
    key is the first of ``[core] fernet_key``: all components share it, while ``[api] secret_key`` may be a random one
    for each process. Another Fernet key yields other digests.

    :param number: its digits with country code; other characters do not count.
    """
    key = str(conf.get("core", "fernet_key", fallback="") or "").split(",")[0].strip().encode()
    if not key:
        return ""
    digits = "".join(filter(str.isdecimal, number)).encode()
    return blake2b(digits, key=key[:_KEY_BYTES], digest_size=_DIGEST_BYTES, person=b"sms: number").hexdigest()


@contextmanager
def _session() -> Iterator[Session]:
    try:
        with create_session() as session:
            yield session
    except (SQLAlchemyError, RuntimeError) as error:  # the latter where Airflow has no database, as in a task
        # Without the words of SQLAlchemy, which hold the row, and of the driver, which name the database's host.
        raise AuditLogError(
            f"Airflow's audit log could not be written ({type(error).__name__}), and nothing is done without it. "
            "Nothing was changed or shown. Try again once Airflow's database can be reached; a command needs the "
            "configuration of the Airflow whose tasks send, and a new Airflow needs airflow db migrate first"
        ) from error
