"""What people decided about a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from airflow_provider_sms.ledger.schema import approval, decision, pauses, request

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.reader import LedgerReader


class Deed(NamedTuple):
    """What a person did.

    :param what: ``approved``, ``refused``, ``was sent``, ``was not sent``, ``resend``, ``fail``, ``paused`` or
        ``resumed``.
    :param about: the request, or the plan; None where it is of the campaign.
    :param people: how many it concerned; None where that was not noted.
    """

    at: float
    who: str
    what: str
    about: str | None
    people: int | None


def deeds(ledger: LedgerReader, campaign_id: int, *, limit: int = 100) -> list[Deed]:
    """Give what people did, the last first: approvals, decisions about requests, pauses.

    :param limit: how many at most.
    :raises SmsError: the ledger cannot be read.
    """
    with ledger.read() as connection:
        found = [
            *_approvals(connection, campaign_id),
            *_decisions(connection, campaign_id, limit),
            *_pauses(connection, campaign_id),
        ]
    return sorted(found, key=lambda deed: -deed.at)[:limit]


def _approvals(connection: Connection, campaign_id: int) -> list[Deed]:
    its = approval.c.campaign_id == campaign_id
    rows = connection.execute(select(approval).where(its, approval.c.decision.is_not(None)))
    words = {"send": "approved", "stop": "refused"}
    return [
        Deed(row.decided_at, row.decided_by, words.get(row.decision, row.decision), f"plan {row.plan_id}", row.messages)
        for row in rows
    ]


def _decisions(connection: Connection, campaign_id: int, limit: int) -> list[Deed]:
    query = (
        select(decision.c.decided_at, decision.c.decided_by, decision.c.decision, request.c.id, request.c.submitted)
        .select_from(decision.join(request, request.c.id == decision.c.request_id))
        .where(request.c.campaign_id == campaign_id, decision.c.decided_by.is_not(None))
        .order_by(decision.c.decided_at.desc())
        .limit(limit)
    )
    words = {"accepted": "was sent", "not_sent": "was not sent"}
    return [
        Deed(at, who, words.get(said, said), f"request {of}", people)
        for at, who, said, of, people in connection.execute(query)
    ]


def _pauses(connection: Connection, campaign_id: int) -> list[Deed]:
    found: list[Deed] = []
    for row in connection.execute(select(pauses).where(pauses.c.campaign_id == campaign_id)):
        found.append(Deed(row.paused_at, row.paused_by, "paused", None, None))
        if row.resumed_at is not None:
            found.append(Deed(row.resumed_at, row.resumed_by, "resumed", None, None))
    return found
