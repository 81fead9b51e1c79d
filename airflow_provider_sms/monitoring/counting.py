"""What became of the messages of campaigns, as their requests tell it."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, or_, select

from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, UNKNOWN
from airflow_provider_sms.ledger.schema import message, request
from airflow_provider_sms.ledger.transitions import state_at
from airflow_provider_sms.monitoring.models import Counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

TAKEN = case((request.c.messages < request.c.submitted, request.c.messages), else_=request.c.submitted)
"""The messages that the service took of an accepted request."""


def counts_of(
    connection: Connection, ids: Sequence[int], now: float, *, made_by: Sequence[int] | None = None
) -> dict[int, Counts]:
    """Say what became of the messages of campaigns, by their ids.

    :param now: seconds since the epoch.
    :param made_by: claimants whose requests alone are counted; None: all.
    """
    its: ColumnElement[bool] = request.c.campaign_id.in_(ids)
    if made_by is not None:
        its = and_(its, request.c.claimant_id.in_(made_by))
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    costs: dict[int, Decimal] = defaultdict(Decimal)
    # Money is not rounded: equal costs are counted, and the sums made of decimals.
    by_cost = (
        select(
            request.c.campaign_id,
            request.c.cost,
            func.count(),
            func.sum(TAKEN),
            func.sum(request.c.parts),
            func.sum(request.c.submitted - TAKEN),
        )
        .where(its, request.c.state == ACCEPTED, request.c.messages.is_not(None))
        .group_by(request.c.campaign_id, request.c.cost)
    )
    for campaign_id, cost, times, *more in connection.execute(by_cost):
        sums[campaign_id] = [before + int(each or 0) for before, each in zip(sums[campaign_id], more, strict=True)]
        costs[campaign_id] += Decimal(cost or 0) * times
    state = state_at(now)
    # Of those without an answer, which a person said were sent, what they hold: some may have been sent anew since.
    unanswered = and_(request.c.state == ACCEPTED, request.c.messages.is_(None))
    held = (
        select(request.c.campaign_id, state, func.count())
        .select_from(request.join(message, message.c.request_id == request.c.id))
        .where(its, or_(request.c.state.in_((CLAIMED, UNKNOWN)), unanswered))
        .group_by(request.c.campaign_id, state)
    )
    holds = {(campaign_id, which): count for campaign_id, which, count in connection.execute(held)}
    return {
        each: Counts(
            accepted=sums[each][0] + holds.get((each, ACCEPTED), 0),
            unknown=holds.get((each, UNKNOWN), 0),
            under_way=holds.get((each, CLAIMED), 0),
            parts=sums[each][1],
            cost=costs[each],
            left_out=sums[each][2],
        )
        for each in ids
    }
