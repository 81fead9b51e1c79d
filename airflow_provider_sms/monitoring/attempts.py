"""The attempts that sent a campaign: what they reported."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import exists, func, select

from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import IS_PAUSED
from airflow_provider_sms.ledger.model import CLAIMED, SUPERSEDED, UNKNOWN, AttemptState, Claimant
from airflow_provider_sms.ledger.schema import attempt, campaign, request, superseded
from airflow_provider_sms.ledger.transitions import state_at
from airflow_provider_sms.monitoring.counts import is_sent_again
from airflow_provider_sms.monitoring.models import Attempt
from airflow_provider_sms.monitoring.status import AttemptProgress, is_silent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend

_TASK_INSTANCE = (attempt.c.dag_id, attempt.c.task_id, attempt.c.run_id, attempt.c.map_index)


def progress_by_campaign(connection: Connection, ids: Sequence[int]) -> dict[int, list[AttemptProgress]]:
    """Return the progress of attempts by campaign: for each mapped copy of a task in a run, only its last attempt."""
    found: dict[int, list[AttemptProgress]] = defaultdict(list)
    for piece in in_pieces(ids):
        # Earlier attempts of a mapped copy count for nothing, and often outnumber the last ones.
        last = (
            select(func.max(attempt.c.id))
            .where(attempt.c.campaign_id.in_(piece))
            .group_by(attempt.c.campaign_id, *_TASK_INSTANCE)
        )
        columns = (*_TASK_INSTANCE, attempt.c.state, attempt.c.updated_at, attempt.c.not_sent)
        query = select(attempt.c.campaign_id, attempt.c.id, *columns).where(attempt.c.id.in_(last))
        for row in connection.execute(query):
            found[row[0]].append(AttemptProgress(*row[1:]))
    return found


def campaign_flags(connection: Connection, now: float, ids: Sequence[int]) -> Callable[[int], dict[str, bool]]:
    """Return a function that says whether a campaign has unknown messages, has requests under way, or is paused."""
    state = state_at(now)
    # The written states come first, since they are indexed.
    unfinished = request.c.state.in_((CLAIMED, UNKNOWN))
    # Messages of a superseded request wait for the next attempt, unless they were sent again.
    waits = exists().where(superseded.c.request_id == request.c.id, ~is_sent_again())

    def having(*conditions: ColumnElement[bool]) -> set[int]:
        matching = exists().where(request.c.campaign_id == campaign.c.id, *conditions)
        queries = (select(campaign.c.id).where(matching, campaign.c.id.in_(piece)) for piece in in_pieces(ids))
        return {each for query in queries for each in connection.execute(query).scalars()}

    found = {
        "unknown": having(unfinished, state == UNKNOWN) | having(request.c.state == SUPERSEDED, waits),
        "under_way": having(unfinished, state == CLAIMED),
        "paused": set(connection.execute(select(campaign.c.id).where(IS_PAUSED)).scalars()),
    }
    return lambda campaign_id: {name: campaign_id in ids for name, ids in found.items()}


def load_attempts(
    connection: Connection, current: Mapping[int, Sequence[AttemptProgress]], now: float
) -> dict[int, list[Attempt]]:
    """Return current attempts by campaign, with all figures that they reported."""
    ids = [each.claimant_id for attempts in current.values() for each in attempts]
    queries = (select(attempt).where(attempt.c.id.in_(piece)) for piece in in_pieces(ids))
    rows = {row.id: row for query in queries for row in connection.execute(query)}
    return {
        campaign_id: [_attempt(each, rows[each.claimant_id], silent=is_silent(each, now)) for each in attempts]
        for campaign_id, attempts in current.items()
    }


def _attempt(reported: AttemptProgress, row: Any, *, silent: bool) -> Attempt:
    figures = _json_object(row.figures)
    return Attempt(reported, silent, row.try_number, row.total, row.done, row.invalid, row.rate, figures)


def failed_on_unknown(store: LedgerBackend, campaign_names: Collection[str]) -> list[Claimant]:
    """Return the attempts that failed with unknown messages of a campaign and were the last of their task instance.

    Their own requests may be unknown, or those of other tasks that they met: once these are closed, the tasks need to
    be cleared.
    """
    columns = [attempt.c[each.name] for each in fields(Claimant)]
    query = (
        select(attempt.c.state, attempt.c.figures, *columns)
        .join(campaign)
        .where(campaign.c.name.in_(campaign_names))
        .order_by(attempt.c.id)
    )
    last: dict[tuple[str, str, str, int], Claimant | None] = {}
    with store.read() as connection:
        for state, figures, *values in connection.execute(query):
            who = Claimant(*values)
            failed = state == AttemptState.FAILED and _json_object(figures).get("unknown", 0) > 0
            last.pop(who.task_instance, None)
            last[who.task_instance] = who if failed else None
    return [who for who in last.values() if who is not None]


def _json_object(text: str | None) -> dict[str, Any]:
    """Return the object that a JSON text holds; empty for no text or another kind of value."""
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
