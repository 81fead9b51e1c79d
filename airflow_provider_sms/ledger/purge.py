"""Forgetting campaigns in which nothing has happened for a long time, and what tasks read of balances until then.

Of a campaign go its recipients, requests with their responses and decisions, its attempts and its pause. Transactions
are short, each under the campaign's lock, so that a send that runs meanwhile never waits long. An interrupted purge has
forgotten a part; the next one goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, exists, func, select

from airflow_provider_sms.formatting import counted, join_some
from airflow_provider_sms.ledger.backend import LEDGER_LOCK, campaign_lock
from airflow_provider_sms.ledger.campaigns import IS_PAUSED
from airflow_provider_sms.ledger.model import CLAIMED, DEFERRED, UNKNOWN
from airflow_provider_sms.ledger.schema import attempt, balance, campaign, message, request, superseded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend, Remains

REQUESTS_AT_ONCE = 100
"""Requests forgotten in one transaction, with the messages that they hold: up to 10,000."""

KEPT = {
    "open": "with requests that are unknown or under way",
    "paused": "that somebody paused",
    "waiting": "with a task that waits for hours or credit, and would text people again (if the task has ended: "
    "airflow-sms purge --include-waiting)",
    "in_use": "used again meanwhile",
}
"""Why a purge keeps campaigns, though they are old: the rest of this would be forgotten with them."""

_of_campaign = request.c.campaign_id == campaign.c.id
_newest_request = select(func.coalesce(func.max(request.c.id), 0)).where(_of_campaign).scalar_subquery()
_recent_times = (
    campaign.c.created_at,
    func.coalesce(campaign.c.resumed_at, campaign.c.paused_at),
    # An attempt that found nobody left to text relies on what the ledger remembers, and so does a deferred one.
    select(func.max(attempt.c.updated_at)).where(attempt.c.campaign_id == campaign.c.id).scalar_subquery(),
)


class OldCampaign(NamedTuple):
    """A campaign in which nothing has happened for a long time.

    :param newest_request: id of its last request; 0 where it has none.
    :param keep: why a purge keeps it, a key of :data:`KEPT`; None where it forgets it.
    """

    campaign_id: int
    name: str
    messages: int
    last_activity: float
    newest_request: int
    keep: str | None


class Purged(NamedTuple):
    """What a purge forgot, how many of each, and the campaigns that were used since they were found."""

    campaigns: int
    messages: int
    attempts: int
    balances: int
    in_use: Sequence[OldCampaign]
    remains: Remains

    def __str__(self) -> str:
        campaigns, messages = counted(self.campaigns, "campaign"), counted(self.messages, "message")
        attempts, balances = counted(self.attempts, "attempt"), counted(self.balances, "balance")
        return f"Forgotten: {campaigns} with {messages}, {attempts} and {balances}. {self.remains.words}"


def kept_words(found: Sequence[OldCampaign]) -> list[str]:
    """Return which campaigns a purge keeps, in a line for each reason."""
    names = {why: [old.name for old in found if old.keep == why] for why in KEPT}
    return [f"Kept: {counted(len(its), 'campaign')} {KEPT[why]}: {join_some(its)}" for why, its in names.items() if its]


def old_campaigns(store: LedgerBackend, before: float, *, include_waiting: bool = False) -> list[OldCampaign]:
    """Return the campaigns in which nothing has happened since a moment, oldest first."""
    query = select(
        campaign.c.id,
        campaign.c.name,
        _newest_request,
        exists().where(_of_campaign, request.c.state.in_((CLAIMED, UNKNOWN))),
        IS_PAUSED,
        select(func.max(func.coalesce(request.c.finished_at, request.c.claimed_at)))
        .where(_of_campaign)
        .scalar_subquery(),
        select(func.max(request.c.decided_at)).where(_of_campaign).scalar_subquery(),
        *_recent_times,
    )

    def read(connection: Connection) -> list[OldCampaign]:
        old: list[OldCampaign] = []
        waiting = set() if include_waiting else _waiting(connection)
        for number, name, newest, is_open, is_paused, *times in connection.execute(query).all():
            last = max(time for time in times if time is not None)
            if last < before:
                held = select(func.count()).select_from(message).where(message.c.campaign_id == number)
                messages = connection.execute(held).scalar_one()
                keep = "open" if is_open else "paused" if is_paused else "waiting" if number in waiting else None
                old.append(OldCampaign(number, name, messages, last, newest, keep))
        return sorted(old, key=lambda each: each.last_activity)

    return store.fetch(read)


def _waiting(connection: Connection) -> set[int]:
    """Return the ids of campaigns with an attempt that is deferred."""
    # Only the last process of a task instance waits: earlier ones keep the state of their wait for ever. One that has
    # no campaign yet has only begun: until then, the wait before it holds the campaign.
    newest = (
        select(func.max(attempt.c.id))
        .where(attempt.c.campaign_id.is_not(None))
        .group_by(attempt.c.dag_id, attempt.c.task_id, attempt.c.run_id, attempt.c.map_index)
    )
    query = select(attempt.c.campaign_id).where(attempt.c.state.in_(DEFERRED), attempt.c.id.in_(newest))
    return set(connection.execute(query).scalars())


def purge(
    store: LedgerBackend,
    found: Sequence[OldCampaign],
    before: float,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Purged:
    """Forget those old campaigns that are not to be kept, with their attempts, and the balances of before a moment.

    :param should_stop: asked before each transaction; the next purge forgets what is left.
    """
    campaigns = messages = attempts = 0
    in_use = []
    # First: the charges of a campaign that is gone would look like those of a lost request.
    with store.write(LEDGER_LOCK, shared=True) as connection:
        balances = connection.execute(delete(balance).where(balance.c.read_at < before)).rowcount
    for old in found:
        gone = old.keep is not None
        while not (gone or should_stop()):
            with store.write(campaign_lock(old.name)) as connection:
                if not _is_unused(connection, old, before):
                    in_use.append(old._replace(keep="in_use"))
                    break
                forgotten, gone = _forget_some(connection, old.campaign_id)
            if gone:
                campaigns, attempts = campaigns + 1, attempts + forgotten
            else:
                messages += forgotten
    if not should_stop():
        never_entered = and_(attempt.c.started_at < before, attempt.c.campaign_id.is_(None))
        with store.write(LEDGER_LOCK, shared=True) as connection:
            attempts += connection.execute(delete(attempt).where(never_entered)).rowcount
    return Purged(campaigns, messages, attempts, balances, in_use, store.remove_remains())


def _is_unused(connection: Connection, old: OldCampaign, before: float) -> bool:
    """Return whether nothing has happened in a campaign since it was found."""
    query = select(_newest_request, *_recent_times).where(campaign.c.id == old.campaign_id)
    row = connection.execute(query).first()
    # SQLite gives the id of a campaign that another purge has deleted to the next new one.
    return row is None or (row[0] <= old.newest_request and max(time or 0 for time in row[1:]) < before)


def _forget_some(connection: Connection, campaign_id: int) -> tuple[int, bool]:
    """Forget some requests of a campaign with their messages; once none is left, the campaign with its attempts.

    :returns: how many messages or attempts were forgotten, and whether the campaign is gone.
    """
    some_of_it = select(request.c.id).where(request.c.campaign_id == campaign_id).limit(REQUESTS_AT_ONCE)
    if not (some := connection.execute(some_of_it).scalars().all()):
        attempts: int = connection.execute(delete(attempt).where(attempt.c.campaign_id == campaign_id)).rowcount
        connection.execute(delete(campaign).where(campaign.c.id == campaign_id))
        return attempts, True
    count: int = connection.execute(delete(message).where(message.c.request_id.in_(some))).rowcount
    connection.execute(delete(superseded).where(superseded.c.request_id.in_(some)))
    connection.execute(delete(request).where(request.c.id.in_(some)))
    return count, False
