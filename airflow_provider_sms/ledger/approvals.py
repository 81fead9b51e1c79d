"""What people decide about a plan before any of it is sent, and the record of who decided."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, select, true

from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import enter_campaign
from airflow_provider_sms.ledger.locks import campaign_lock
from airflow_provider_sms.ledger.schema import approval, campaign, claimant

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

SEND = "send"
STOP = "stop"


class Approval(NamedTuple):
    """A person's decision about a plan.

    :param plan_id: the id of the plan that was shown.
    :param decision: ``send`` or ``stop``.
    :param decided_by: the person.
    :param decided_at: seconds since the epoch.
    :param messages: how many the plan had; None where that was not recorded.
    :param cost: the estimate in credits; None where that was not recorded.
    """

    plan_id: str
    decision: str
    decided_by: str
    decided_at: float
    messages: int | None = None
    cost: Decimal | None = None

    def allows(self, plan_id: str, messages: int) -> bool:
        """Return whether the decision holds for a plan: the same one, with no more messages."""
        return self.decision == SEND and self.plan_id == plan_id and messages <= (self.messages or 0)


def note_question(store: LedgerBackend, campaign_name: str, plan_id: str, *, claimant_id: int, messages: int) -> None:
    """Record that a person is asked about a plan.

    :param claimant_id: the claimant that asks.
    :param messages: how many the plan has.
    :raises LedgerError: when it was not committed.
    """
    _add(store, campaign_name, store.clock(), plan_id=plan_id, claimant_id=claimant_id, messages=messages)


def record_approval(
    store: LedgerBackend,
    campaign_name: str,
    plan_id: str,
    decision: str,
    by: str,
    *,
    claimant_id: int | None = None,
    messages: int | None = None,
    cost: Decimal | None = None,
) -> float:
    """Record a person's decision about a plan of a campaign, which need not have sent anything yet.

    :param plan_id: the id of the plan that was shown, at most 64 characters.
    :param decision: ``send`` or ``stop``.
    :param by: the person.
    :param claimant_id: the claimant that asked; None where none did.
    :param messages: how many the plan had.
    :param cost: the estimate in credits.
    :returns: when it was recorded, in seconds since the epoch.
    :raises LedgerError: when it was not committed.
    """
    now = store.clock()
    _add(
        store,
        campaign_name,
        now,
        plan_id=plan_id,
        claimant_id=claimant_id,
        decision=decision,
        decided_by=by,
        decided_at=now,
        messages=messages,
        cost=None if cost is None else str(cost),
    )
    return now


def latest_approval(
    store: LedgerBackend, campaign_name: str, plan_ids: Collection[str] | None = None
) -> Approval | None:
    """Return the last decision about a plan of a campaign; None where there is none.

    :param plan_ids: the plans that are meant; None means any. Mapped copies of a task share a campaign, and each has
        a plan of its own.
    :raises LedgerError: when the ledger cannot be read.
    """
    query = (
        select(
            approval.c.plan_id,
            approval.c.decision,
            approval.c.decided_by,
            approval.c.decided_at,
            approval.c.messages,
            approval.c.cost,
        )
        .select_from(approval.join(campaign))
        .where(campaign.c.name == campaign_name, approval.c.decision.is_not(None))
        .where(true() if plan_ids is None else approval.c.plan_id.in_(plan_ids))
        .order_by(approval.c.id.desc())
        .limit(1)
    )
    with store.read() as connection:
        found = connection.execute(query).first()
    if found is None:
        return None
    values = dict(zip(Approval._fields, found, strict=True))
    return Approval(**{**values, "cost": None if found.cost is None else Decimal(found.cost)})


class Asked(NamedTuple):
    """A plan that a person was asked about.

    :param messages: how many it had.
    """

    plan_id: str
    messages: int


def asked(store: LedgerBackend, who: Claimant) -> list[Asked]:
    """Return the plans that this task instance asked about, in order; Airflow shows the first of them for ever.

    :raises LedgerError: when the ledger cannot be read.
    """
    query = (
        select(approval.c.plan_id, approval.c.messages)
        .select_from(approval.join(claimant))
        .where(of_task(who), approval.c.decision.is_(None))
        .order_by(approval.c.id)
    )
    with store.read() as connection:
        return [Asked(*row) for row in connection.execute(query)]


def _add(store: LedgerBackend, campaign_name: str, now: float, **values: object) -> None:
    with store.write(campaign_lock(campaign_name)) as connection:
        campaign_id = enter_campaign(connection, campaign_name, now)
        connection.execute(insert(approval).values(campaign_id=campaign_id, **values))
