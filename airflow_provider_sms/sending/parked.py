"""What a try sent before it gave its slot back and waited: its counts and its answers are those of the whole try."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import case, func, select

from airflow_provider_sms.sending.claims import NOT_SENT
from airflow_provider_sms.sending.earlier import of_task
from airflow_provider_sms.sending.schema import claimant, message, request

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.store import Store

_ROWS_AT_ONCE = 100
"""Answers in memory at a time: each may be of several kilobytes."""


class ParkedRequest(NamedTuple):
    """A request that an earlier part of a try made.

    :param state: ``accepted``; or another one, where it may have been sent.
    :param submitted: messages that were posted, and that no other request has by now.
    :param messages: of these, how many the service took; None where it did not say.
    :param response: the answer as received, JSON; None where there is none, as where a person called it accepted.
    """

    request_id: int
    state: str
    submitted: int
    messages: int | None
    response: str | None


def earlier_parts(store: Store, who: Claimant, claimant_id: int) -> frozenset[int]:
    """Give the claimants that are earlier parts of the same try.

    :param claimant_id: of the part that asks.
    :raises LedgerError: when the ledger cannot be read.
    """
    its = select(claimant.c.id).where(
        of_task(who), claimant.c.try_number == who.try_number, claimant.c.id < claimant_id
    )
    with store.read() as connection:
        return frozenset(connection.execute(its).scalars())


def requests_of(store: Store, campaign_id: int, parts: Collection[int]) -> Iterator[ParkedRequest]:
    """Give the requests of some claimants in a campaign that were sent or may have been, in the order of their making.

    :param parts: the claimants' ids.
    :raises LedgerError: when the ledger cannot be read.
    """
    if not parts:
        return
    held = select(func.count()).select_from(message).where(message.c.request_id == request.c.id).scalar_subquery()
    # Where no answer came, others may have taken messages over since.
    its = case((request.c.response.is_not(None), request.c.submitted), else_=held)
    query = (
        select(request.c.id, request.c.state, its, request.c.messages, request.c.response)
        .where(
            request.c.campaign_id == campaign_id,
            request.c.claimant_id.in_(parts),
            request.c.state != NOT_SENT,
        )
        .order_by(request.c.id)
    )
    with (
        store.read() as connection,
        closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
    ):
        for row in rows:
            yield ParkedRequest(*row)
