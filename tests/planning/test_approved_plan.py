from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from types import SimpleNamespace

import pytest

from airflow_provider_sms.planning.approved_plan import PlanId


def plan(cost):
    return SimpleNamespace(campaign="c", id="0" * 12, to_send=2, cost=Decimal(cost))


@pytest.mark.parametrize(
    "cost", ["0.40249999999999997", "0.3333333333333333333333333333", "8", "1234567890123456789.5"]
)
def test_an_id_is_read_as_it_was_written(cost):
    """Whatever the price, with as many digits as it has."""
    written = PlanId.of(plan(cost), None)
    assert PlanId.read(str(written)) == written


def test_send_options_are_those_that_can_be_posted():
    """A date among them is part of the id, and the order of their names is not."""
    at = datetime(2026, 3, 1, tzinfo=timezone.utc)
    one, other = PlanId.of(plan("1"), {"a": at, "b": 1}), PlanId.of(plan("1"), {"b": 1, "a": at})
    assert (one == other, one == PlanId.of(plan("1"), {"b": 1})) == (True, False)
