"""The attempts of a task: each is registered before it claims anything, and reports how far it is.

Each process of an attempt has a row of its own, which no other process writes: one that hung and reports late reports
only about itself. What it reports never decides whether a message goes out. One rule reads it: a purge keeps the
campaign of an attempt that began or is deferred.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, insert, or_, select, update

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.backend import LEDGER_LOCK, campaign_lock, new_id
from airflow_provider_sms.ledger.campaigns import find_campaign
from airflow_provider_sms.ledger.model import AttemptState, Claimant
from airflow_provider_sms.ledger.schema import attempt, campaign, request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend

ADOPTION = 0
"""The try number under which the ledger records that a person adopted it for a task instance."""

PATIENCE_SECONDS = 1.0
"""Seconds that a record of progress waits for another process's commit: the thread that records it handles Airflow's
signals, and SQLite, which waits in C, lets none through."""


def of_task(who: Claimant) -> ColumnElement[bool]:
    """Return the condition for attempts of the same task instance."""
    return and_(of_run(who), attempt.c.map_index == who.map_index)


def of_run(who: Claimant) -> ColumnElement[bool]:
    """Return the condition for attempts of a task, or of a mapped copy of it, in the same run."""
    return and_(attempt.c.dag_id == who.dag_id, attempt.c.task_id == who.task_id, attempt.c.run_id == who.run_id)


def has_trace(store: LedgerBackend, who: Claimant, *, of_attempt: bool = False) -> bool:
    """Return whether any attempt of this task instance has used this ledger, or a person has adopted it for the task.

    :param of_attempt: whether it must have been this very attempt, before a deferral.
    """
    query = select(attempt.c.id).where(of_task(who))
    if of_attempt:
        query = query.where(attempt.c.try_number.in_((who.try_number, ADOPTION)))
    return store.fetch(lambda connection: connection.execute(query.limit(1)).scalar()) is not None


def register(store: LedgerBackend, who: Claimant, clock: Callable[[], float] | None = None) -> int:
    """Record an attempt in the ledger, before it claims anything, and return its id there."""
    now = clock or store.clock
    return store.save(LEDGER_LOCK, lambda connection: _insert(connection, who.columns(), now()), shared=True)


def adopt(store: LedgerBackend, task: Claimant) -> None:
    """Let a task instance go on with a ledger that lacks some or all of what its earlier attempts wrote.

    :param task: the task instance; its ``host`` names the person who takes responsibility, for the record.
    """
    with store.write(LEDGER_LOCK, shared=True) as connection:
        _insert(connection, {**task.columns(), "try_number": ADOPTION}, store.clock())


def _insert(connection: Connection, who: Mapping[str, Any], now: float) -> int:
    values = {**who, "started_at": now, "updated_at": now, "state": AttemptState.CHECKING}
    return new_id(connection.execute(insert(attempt).values(values)))


def processes_of_try(store: LedgerBackend, who: Claimant, claimant_id: int) -> dict[int, float]:
    """Return when the processes that made an attempt so far were registered, by their ids in the ledger.

    This one is missing where the ledger has lost it: a server that went back may give its id to another one.
    """
    own = and_(attempt.c.id == claimant_id, attempt.c.host == who.host, attempt.c.pid == who.pid)
    made = and_(of_task(who), attempt.c.try_number == who.try_number, or_(attempt.c.id < claimant_id, own))
    query = select(attempt.c.id, attempt.c.started_at).where(made)
    return {row.id: row.started_at for row in store.fetch(lambda connection: connection.execute(query).all())}


def count_requests(store: LedgerBackend, who: Claimant) -> int:
    """Return how many requests the attempts of a task instance have made, whatever their outcome."""
    made = request.c.attempt_id.in_(select(attempt.c.id).where(of_task(who)))
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(request).where(made)).scalar() or 0


def enter_campaign(connection: Connection, name: str, claimant_id: int, now: float, **values: Any) -> int:
    """Record which campaign an attempt is of, within a transaction under the campaign's lock."""
    if (found := find_campaign(connection, name)) is None:
        found = new_id(connection.execute(insert(campaign).values(name=name, created_at=now)))
    if not _put(connection, attempt.c.id == claimant_id, {"campaign_id": found, **values}):
        raise LedgerError(f"The ledger has no attempt {claimant_id}")
    return found


def _put(connection: Connection, this: ColumnElement[bool], values: Mapping[str, Any]) -> bool:
    """Write columns of an attempt, and return whether the ledger has it."""
    return connection.execute(update(attempt).where(this).values(**values)).rowcount > 0


def note_progress(
    store: LedgerBackend,
    campaign_name: str,
    claimant_id: int,
    state: str,
    *,
    patience: float | None = PATIENCE_SECONDS,
    **columns: Any,
) -> None:
    """Record the progress of an attempt, beside its claims.

    :param patience: seconds to wait for another process's commit; None means as long as a claim waits.
    :param columns: others of ``sms_attempt``, with dicts for those that hold JSON. One that is missing or None keeps
        what was recorded last.
    """
    now = store.clock()
    written = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in columns.items()}
    given = {"state": state, "updated_at": now, **{name: each for name, each in written.items() if each is not None}}
    here = select(campaign.c.id).where(campaign.c.name == campaign_name).scalar_subquery()
    this = and_(attempt.c.id == claimant_id, attempt.c.campaign_id == here)
    with store.write(campaign_lock(campaign_name), shared=True, patience=patience) as connection:
        if _put(connection, this, given):
            return
    with store.write(campaign_lock(campaign_name), patience=patience) as connection:
        enter_campaign(connection, campaign_name, claimant_id, now, **given)
