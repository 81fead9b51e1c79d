"""What was decided about a campaign: resolved requests and the last pause, with names and times.

People decide, or the balance in their place where a task allows that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import case, select

from airflow_provider_sms.ledger.account import BALANCE, kept_evidence
from airflow_provider_sms.ledger.schema import campaign, request

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend


class AuditEntry(NamedTuple):
    """A decision of a person, or of the balance.

    :param user: the person; ``balance`` where the balance decided.
    :param at: seconds since the epoch.
    :param action: ``was sent``, ``was not sent``, ``paused`` or ``resumed``.
    :param subject: the request; None means the campaign.
    :param people: people concerned; None means not recorded, or not known, as with a message to groups.
    :param why: what the balance told, where it decided.
    """

    at: float
    user: str
    action: str
    subject: str | None
    people: int | None
    why: str | None = None


def audit_log(ledger: LedgerBackend, campaign_id: int, *, limit: int = 100) -> list[AuditEntry]:
    """Return the decisions about a campaign, the last first."""
    with ledger.read() as connection:
        entries = [
            *_resolutions(connection, campaign_id, limit),
            *_pauses(connection, campaign_id),
        ]
    return sorted(entries, key=lambda entry: -entry.at)[:limit]


def _resolutions(connection: Connection, campaign_id: int, limit: int) -> list[AuditEntry]:
    # Only the service knows how many people are in a group.
    people = case((request.c.kind != "group", request.c.submitted))
    query = (
        select(request.c.decided_at, request.c.decided_by, request.c.decision, request.c.id, people, request.c.evidence)
        .where(request.c.campaign_id == campaign_id, request.c.decided_at.is_not(None))
        .order_by(request.c.decided_at.desc())
        .limit(limit)
    )
    actions = {"accepted": "was sent", "not_sent": "was not sent"}
    return [
        AuditEntry(at, user, actions[decided], f"request {request_id}", people, _why(user, evidence))
        for at, user, decided, request_id, people, evidence in connection.execute(query)
    ]


def _why(user: str, written: str | None) -> str | None:
    """Return what the balance told, where it decided."""
    evidence = kept_evidence(written) if user == BALANCE else None
    return None if evidence is None else evidence.words


def _pauses(connection: Connection, campaign_id: int) -> list[AuditEntry]:
    row = connection.execute(select(campaign).where(campaign.c.id == campaign_id)).one()
    events = [("paused", row.paused_at, row.paused_by), ("resumed", row.resumed_at, row.resumed_by)]
    return [AuditEntry(at, user, action, None, None) for action, at, user in events if at is not None]
