"""What people decide about a plan before anything of it is sent, and the record of who did."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import insert, select

from airflow_provider_sms.sending.schema import approval, campaign
from airflow_provider_sms.sending.store import campaign_lock, enter_campaign

if TYPE_CHECKING:
    from airflow_provider_sms.sending.store import Store

SEND = "send"
STOP = "stop"


class Approval(NamedTuple):
    """What a person decided about a plan.

    :param plan_id: of the plan that was shown.
    :param decision: ``send`` or ``stop``.
    :param decided_by: the person.
    :param decided_at: seconds since the epoch.
    :param messages: how many the plan was of; None where that was not noted.
    :param cost: what it was to cost, in credits; None where that was not noted.
    """

    plan_id: str
    decision: str
    decided_by: str
    decided_at: float
    messages: int | None = None
    cost: Decimal | None = None


def record_approval(
    store: Store,
    campaign_name: str,
    plan_id: str,
    decision: str,
    by: str,
    *,
    claimant_id: int | None = None,
    messages: int | None = None,
    cost: Decimal | None = None,
) -> None:
    """Record what a person decided about a plan of a campaign, which need not have sent anything yet.

    :param plan_id: of the plan that was shown, at most 64 characters.
    :param decision: ``send`` or ``stop``.
    :param by: the person.
    :param claimant_id: of the try that asked; None where nobody asked.
    :param messages: how many the plan was of.
    :param cost: what it was to cost, in credits.
    :raises LedgerError: when it was not committed.
    """
    with store.write(campaign_lock(campaign_name)) as connection:
        now = store.clock()
        connection.execute(
            insert(approval).values(
                campaign_id=enter_campaign(connection, campaign_name, now),
                plan_id=plan_id,
                decision=decision,
                decided_by=by,
                decided_at=now,
                claimant_id=claimant_id,
                messages=messages,
                cost=None if cost is None else str(cost),
            )
        )


def latest_approval(store: Store, campaign_name: str) -> Approval | None:
    """Give what was last decided about a plan of a campaign; None where nothing was.

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
        .where(campaign.c.name == campaign_name)
        .order_by(approval.c.id.desc())
        .limit(1)
    )
    with store.read() as connection:
        found = connection.execute(query).first()
    if found is None:
        return None
    values = dict(zip(Approval._fields, found, strict=True))
    return Approval(**{**values, "cost": None if found.cost is None else Decimal(found.cost)})
