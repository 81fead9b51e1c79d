"""What people decide about a plan before any of it is sent, and the record of who decided."""

from __future__ import annotations

from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, or_, select, true

from airflow_provider_sms.ledger.attempts import of_task
from airflow_provider_sms.ledger.backend import enter_campaign
from airflow_provider_sms.ledger.locks import campaign_lock
from airflow_provider_sms.ledger.schema import approval, campaign, claimant
from airflow_provider_sms.messages.subset import MessageSubset

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

SEND = "send"
STOP = "stop"


class PlanExtent(NamedTuple):
    """Which messages a plan has: what a person is asked about and approves.

    :param plan_id: a digest of the recipients, their texts and the values of the key columns.
    :param messages: messages to send; None where that was not recorded.
    :param subset: which of the messages of the table it sends; None where that was not recorded, as before version 8
        of the ledger.
    :param cost: the estimate in credits; None where that was not recorded.
    """

    plan_id: str
    messages: int | None
    subset: MessageSubset | None = None
    cost: Decimal | None = None

    @property
    def name(self) -> str:
        """What names the plan in the form of a question: its table's id, and a digest of which messages it sends."""
        subset = b"" if self.subset is None else self.subset.to_bytes()
        return f"{self.plan_id}-{blake2b(subset, digest_size=4).hexdigest()}"

    def covers(self, plan: PlanExtent) -> bool:
        """Return whether an approval of this plan is one of another: of the same table, with no other messages.

        Where the messages of either were not recorded, no plan is covered.
        """
        if self.plan_id != plan.plan_id or self.subset is None or plan.subset is None:
            return False
        return self.subset.includes(plan.subset)


class Approval(NamedTuple):
    """A person's decision about a plan.

    :param plan_id: the id of the plan that was shown.
    :param decision: ``send`` or ``stop``.
    :param decided_by: the person.
    :param decided_at: seconds since the epoch.
    :param messages: how many the plan had; None where that was not recorded.
    :param cost: the estimate in credits; None where that was not recorded.
    :param subset: see :class:`PlanExtent`.
    """

    plan_id: str
    decision: str
    decided_by: str
    decided_at: float
    messages: int | None = None
    cost: Decimal | None = None
    subset: MessageSubset | None = None

    def allows(self, plan: PlanExtent) -> bool:
        """Return whether the decision is to send, and covers a plan."""
        return self.decision == SEND and PlanExtent(self.plan_id, self.messages, self.subset).covers(plan)


def note_question(store: LedgerBackend, campaign_name: str, plan: PlanExtent, *, claimant_id: int) -> None:
    """Record that a person is asked about a plan.

    :param claimant_id: the claimant that asks.
    :raises LedgerError: when it was not committed.
    """
    _add(store, campaign_name, store.clock(), plan, claimant_id=claimant_id)


def record_approval(
    store: LedgerBackend,
    campaign_name: str,
    plan: PlanExtent,
    decision: str,
    by: str,
    *,
    claimant_id: int | None = None,
) -> float:
    """Record a person's decision about a plan of a campaign, which need not have sent anything yet.

    :param plan: as it is decided about.
    :param decision: ``send`` or ``stop``.
    :param by: the person.
    :param claimant_id: the claimant that asked; None where none did.
    :returns: when it was recorded, in seconds since the epoch.
    :raises LedgerError: when it was not committed.
    """
    now = store.clock()
    _add(
        store,
        campaign_name,
        now,
        plan,
        claimant_id=claimant_id,
        decision=decision,
        decided_by=by,
        decided_at=now,
    )
    return now


def latest_approval(
    store: LedgerBackend, campaign_name: str, plan_ids: Collection[str] | None = None
) -> Approval | None:
    """Return the last decision about a plan of a campaign; None where there is none.

    :param plan_ids: the plans that are meant; None means any. Mapped copies of a task share a campaign, and each has
        a plan of its own. A later *stop* of any plan of the campaign counts, too.
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
            approval.c.subset,
        )
        .select_from(approval.join(campaign))
        .where(campaign.c.name == campaign_name, approval.c.decision.is_not(None))
        .where(true() if plan_ids is None else or_(approval.c.plan_id.in_(plan_ids), approval.c.decision == STOP))
        .order_by(approval.c.id.desc())
        .limit(1)
    )
    with store.read() as connection:
        found = connection.execute(query).first()
    if found is None:
        return None
    values = dict(zip(Approval._fields, found, strict=True))
    return Approval(**{**values, "cost": _cost(found.cost), "subset": _subset(found.subset)})


def asked(store: LedgerBackend, who: Claimant) -> list[PlanExtent]:
    """Return the plans that this task instance asked about, in order.

    Which of them Airflow shows is not known: it shows the first question of an attempt that reached it.

    :raises LedgerError: when the ledger cannot be read.
    """
    query = (
        select(approval.c.plan_id, approval.c.messages, approval.c.subset, approval.c.cost)
        .select_from(approval.join(claimant))
        .where(of_task(who), approval.c.decision.is_(None))
        .order_by(approval.c.id)
    )
    with store.read() as connection:
        rows = connection.execute(query)
        return [PlanExtent(row.plan_id, row.messages, _subset(row.subset), _cost(row.cost)) for row in rows]


def _cost(written: str | None) -> Decimal | None:
    return None if written is None else Decimal(written)


def _subset(written: bytes | None) -> MessageSubset | None:
    return None if written is None else MessageSubset.from_bytes(bytes(written))


def _add(store: LedgerBackend, campaign_name: str, now: float, plan: PlanExtent, **values: object) -> None:
    subset = None if plan.subset is None else plan.subset.to_bytes()
    cost = None if plan.cost is None else str(plan.cost)
    values |= {**plan._asdict(), "subset": subset, "cost": cost}
    with store.write(campaign_lock(campaign_name)) as connection:
        campaign_id = enter_campaign(connection, campaign_name, now)
        connection.execute(insert(approval).values(campaign_id=campaign_id, **values))
