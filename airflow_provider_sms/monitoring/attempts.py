"""What tries said of campaigns, and what the ledger knows of those that said nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, exists, func, or_, select, true

from airflow_provider_sms.ledger.model import CLAIMED, UNKNOWN
from airflow_provider_sms.ledger.schema import campaign, claimant, message, pauses, progress, request
from airflow_provider_sms.monitoring.models import TryNote
from airflow_provider_sms.monitoring.status import Note, is_silent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement


def notes_of(connection: Connection, which: ColumnElement[bool]) -> dict[int, list[Note]]:
    """Give notes by campaign: of the tries of a task, or of a mapped copy, in one run the last one's only."""
    whose = (claimant.c.dag_id, claimant.c.task_id, claimant.c.run_id, claimant.c.map_index)
    # The earlier ones count for nothing, and there are often more of them than of those that do.
    last = (
        select(func.max(progress.c.claimant_id))
        .select_from(progress.join(claimant))
        .where(which)
        .group_by(progress.c.campaign_id, *whose)
    )
    query = (
        select(
            progress.c.campaign_id,
            progress.c.claimant_id,
            *whose,
            progress.c.state,
            progress.c.updated_at,
            progress.c.not_sent,
        )
        .select_from(progress.join(claimant))
        .where(progress.c.claimant_id.in_(last))
    )
    notes: dict[int, list[Note]] = defaultdict(list)
    for row in connection.execute(query):
        notes[row[0]].append(Note(*row[1:]))
    return notes


def unnoted(connection: Connection, which: ColumnElement[bool]) -> dict[int, list[Note]]:
    """Give in place of notes what is known of the tries of campaigns that have none: that they made requests."""
    noted = exists().where(progress.c.campaign_id == campaign.c.id)
    without = list(connection.execute(select(campaign.c.id).where(which, ~noted)).scalars())
    query = (
        select(
            request.c.campaign_id,
            claimant.c.id,
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            func.max(func.coalesce(request.c.finished_at, request.c.claimed_at)),
        )
        .select_from(request.join(claimant))
        .where(request.c.campaign_id.in_(without))
        .group_by(
            request.c.campaign_id,
            claimant.c.id,
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
        )
    )
    found: dict[int, list[Note]] = defaultdict(list)
    for row in connection.execute(query) if without else ():
        found[row[0]].append(Note(*row[1:6], state="earlier", updated_at=row[6]))
    return found


def of_dags(connection: Connection, dags: Collection[str]) -> set[int]:
    """Give the campaigns of which a DAG ever claimed anything, whether it said so or not."""
    if not dags:
        return set()
    tries = select(claimant.c.id).where(claimant.c.dag_id.in_(dags))
    return set(
        connection.execute(select(request.c.campaign_id).where(request.c.claimant_id.in_(tries)).distinct()).scalars()
    )


def standing_of(
    connection: Connection, now: float, which: ColumnElement[bool] | None = None
) -> Callable[[int], dict[str, bool]]:
    """Give what says of a campaign, by its id, whether its requests are unknown or under way, and whether it is paused.

    :param which: campaigns to be looked at; None: all.
    """
    # An unknown request whose messages were all sent anew is nobody's concern any more.
    holds = exists().where(message.c.request_id == request.c.id)
    lapsed = and_(request.c.state == CLAIMED, request.c.deadline < now)
    unknown = and_(or_(request.c.state == UNKNOWN, lapsed), holds)
    under_way = and_(request.c.state == CLAIMED, request.c.deadline >= now)

    def having(what: ColumnElement[bool]) -> set[int]:
        its = exists().where(request.c.campaign_id == campaign.c.id, what)
        query = select(campaign.c.id).where(its, true() if which is None else which)
        return set(connection.execute(query).scalars())

    found = {
        "unknown": having(unknown),
        "under_way": having(under_way),
        "paused": set(connection.execute(select(pauses.c.campaign_id).where(pauses.c.resumed_at.is_(None))).scalars()),
    }
    return lambda campaign_id: {name: campaign_id in ids for name, ids in found.items()}


def tries_of(connection: Connection, counting: Mapping[int, Sequence[Note]], now: float) -> dict[int, list[TryNote]]:
    """Give what else the tries of notes said, by campaign.

    :param now: seconds since the epoch.
    """
    ids = [note.claimant_id for notes in counting.values() for note in notes]
    query = (
        select(progress, claimant.c.try_number, claimant.c.id)
        .select_from(claimant.outerjoin(progress))
        .where(claimant.c.id.in_(ids))
    )
    rows = {row.id: row for row in connection.execute(query)}
    return {
        each: [_try(note, rows[note.claimant_id], silent=is_silent(note, now)) for note in notes]
        for each, notes in counting.items()
    }


def _try(note: Note, row: Any, *, silent: bool) -> TryNote:
    return TryNote(
        note,
        silent,
        row.conn_id,
        row.try_number,
        row.total,
        row.done,
        row.invalid,
        row.rate,
        object_of(row.figures),
        object_of(row.plan),
    )


def object_of(text: str | None) -> dict[str, Any]:
    """Give an object of JSON; empty where there is none."""
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
