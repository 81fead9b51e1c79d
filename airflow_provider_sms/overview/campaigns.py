"""The list of campaigns, newest first, and one of them: how it stands."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, case, exists, func, or_, select, true

from airflow_provider_sms.overview.states import Note, current, is_silent, state_of
from airflow_provider_sms.sending.claims import ACCEPTED, CLAIMED, UNKNOWN
from airflow_provider_sms.sending.inquiry import state_at
from airflow_provider_sms.sending.schema import campaign, claimant, message, pauses, progress, request

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.overview.reader import LedgerReader

TAKEN = case((request.c.messages < request.c.submitted, request.c.messages), else_=request.c.submitted)
"""The messages that the service took of an accepted request."""


class Counts(NamedTuple):
    """What became of the messages of a campaign's requests, and what they cost.

    :param under_way: claimed, and perhaps being sent.
    """

    accepted: int = 0
    unknown: int = 0
    under_way: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)


class TryNote(NamedTuple):
    """A note that counts, and what else its try said.

    :param silent: whether its process has probably ended without a word.
    :param total: rows that can be texted; None where it is not known.
    :param done: rows that it is done with; None where it is not known.
    :param rate: messages a second; None where it is not known.
    :param figures: what it said with its state.
    :param plan: what it was to send; empty where there was none.
    """

    note: Note
    silent: bool
    conn_id: str | None
    try_number: int
    total: int | None
    done: int | None
    invalid: int | None
    rate: float | None
    figures: Mapping[str, Any]
    plan: Mapping[str, Any]


@dataclass(frozen=True)
class Campaign:
    """How a campaign stands.

    :param created_at: seconds since the epoch, as all times.
    :param tries: the notes that count, the newest first.
    """

    id: int
    name: str
    created_at: float
    state: str
    counts: Counts
    tries: Sequence[TryNote] = field(repr=False)

    @property
    def latest(self) -> Note:
        """Who sent it last."""
        return self.tries[0].note

    @property
    def total(self) -> int | None:
        """Rows that can be texted, of all its tasks; None where one of them does not know."""
        return _sum(each.total for each in self.tries)

    @property
    def done(self) -> int | None:
        """Rows that its tasks are done with; None where one of them does not know."""
        return _sum(each.done for each in self.tries)

    @property
    def not_sent(self) -> int | None:
        """Rows that were left unsent; None where no task says."""
        return _sum(each.note.not_sent for each in self.tries)

    @property
    def invalid(self) -> int | None:
        """Rows that cannot be texted; None where a task does not say."""
        return _sum(each.invalid for each in self.tries)

    @property
    def rate(self) -> float | None:
        """Messages a second, of all its tasks together; None where none is known."""
        rates = [each.rate for each in self.tries if each.rate is not None]
        return sum(rates) if rates else None

    @property
    def dag_ids(self) -> set[str]:
        """The DAGs of the tasks that count."""
        return {each.note.dag_id for each in self.tries}


class CampaignPage(NamedTuple):
    """A page of the list.

    :param campaigns: on this page.
    :param found: campaigns on all pages.
    :param by_state: campaigns of the name that was asked for, by state.
    """

    campaigns: Sequence[Campaign]
    found: int
    by_state: Mapping[str, int]


def dag_ids(ledger: LedgerReader) -> list[str]:
    """Give the DAGs that sent anything, by name.

    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        return list(connection.execute(select(claimant.c.dag_id).distinct().order_by(claimant.c.dag_id)).scalars())


