"""Airflow's audit log: who acted on a campaign or looked up a number, under Browse > Audit Log.

The ledger records acts as well, but not who asked whether a number was texted, and nobody watches it. A row is
committed before the act that it announces: an act that cannot be recorded is not done.

Airflow shows a row to everybody who may read the audit log of the row's DAG, and a row without a DAG to everybody who
may read the audit log at all. So a row holds ids, and no number except masked and as a keyed digest.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
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

_DIGEST_BYTES = 16
"""128 bits: no two numbers of a service share a digest."""
_KEY_BYTES = 64
"""The longest key of BLAKE2b; a Fernet key is 44 characters long."""


def record_event(event: str, *, user: str, dag_id: str | None = None, details: Mapping[str, Any]) -> None:
    """Write one row of Airflow's audit log, and commit it.

    :param event: at most 60 characters, for example ``sms.pause``.
    :param user: name of the user of Airflow, or of the operating system for a command.
    :param dag_id: whoever may read this DAG's audit log sees the row; None means everybody who may read the audit log.
    :param details: what can be written as JSON, without numbers and texts; see :func:`number_details`.
    :raises AuditLogError: Airflow's database did not take it; do nothing then.
    """
    with _session() as session:
        row = Log(event, owner=user, owner_display_name=user, extra=json.dumps(details), dag_id=dag_id)
        session.add(row)


def seconds_until_allowed(event: str, *, user: str, limit: int, seconds: float) -> float:
    """Return how long a user has to wait who may cause an event so many times in so many seconds; 0 means no wait.

    The rows of the audit log are counted, since the processes of a web server share them and nothing else.
    Record the event first: then requests at the same time count one another.

    :param limit: rows allowed, the one just recorded included.
    :raises AuditLogError: Airflow's database cannot be read.
    """
    now = datetime.now(timezone.utc)
    since = now - timedelta(seconds=seconds)
    query = (
        select(Log.dttm)
        .where(Log.event == event, Log.owner == user, Log.dttm > since)
        .order_by(Log.dttm.desc())
        .limit(limit + 1)
    )
    with _session() as session:
        latest: list[Any] = list(session.execute(query).scalars())
    if len(latest) <= limit:
        return 0
    # The next attempt is allowed once the last of these, and those before it, are too old to count.
    return float((latest[limit - 1] - since).total_seconds())


def number_details(number: str) -> dict[str, str]:
    """Return a number as the audit log may hold it: masked, and as a digest by which an auditor finds it.

    :param number: its digits with country code.
    """
    return {"number": mask_number(number), "number_digest": number_digest(number)}


def number_digest(number: str) -> str:
    """Return a digest of a number, the same one in every process of one Airflow; empty if Airflow has no Fernet key.

    Numbers are few enough to try them all, so a digest without a key would tell the number to whoever reads the log.
    The key is the first of ``[core] fernet_key``: all components share it, while ``[api] secret_key`` may be a random
    one for each process. Another Fernet key makes other digests.

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
        # Without SQLAlchemy's words, which hold the row, and the driver's, which name the database's host.
        raise AuditLogError(
            f"Airflow's audit log could not be written ({type(error).__name__}), and nothing is done without it. "
            "Nothing was changed or shown. Try again once Airflow's database can be reached"
        ) from error
