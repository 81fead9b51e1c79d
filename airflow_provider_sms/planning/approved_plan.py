"""The id by which a plan is approved in one task and sent by another one.

DAG files load this module, so it is apart from :mod:`~airflow_provider_sms.planning.plan`, which loads Arrow.
"""

from __future__ import annotations

import re
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sms.planning.plan import Plan

_FORM = re.compile(r"([0-9a-f]{12})-([0-9a-f]{8})-(\d{1,15})-(\d{1,40}(?:\.\d{1,40})?)-(\d{1,18})", re.ASCII)


class PlanId(NamedTuple):
    """What a person approves: digests of the table's messages and of campaign and options, and the figures shown.

    Nothing but these figures changes when people are texted or opt out. What the task sends after ``last_request``, 0
    where no ledger was read, counts against them.
    """

    table: str
    options: str
    messages: int
    cost: Decimal
    last_request: int

    @classmethod
    def of(cls, plan: Plan, send_options: Mapping[str, Any] | None, last_request: int = 0) -> PlanId:
        """Return the id of a plan."""
        options = orjson.dumps([plan.campaign, send_options or {}], option=orjson.OPT_SORT_KEYS)
        return cls(plan.id, blake2b(options, digest_size=4).hexdigest(), plan.to_send, plan.estimate.cost, last_request)

    @classmethod
    def read(cls, written: object) -> PlanId:
        """Return the id that :meth:`__str__` wrote; an error does not show what was written instead."""
        found = _FORM.fullmatch(written) if isinstance(written, str) else None
        if found is None:
            raise InputError(
                "approved_plan must be the id of a plan, such as \"{{ ti.xcom_pull('plan', key='plan')['id'] }}\" "
                "after a task 'plan' with dry_run=True. Nothing was sent"
            )
        return cls(found[1], found[2], int(found[3]), Decimal(found[4]), int(found[5]))

    def __str__(self) -> str:
        return f"{self.table}-{self.options}-{self.messages}-{self.cost:f}-{self.last_request}"

    @own_decimals()
    def require(self, plan: PlanId, sent: int, sent_cost: Decimal) -> None:
        """Refuse a plan of another table, with more messages, or dearer; what may have been sent since counts, too."""
        messages, cost = plan.messages + sent, plan.cost + sent_cost
        beside = f" with {counted(sent, 'message')} that this task has sent since" if sent else ""
        if plan.table != self.table:
            differs = "the recipients or their texts have changed since"
        elif plan.options != self.options:
            differs = "the campaign or send_options have another value"
        elif messages > self.messages:
            differs = f"{counted(messages, 'message')} would be sent now{beside}, and {self.messages} were approved"
        elif cost > self.cost:
            differs = f"it would cost about {cost:f} now{beside}, and {self.cost:f} was approved"
        else:
            return
        raise InputError(
            f"This is not the plan of approved_plan: {differs}. Nothing was sent. Clear the plan task, so that the "
            "present plan is approved"
        )
