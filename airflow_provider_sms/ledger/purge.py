"""Forgetting campaigns in which nothing has happened for a long time: all rows of the ledger that belong to them.

These are recipients, requests with their responses, decisions, pauses, progress and attempts.

Readings of balances belong to no campaign: :mod:`~airflow_provider_sms.ledger.balances` forgets them, for the same
task and command, and :mod:`~airflow_provider_sms.ledger.remains` clears what deleted rows leave in the file.

Transactions are short, each under the campaign's lock, so that a send that runs meanwhile never waits long. An
interrupted purge has forgotten a part; the next one goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, exists, false, func, or_, select

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account_history import close_history
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.locks import CLAIMANT_LOCK, campaign_lock
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, DEFERRED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.pauses import open_pause
from airflow_provider_sms.ledger.schema import (
    campaign,
    claimant,
    decision,
    former_holder,
    message,
    pauses,
    progress,
    request,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

REQUESTS_AT_ONCE = 100
"""Requests forgotten in one transaction, with the messages that they hold: up to 10,000."""

CLAIMANTS_AT_ONCE = 100
"""Attempts forgotten in one transaction: a task that registers meanwhile waits for a fraction of a second."""

_OPEN = and_(
    request.c.state.in_((CLAIMED, UNKNOWN)),
    # An unknown request whose messages were all sent again by later ones waits for nothing any more.
    exists().where(message.c.request_id == request.c.id),
)
"""The condition for requests that may be under way, or that somebody still has to decide about."""


class OldCampaign(NamedTuple):
    """A campaign in which nothing has happened for a long time.

    :param last_activity: seconds since the epoch.
    :param open_requests: requests that hold messages and are unknown or may be under way; a campaign that has any is
        kept.
    :param newest_request: id of its last request; 0 where it has none.
    :param paused: whether it is paused; then it is kept, since the pause would be forgotten with it.
    :param waiting: the state of an attempt that is deferred, as in ``waiting for hours``; None where none is. If the
        campaign were forgotten, the attempt would text again everybody whom it texted before it was deferred.
    """

    campaign_id: int
    name: str
    messages: int
    last_activity: float
    open_requests: int
    newest_request: int
    paused: bool = False
    waiting: str | None = None


class PurgeChoice(NamedTuple):
    """Old campaigns, by what a purge does with them.

    :param unsettled: kept, because they have requests that are unknown or under way.
    :param paused: kept, because the pause would be forgotten with them.
    :param waiting: kept, because one of their tasks waits, and would text people again.
    :param going: forgotten.
    """

    unsettled: Sequence[OldCampaign]
    paused: Sequence[OldCampaign]
    waiting: Sequence[OldCampaign]
    going: Sequence[OldCampaign]


def choose(found: Sequence[OldCampaign], *, include_waiting: bool = False) -> PurgeChoice:
    """Divide old campaigns into those that a purge keeps, and those that it forgets.

    :param include_waiting: also forget campaigns with a task that waits.
    """
    settled = [old for old in found if not old.open_requests]
    others = [old for old in settled if not old.paused]
    waiting = [] if include_waiting else [old for old in others if old.waiting]
    return PurgeChoice(
        unsettled=[old for old in found if old.open_requests],
        paused=[old for old in settled if old.paused],
        waiting=waiting,
        going=[old for old in others if old not in waiting],
    )


def old_campaigns(store: LedgerBackend, before: float) -> list[OldCampaign]:
    """Return the campaigns in which nothing has happened since a moment, oldest first.

    :param before: the moment, seconds since the epoch.
    :raises LedgerError: when the ledger cannot be read.
    """
    # Subqueries for each campaign: joined with the requests, decisions would multiply them.
    of_campaign = request.c.campaign_id == campaign.c.id
    requested = select(func.max(func.coalesce(request.c.finished_at, request.c.claimed_at))).where(of_campaign)
    decided = (
        select(func.max(decision.c.decided_at))
        .select_from(decision.join(request, request.c.id == decision.c.request_id))
        .where(of_campaign)
    )
    paused_now = and_(pauses.c.campaign_id == campaign.c.id, pauses.c.resumed_at.is_(None))
    left_open = select(func.count()).select_from(request).where(of_campaign, _OPEN)
    query = select(
        campaign.c.id,
        campaign.c.name,
        left_open.scalar_subquery(),
        select(func.coalesce(func.max(request.c.id), 0)).where(of_campaign).scalar_subquery(),
        select(func.count()).select_from(pauses).where(paused_now).scalar_subquery(),
        campaign.c.created_at,
        requested.scalar_subquery(),
        decided.scalar_subquery(),
        select(func.max(pauses.c.resumed_at)).where(pauses.c.campaign_id == campaign.c.id).scalar_subquery(),
        # An attempt that found nobody left to text relies on what the ledger remembers, and so does a deferred one.
        select(func.max(progress.c.updated_at)).where(progress.c.campaign_id == campaign.c.id).scalar_subquery(),
    )
    old: list[OldCampaign] = []
    with store.read() as connection:
        waits = _waits(connection)
        for number, name, open_requests, newest, paused, *times in connection.execute(query).all():
            last = max(time for time in times if time is not None)
            if last < before:
                held = select(func.count()).select_from(message).where(message.c.campaign_id == number)
                messages = connection.execute(held).scalar_one()
                old.append(
                    OldCampaign(number, name, messages, last, open_requests, newest, bool(paused), waits.get(number))
                )
    return sorted(old, key=lambda each: each.last_activity)


def _waits(connection: Connection) -> dict[int, str]:
    """Return the states of attempts that are deferred, by the id of their campaign."""
    # Only the last leg of an attempt waits; earlier ones keep the state of their wait for ever. An adoption is no leg,
    # and a leg that has recorded nothing yet has only begun: until then, the wait before it holds the campaign.
    newest = (
        select(func.max(claimant.c.id).label("id"))
        .where(claimant.c.try_number > 0, claimant.c.id.in_(select(progress.c.claimant_id)))
        .group_by(claimant.c.dag_id, claimant.c.task_id, claimant.c.run_id, claimant.c.map_index)
        .subquery()
    )
    recorded = select(progress.c.campaign_id, progress.c.state).join(newest, newest.c.id == progress.c.claimant_id)
    rows = connection.execute(recorded.where(progress.c.state.in_(DEFERRED)))
    return {row.campaign_id: row.state for row in rows}


def forget_campaign(
    store: LedgerBackend,
    old: OldCampaign,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_forgotten: Callable[[int], None] = lambda _: None,
) -> int:
    """Forget a campaign, even one with a deferred attempt.

    :param should_stop: asked before each transaction; the next purge forgets what is left.
    :param on_forgotten: told after each transaction how many messages it has forgotten, so that they are known even
        where an error ends the purge.
    :returns: how many messages were forgotten.
    :raises InputError: it has been used since it was found; the part that is not forgotten by then is kept.
    :raises LedgerError: when it was not committed.
    """
    forgotten = 0
    gone = False
    close_history(store, old.campaign_id, old.last_activity)
    while not (gone or should_stop()):
        with store.write(campaign_lock(old.name)) as connection:
            count, gone = _forget_some(connection, old)
        forgotten += count
        on_forgotten(count)
    return forgotten


def _forget_some(connection: Connection, old: OldCampaign) -> tuple[int, bool]:
    # A server's role that may not delete campaigns must not delete the messages of one either.
    connection.execute(delete(campaign).where(false()))
    # By name, too: SQLite gives the id of a campaign that another purge has deleted to the next new one.
    here = and_(campaign.c.id == old.campaign_id, campaign.c.name == old.name)
    # For update: an attempt records progress without the campaign's lock, either before this or after.
    if connection.execute(select(campaign.c.id).where(here).with_for_update()).scalar() is None:
        return 0, True
    of_campaign = request.c.campaign_id == old.campaign_id
    newer = and_(request.c.state.in_((ACCEPTED, NOT_SENT)), request.c.id > old.newest_request)
    in_use = select(request.c.id).where(of_campaign, or_(_OPEN, newer)).limit(1)
    if connection.execute(in_use).scalar() is not None:
        raise InputError(f"Campaign {old.name} is in use again: the rest of it is kept")
    newly_recorded = and_(progress.c.campaign_id == old.campaign_id, progress.c.updated_at > old.last_activity)
    if connection.execute(select(progress.c.claimant_id).where(newly_recorded).limit(1)).scalar() is not None:
        raise InputError(f"Campaign {old.name} is in use again: the rest of it is kept")
    if open_pause(connection, old.campaign_id) is not None:
        raise InputError(f"Campaign {old.name} is paused: the rest of it is kept")
    some = list(connection.execute(select(request.c.id).where(of_campaign).limit(REQUESTS_AT_ONCE)).scalars())
    if not some:
        connection.execute(delete(pauses).where(pauses.c.campaign_id == old.campaign_id))
        connection.execute(delete(progress).where(progress.c.campaign_id == old.campaign_id))
        connection.execute(delete(campaign).where(here))
        return 0, True
    count: int = connection.execute(delete(message).where(message.c.request_id.in_(some))).rowcount
    connection.execute(delete(former_holder).where(former_holder.c.request_id.in_(some)))
    connection.execute(delete(decision).where(decision.c.request_id.in_(some)))
    connection.execute(delete(request).where(request.c.id.in_(some)))
    return count, False


def forget_claimants(store: LedgerBackend, before: float) -> int:
    """Forget the attempts that began before a moment and that nothing in the ledger refers to any more.

    :returns: how many.
    :raises LedgerError: when it was not committed.
    """
    # NOT IN reads each table once; the columns are never null there.
    unused = and_(
        claimant.c.started_at < before,
        claimant.c.id.not_in(select(request.c.claimant_id)),
        claimant.c.id.not_in(select(progress.c.claimant_id)),
    )
    with store.read() as connection:
        ids = list(connection.execute(select(claimant.c.id).where(unused)).scalars())
    for some in in_pieces(ids, CLAIMANTS_AT_ONCE):
        with store.write(CLAIMANT_LOCK) as connection:
            connection.execute(delete(claimant).where(claimant.c.id.in_(some), unused))
    return len(ids)
