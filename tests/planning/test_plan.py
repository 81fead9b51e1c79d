from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from support.planning import number, planned, texted

from airflow_provider_sms.service.responses import Balance


def test_the_plan_is_named_by_its_messages():
    """Another text, recipient or key is another plan, whatever identifies a message."""
    rows = [number(1), number(2), number(3)]
    with_city = texted(rows).append_column("city", pa.array(["a", "b", "c"]))
    plans = [
        planned(texted(rows)),
        planned(texted(rows[:2])),
        planned(texted(rows, "Ho")),
        *(planned(texted(rows, text), key_columns=[]) for text in ("Hi", "Ho")),
        planned(with_city, key_columns=["city"]),
    ]
    assert len({plan.id for plan in plans}) == len(plans)
    assert planned(with_city).id == plans[0].id == planned(texted(rows[::-1])).id

    def keyed(*texts):
        table = pa.table({"destination": [number(1)] * 2, "text": texts, "invoice": ["a", "b"]})
        return planned(table, key_columns=["invoice"]).id

    assert keyed("Hi", "Ho") != keyed("Ho", "Hi")


@pytest.mark.parametrize(
    ("balance", "words"),
    [
        (Balance(Decimal(2), post_paid=False), "2"),
        (Balance(Decimal("1.5"), post_paid=False), "1.5, less than the cost"),
        (Balance(Decimal(0), post_paid=True), "post-paid"),
    ],
)
def test_a_balance_below_the_cost_is_seen_in_the_plan(balance, words):
    """Also in a dry run, which refuses nothing for it."""
    assert dict(planned(texted([number(1), number(2)]), balance=balance).lines())["balance"] == words


def test_the_order_of_several_texts_of_a_message_is_part_of_the_plan():
    """The first of them is sent; rows that are alike may change places, and so may those of different messages."""

    def plan_id(*rows, **options):
        destinations, texts = zip(*rows, strict=True)
        table = pa.table({"destination": destinations, "text": texts})
        return planned(table, key_columns=["destination"], **options).id

    first, second, other = (number(1), "Hi"), (number(1), "Ho"), (number(2), "Hi")
    assert plan_id(first, second, other) != plan_id(second, first, other)
    assert plan_id(first, first, other) == plan_id(first, other, first) == plan_id(first, other)
    assert plan_id(first, other) == plan_id(other, first)
    suppress = texted([number(2)])
    assert plan_id(first, second, other, suppress=suppress) == plan_id(first, second, other)
    assert plan_id(second, first, other, suppress=suppress) != plan_id(first, second, other)


@pytest.mark.parametrize(
    ("cost_per_part", "line"),
    [
        ({"27": "0.5"}, "about 2.0 credits"),
        # The service may charge another price than the one that nobody set.
        (1, "about 4 credits, at 1 a part"),
        ({"": 1}, "about 4 credits, at 1 a part"),
    ],
)
def test_the_plan_as_a_table_names_what_is_dear(cost_per_part, line):
    """A character that makes a text UCS-2 stands there with its name; so do the cost and the price."""
    rows = texted([number(1), number(2)], "It\N{RIGHT SINGLE QUOTATION MARK}s " + "x" * 80)
    plan = planned(rows, cost_per_part=cost_per_part)
    assert (dict(plan.lines())["cost"], dict(plan.lines())["to send"]) == (line, "2 messages in 1 request")
    assert "U+2019 RIGHT SINGLE QUOTATION MARK in 2 messages" in plan.table()
