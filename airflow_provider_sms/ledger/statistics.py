"""Counts of campaigns: messages and requests by state, parts, costs, and how long requests take.

The campaign's page takes its counts of requests from here. Those of rows without a request, such as invalid ones, are
in the progress that each attempt notes: :mod:`~airflow_provider_sms.ledger.attempts`.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sqlalchemy import and_, case, func, or_, select

from airflow_provider_sms.ledger.account import BALANCE
from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.schema import attempt, campaign, message, request, superseded
from airflow_provider_sms.ledger.transitions import state_at, under_way

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable

_REQUESTS_TIMED = 100
"""Requests whose time is looked at: enough for a median, and all of one send or two."""

TAKEN = case((request.c.messages < request.c.submitted, request.c.messages), else_=request.c.submitted)
"""The number of messages that the service took of an accepted request."""

_OPEN_OR_UNKNOWN = request.c.state.in_((CLAIMED, UNKNOWN))


class SendingTask(NamedTuple):
    """A task that sent messages of a campaign.

    :param runs: DAG runs in which it did.
    :param tries: attempts that did, of all runs and mapped copies.
    """

    dag_id: str
    task_id: str
    runs: int
    tries: int


class Counts(NamedTuple):
    """Messages of a campaign's requests by outcome, and what they cost.

    :param unknown: those of unknown requests, and those of superseded ones that were not sent again yet.
    :param under_way: claimed, and perhaps being sent.
    :param left_out: messages that the service left out of requests that it took.
    :param of_unknown_cost: requests that were sent, or may have been, of which nothing tells the cost.
    :param again: of the unknown ones, those that the next attempt sends.
    """

    accepted: int = 0
    unknown: int = 0
    under_way: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)
    left_out: int = 0
    of_unknown_cost: int = 0
    again: int = 0


class CampaignStatus(NamedTuple):
    """A campaign as the command shows it. Times are seconds since the epoch.

    :param counts: counts of its messages.
    :param requests: the number of its requests, by state.
    :param decisions: the number of decisions by people about its requests.
    """

    campaign: str
    counts: Counts
    requests: Mapping[str, int]
    first_activity: float
    last_activity: float
    decisions: int
    senders: tuple[SendingTask, ...]


class _Sums(NamedTuple):
    """What the responses to requests add up to.

    :param others: requests without a response, whose messages are not in the sums.
    :param unpriced: requests whose cost is not known.
    """

    taken: int = 0
    parts: int = 0
    left_out: int = 0
    cost: Decimal = Decimal(0)
    others: int = 0
    unpriced: int = 0


def status(store: LedgerBackend, name: str) -> CampaignStatus:
    """Return the counts of a campaign."""
    now = store.clock()
    with store.read() as connection:
        campaign_id = require_campaign(connection, name)
        of_campaign = request.c.campaign_id == campaign_id
        state = state_at(now)
        by_state = select(state, func.count()).where(of_campaign).group_by(state)
        began, first, last, last_decided, decided = connection.execute(
            select(
                func.max(campaign.c.created_at),
                func.min(request.c.claimed_at),
                func.max(func.coalesce(request.c.finished_at, request.c.claimed_at)),
                func.max(request.c.decided_at),
                func.count(case((request.c.decided_by != BALANCE, 1))),
            )
            .select_from(campaign.outerjoin(request))
            .where(campaign.c.id == campaign_id)
        ).one()
        senders = (
            select(
                attempt.c.dag_id,
                attempt.c.task_id,
                func.count(attempt.c.run_id.distinct()),
                func.count(attempt.c.id.distinct()),
            )
            .select_from(request.join(attempt))
            .where(of_campaign)
            .group_by(attempt.c.dag_id, attempt.c.task_id)
            .order_by(attempt.c.dag_id, attempt.c.task_id)
        )
        return CampaignStatus(
            campaign=name,
            counts=total(counts_of(connection, [campaign_id], now)[campaign_id].values()),
            requests={row[0]: row[1] for row in connection.execute(by_state)},
            first_activity=began if first is None else first,
            last_activity=max(time for time in (began, last, last_decided) if time is not None),
            decisions=decided,
            senders=tuple(SendingTask(*row) for row in connection.execute(senders)),
        )


def counts_of(connection: Connection, ids: Sequence[int], now: float) -> dict[int, dict[int, Counts]]:
    """Return the counts of campaigns, by their ids, and of each by the attempt that made the requests.

    Reads each request once: a campaign may have 100,000 of them.
    """
    which = request.c.campaign_id.in_(ids)
    counts: dict[int, dict[int, Counts]] = {each: {} for each in ids}
    sums = _sums(connection, and_(which, request.c.state == ACCEPTED))
    # A request that a person called accepted has no response that tells its messages.
    by_decision = and_(request.c.state == ACCEPTED, request.c.messages.is_(None))
    any_decided = any(each.others for each in sums.values())
    held = _held(connection, and_(which, or_(_OPEN_OR_UNKNOWN, by_decision) if any_decided else _OPEN_OR_UNKNOWN), now)
    for (campaign_id, claimant_id), each in sums.items():
        counts[campaign_id][claimant_id] = Counts(each.taken, 0, 0, each.parts, each.cost, each.left_out, each.unpriced)
    names: dict[str, str] = {ACCEPTED: "accepted", UNKNOWN: "unknown", SUPERSEDED: "unknown", CLAIMED: "under_way"}
    for (campaign_id, claimant_id, state), (messages, requests) in [*held, *_superseded(connection, which)]:
        before = counts[campaign_id].get(claimant_id, Counts())
        name = names[state]
        unpriced = before.of_unknown_cost + (requests if names[state] == "unknown" else 0)
        again = before.again + (messages if state == SUPERSEDED else 0)
        figures = {name: getattr(before, name) + messages, "of_unknown_cost": unpriced, "again": again}
        counts[campaign_id][claimant_id] = before._replace(**figures)
    return counts


def total(counts: Iterable[Counts]) -> Counts:
    """Return the sum of counts."""
    return Counts(*(sum(each) for each in zip(Counts(), *counts, strict=True)))


def _sums(connection: Connection, which: ColumnElement[bool]) -> dict[tuple[int, int], _Sums]:
    """Return what responses add up to, by campaign and attempt.

    The messages of a request without a response are not added up; the request is counted instead. Its parts and cost
    are added up, since the balance may have told them.
    """
    added = request.c.messages.is_not(None)
    # Money is not rounded: equal costs are counted, and added up as decimals. The cost comes first in the key, since
    # SQLite sorts 100,000 requests by it, and the others are often the same.
    key = (request.c.cost, request.c.attempt_id, request.c.campaign_id)
    query = (
        select(
            *key,
            func.count(),
            func.count(case((added, 1))),
            func.sum(case((added, TAKEN))),
            func.sum(request.c.parts),
            func.sum(case((added, request.c.submitted - TAKEN))),
        )
        .where(which)
        .group_by(*key)
    )
    sums: dict[tuple[int, int], _Sums] = defaultdict(_Sums)
    for cost, claimant_id, campaign_id, times, times_added, taken, parts, left_out in connection.execute(query):
        before = sums[campaign_id, claimant_id]
        sums[campaign_id, claimant_id] = _Sums(
            before.taken + int(taken or 0),
            before.parts + int(parts or 0),
            before.left_out + int(left_out or 0),
            before.cost + Decimal(cost or 0) * times,
            before.others + times - times_added,
            before.unpriced + (times if cost is None else 0),
        )
    return sums


_Held: TypeAlias = "tuple[tuple[int, int, str], tuple[int, int]]"
"""A campaign, an attempt and a state; how many messages requests hold, and how many requests they are."""


def _held(connection: Connection, which: ColumnElement[bool], now: float) -> list[_Held]:
    """Return the messages that requests hold."""
    state = state_at(now)
    counted = (func.count(message.c.request_id), func.count(request.c.id.distinct()))
    query = (
        select(request.c.campaign_id, request.c.attempt_id, state, *counted)
        .select_from(request.outerjoin(message, message.c.request_id == request.c.id))
        .where(which)
        # The state first: in another order SQLite reads all requests by the index of claimants, which has that order.
        .group_by(state, request.c.campaign_id, request.c.attempt_id)
    )
    return [((*key,), (messages, requests)) for *key, messages, requests in connection.execute(query)]


def is_sent_again() -> ColumnElement[bool]:
    """Return the condition for messages of superseded requests that a request has claimed since."""
    later = superseded.alias("later")
    same_later = and_(
        later.c.campaign_id == superseded.c.campaign_id,
        later.c.message_key == superseded.c.message_key,
        later.c.request_id > superseded.c.request_id,
    )
    same = and_(message.c.campaign_id == superseded.c.campaign_id, message.c.message_key == superseded.c.message_key)
    return or_(select(message.c.request_id).where(same).exists(), select(later.c.request_id).where(same_later).exists())


def _superseded(connection: Connection, which: ColumnElement[bool]) -> list[_Held]:
    """Return the messages of superseded requests that were not sent again yet."""
    free = case((and_(superseded.c.request_id.is_not(None), ~is_sent_again()), 1), else_=0)
    query = (
        select(request.c.campaign_id, request.c.attempt_id, func.sum(free), func.count(request.c.id.distinct()))
        .select_from(request.outerjoin(superseded, superseded.c.request_id == request.c.id))
        .where(which, request.c.state == SUPERSEDED)
        .group_by(request.c.campaign_id, request.c.attempt_id)
    )
    return [((*key, SUPERSEDED), (int(messages), requests)) for *key, messages, requests in connection.execute(query)]


def count_under_way(store: Readable, name: str) -> int:
    """Count the requests of a campaign whose process may still record their outcome."""
    with store.read() as connection:
        of_campaign = request.c.campaign_id == require_campaign(connection, name)
        query = select(func.count()).select_from(request).where(of_campaign, under_way(store.clock()))
        count: int = connection.execute(query).scalar_one()
        return count


def seconds_per_request(store: LedgerBackend) -> float | None:
    """Return the median time of the last requests that were accepted; None where there was none."""
    last = (
        select(request.c.claimed_at, request.c.finished_at)
        .where(request.c.state == ACCEPTED, request.c.finished_at.is_not(None))
        .order_by(request.c.id.desc())
        .limit(_REQUESTS_TIMED)
    )
    with store.read() as connection:
        taken = [finished - claimed for claimed, finished in connection.execute(last)]
    return max(median(taken), 0.0) if taken else None