def list_campaigns(
    ledger: LedgerReader, *, hidden: Collection[str], name: str = "", state: str | None = None, limit: int, offset: int
) -> CampaignPage:
    """Give campaigns, newest first.

    :param hidden: DAGs whose campaigns are left out.
    :param name: a part of their names; empty: of any name.
    :param state: one of :data:`~airflow_provider_sms.overview.states.STATES`; None: all.
    :raises SmsError: the ledger cannot be read.
    """
    now = ledger.clock()
    with ledger.read() as connection:
        query = select(campaign.c.id, campaign.c.name, campaign.c.created_at).order_by(campaign.c.id.desc())
        if name:
            part = name.replace("/", "//").replace("%", "/%").replace("_", "/_")
            query = query.where(campaign.c.name.ilike(f"%{part}%", escape="/"))
        named = connection.execute(query).all()
        notes = _notes(connection, true())
        seen = [row for row in named if row.id in notes and not any(note.dag_id in hidden for note in notes[row.id])]
        unknown, paused = _unknown(connection, now), _paused(connection)
        counting = {row.id: current(notes[row.id]) for row in seen}
        states = {
            each: state_of(counted, unknown=each in unknown, paused=each in paused, now=now)
            for each, counted in counting.items()
        }
        by_state: dict[str, int] = defaultdict(int)
        for found in states.values():
            by_state[found] += 1
        matching = [row for row in seen if state is None or states[row.id] == state]
        # Beyond the last page, that one: campaigns may have been forgotten since somebody looked.
        start = min(offset, max(len(matching) - 1, 0) // limit * limit)
        shown = matching[start : start + limit]
        ids = [row.id for row in shown]
        counts = counts_of(connection, ids, now)
        tries = _tries(connection, {each: counting[each] for each in ids}, now)
        campaigns = [
            Campaign(row.id, row.name, row.created_at, states[row.id], counts[row.id], tries[row.id]) for row in shown
        ]
    return CampaignPage(campaigns, len(matching), by_state)


def find_campaign(ledger: LedgerReader, campaign_id: int) -> tuple[Campaign, frozenset[str]] | None:
    """Give a campaign and every DAG that ever sent of it; None where there is none.

    :raises SmsError: the ledger cannot be read.
    """
    now = ledger.clock()
    with ledger.read() as connection:
        row = connection.execute(select(campaign).where(campaign.c.id == campaign_id)).first()
        notes = _notes(connection, progress.c.campaign_id == campaign_id).get(campaign_id)
        if row is None or notes is None:
            return None
        counting = current(notes)
        state = state_of(
            counting,
            unknown=campaign_id in _unknown(connection, now, campaign.c.id == campaign_id),
            paused=campaign_id in _paused(connection),
            now=now,
        )
        counts = counts_of(connection, [campaign_id], now)[campaign_id]
        tries = _tries(connection, {campaign_id: counting}, now)[campaign_id]
    found = Campaign(row.id, row.name, row.created_at, state, counts, tries)
    return found, frozenset(note.dag_id for note in notes)


def campaigns_of_task(
    ledger: LedgerReader, dag_id: str, run_id: str, task_id: str, map_index: int | None
) -> list[tuple[int, str]]:
    """Give the ids and names of the campaigns that a task instance sent of, newest first.

    :param map_index: of a mapped copy; None: of all copies.
    :raises SmsError: the ledger cannot be read.
    """
    its = and_(claimant.c.dag_id == dag_id, claimant.c.run_id == run_id, claimant.c.task_id == task_id)
    if map_index is not None:
        its = and_(its, claimant.c.map_index == map_index)
    query = (
        select(campaign.c.id, campaign.c.name)
        .where(campaign.c.id.in_(select(progress.c.campaign_id).select_from(progress.join(claimant)).where(its)))
        .order_by(campaign.c.id.desc())
    )
    with ledger.read() as connection:
        return [(row.id, row.name) for row in connection.execute(query)]


def counts_of(connection: Connection, ids: Sequence[int], now: float) -> dict[int, Counts]:
    """Say what became of the messages of campaigns, by their ids.

    :param now: seconds since the epoch.
    """
    its = request.c.campaign_id.in_(ids)
    accepted: dict[int, int] = defaultdict(int)
    parts: dict[int, int] = defaultdict(int)
    costs: dict[int, Decimal] = defaultdict(Decimal)
    # Money is not rounded: equal costs are counted, and the sums made of decimals.
    by_cost = (
        select(request.c.campaign_id, request.c.cost, func.count(), func.sum(TAKEN), func.sum(request.c.parts))
        .where(its, request.c.state == ACCEPTED)
        .group_by(request.c.campaign_id, request.c.cost)
    )
    for campaign_id, cost, times, taken, its_parts in connection.execute(by_cost):
        accepted[campaign_id] += int(taken or 0)
        parts[campaign_id] += int(its_parts or 0)
        costs[campaign_id] += Decimal(cost or 0) * times
    state = state_at(now)
    held = (
        select(request.c.campaign_id, state, func.count())
        .select_from(request.join(message, message.c.request_id == request.c.id))
        .where(its, request.c.state.in_((CLAIMED, UNKNOWN)))
        .group_by(request.c.campaign_id, state)
    )
    open_counts = {(campaign_id, which): count for campaign_id, which, count in connection.execute(held)}
    return {
        each: Counts(
            accepted=accepted[each],
            unknown=open_counts.get((each, UNKNOWN), 0),
            under_way=open_counts.get((each, CLAIMED), 0),
            parts=parts[each],
            cost=costs[each],
        )
        for each in ids
    }


def _notes(connection: Connection, which: ColumnElement[bool]) -> dict[int, list[Note]]:
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


def _unknown(connection: Connection, now: float, which: ColumnElement[bool] | None = None) -> set[int]:
    """Give the campaigns with a request whose outcome is unknown."""
    lapsed = and_(request.c.state == CLAIMED, request.c.deadline < now)
    its = and_(request.c.campaign_id == campaign.c.id, or_(request.c.state == UNKNOWN, lapsed))
    query = select(campaign.c.id).where(exists().where(its), true() if which is None else which)
    return set(connection.execute(query).scalars())


def _paused(connection: Connection) -> set[int]:
    return set(connection.execute(select(pauses.c.campaign_id).where(pauses.c.resumed_at.is_(None))).scalars())


def _tries(connection: Connection, counting: Mapping[int, Sequence[Note]], now: float) -> dict[int, list[TryNote]]:
    ids = [note.claimant_id for notes in counting.values() for note in notes]
    query = select(progress, claimant.c.try_number).select_from(progress.join(claimant)).where(claimant.c.id.in_(ids))
    rows = {row.claimant_id: row for row in connection.execute(query)}
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


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
