"""Counts of campaigns: messages by outcome, parts and costs.

Those of rows without a request, such as invalid ones, are in the progress that each attempt notes:
:mod:`~airflow_provider_sms.monitoring.models` adds them up.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, case, func, or_, select

from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.schema import message, request, same_message, superseded
from airflow_provider_sms.ledger.transitions import state_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement


TAKEN = case((request.c.messages < request.c.submitted, request.c.messages), else_=request.c.submitted)
"""Messages that the service took of an accepted request: all, where a person or the balance says that it took them."""


class Counts(NamedTuple):
    """Messages of a campaign by outcome, and what they cost.

    :param unknown: those of unknown requests, and those of superseded ones that were not sent again yet.
    :param under_way: claimed, and perhaps being sent.
    :param left_out: messages that the service left out of requests that it took.
    :param of_unknown_cost: requests that were sent, or may have been, of which nothing tells the cost.
    :param again: of the unknown ones, those that the next attempt sends.
    :param unknown_requests: requests whose outcome is unknown.
    :param freed: messages of requests that somebody has decided were not sent, and that no request has claimed since.
    """

    accepted: int = 0
    unknown: int = 0
    under_way: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)
    left_out: int = 0
    of_unknown_cost: int = 0
    again: int = 0
    unknown_requests: int = 0
    freed: int = 0

    def plus(self, **more: Decimal | int) -> Counts:
        """Return the counts with some of them increased."""
        return self._replace(**{name: getattr(self, name) + value for name, value in more.items()})


def counts_of(connection: Connection, ids: Sequence[int], now: float) -> dict[int, Counts]:
    """Return the counts of campaigns by their ids; reads each request once, and a campaign may have 100,000."""
    counts: dict[int, Counts] = {}
    for some in in_pieces(ids):
        counts |= _counts_of(connection, some, now)
    return counts


def _counts_of(connection: Connection, ids: Sequence[int], now: float) -> dict[int, Counts]:
    counts = dict.fromkeys(ids, Counts())
    which = request.c.campaign_id.in_(ids)
    # Money is not rounded: equal costs are counted, and added up as decimals. In another order of these columns, SQLite
    # would read all requests by an index.
    key = (request.c.cost, state_at(now), request.c.campaign_id)
    sums = (func.count(), func.sum(request.c.submitted), func.sum(TAKEN), func.sum(request.c.parts))
    query = select(*key, *sums).where(which, request.c.state != NOT_SENT).group_by(*key)
    for cost, state, campaign_id, requests, submitted, taken, parts in connection.execute(query):
        before = counts[campaign_id]
        if state == ACCEPTED:
            counts[campaign_id] = before.plus(
                accepted=int(taken),
                left_out=int(submitted - taken),
                parts=int(parts or 0),
                cost=Decimal(cost or 0) * requests,
                of_unknown_cost=requests if cost is None else 0,
            )
        elif state == CLAIMED:
            counts[campaign_id] = before.plus(under_way=int(submitted))
        elif state == UNKNOWN:
            counts[campaign_id] = before.plus(
                unknown=int(submitted), of_unknown_cost=requests, unknown_requests=requests
            )
        else:
            counts[campaign_id] = before.plus(of_unknown_cost=requests)
    of = (request.c.campaign_id, request.c.state)
    free = select(*of, func.count()).select_from(superseded.join(request, _IS_OF)).group_by(*of)
    waiting = free.where(which, request.c.state.in_((SUPERSEDED, NOT_SENT)), ~_is_sent_again())
    for campaign_id, state, messages in connection.execute(waiting):
        more = {"freed": messages} if state == NOT_SENT else {"unknown": messages, "again": messages}
        counts[campaign_id] = counts[campaign_id].plus(**more)
    return counts


_IS_OF = superseded.c.request_id == request.c.id


def _is_sent_again() -> ColumnElement[bool]:
    """Return the condition for messages of superseded requests that a request has claimed since."""
    later = superseded.alias("later")
    same_later = and_(same_message(later, superseded), later.c.request_id > superseded.c.request_id)
    same = same_message(message, superseded)
    return or_(select(message.c.request_id).where(same).exists(), select(later.c.request_id).where(same_later).exists())
