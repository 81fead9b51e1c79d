from __future__ import annotations

from datetime import datetime, timezone
from decimal import Context, Decimal, localcontext
from types import SimpleNamespace

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.planning.approved_plan import PlanId


def plan(cost):
    return SimpleNamespace(campaign="c", id="0" * 12, to_send=2, estimate=SimpleNamespace(cost=Decimal(cost)))


@pytest.mark.parametrize("cost", ["0.40249999999999997", "0.3333333333333333333333333333", "1234567890123456789.5"])
def test_an_id_is_read_as_it_was_written(cost):
    """Whatever the price, with as many digits as it has."""
    written = PlanId.of(plan(cost), None, 12)
    assert PlanId.read(str(written)) == written


def test_send_options_are_those_that_can_be_posted():
    """A date among them is part of the id, and the order of their names is not."""
    at = datetime(2026, 3, 1, tzinfo=timezone.utc)
    one, other = PlanId.of(plan("1"), {"a": at, "b": 1}), PlanId.of(plan("1"), {"b": 1, "a": at})
    assert (one == other, one == PlanId.of(plan("1"), {"b": 1})) == (True, False)


@pytest.mark.parametrize(
    ("sent", "cost", "words"),
    [
        (1, "1", None),
        (2, "1", "4 messages would be sent now with 2 messages that this task has sent since, and 3 were approved"),
        (1, "1.5", "it would cost about 3.5 now with 1 message that this task has sent since, and 3 was approved"),
    ],
)
def test_what_was_sent_since_counts_against_an_approval(sent, cost, words):
    """The messages and their cost, whether others became free meanwhile or prices rose."""
    approved = PlanId.of(plan("3"), None)._replace(messages=3)
    if words is None:
        approved.require(PlanId.of(plan("2"), None), sent, Decimal(cost))
        with localcontext(Context(prec=1)):  # a DAG's file may compute with one digit
            approved._replace(cost=Decimal("2.96")).require(PlanId.of(plan("2"), None), sent, Decimal("0.96"))
        return
    with pytest.raises(InputError, match=words):
        approved.require(PlanId.of(plan("2"), None), sent, Decimal(cost))
