from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import InvalidRowsError, LimitError
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning.limits import Limits, Threshold
from airflow_provider_sms.planning.plan import duration, make_plan
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import CheckedTable, Scan, check_table
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.service.responses import Balance
from airflow_provider_sms.stop_flag import StopFlag


class Look:
    """What a ledger would say: some messages are held, some people were texted too recently."""

    caps = True

    def __init__(self, held=None, capped=()):
        self._held = held or {}
        self._capped = set(capped)

    def held(self, keys):
        return {key: state for key, state in self._held.items() if key in keys}

    def capped(self, destinations):
        return self._capped & set(destinations)


def number(n):
    return str(27_820_000_000 + n)


def table_of(numbers, text="Hi"):
    return pa.table({"destination": list(numbers), "text": [text] * len(numbers)})


def planned(rows, *, suppress=None, look=None, limits=None, key_columns=None, **how):
    preparation = Preparation(None, "text", key_columns=key_columns)
    listed = None if suppress is None else read_suppressed(open_source(suppress), "destination", None)
    survey = Scan(Prices(how.pop("cost_per_part", 1)), listed, look, keyed_by_text=key_columns is None)
    table = CheckedTable()
    check_table(open_source(rows), preparation, table, StopFlag(), survey=survey, limits=limits)
    plan = make_plan("c", table, survey, chunk_size=how.pop("chunk_size", 100), **how)
    return plan, table


def test_every_row_has_its_place_in_the_plan():
    """Rows = invalid + suppressed + capped + sent + unknown + repeats + to be sent, whatever the order."""
    rows = [*map(number, range(250)), number(1), number(2), "x"]
    keys = Preparation(None, "text").prepare(table_of([number(3), number(4), number(5)]).to_batches()[0], 0).keys
    look = Look(dict(zip(keys, ["accepted", "accepted", "unknown"], strict=True)), capped=[number(6), number(1)])
    plan, _ = planned(table_of(rows), suppress=table_of([number(2), number(9)]), look=look)
    assert (plan.rows, sum(plan.invalid.values()), plan.suppressed, plan.capped) == (253, 1, 3, 3)
    assert (plan.already_sent, plan.unknown, plan.duplicate, plan.to_send, plan.requests) == (2, 1, 0, 243, 3)


def test_repeats_are_counted_and_not_paid_for():
    """A message that is in the table twice goes out once; the estimate of near repeats says so, too."""
    plan, _ = planned(table_of([number(1), number(2), number(1)]))
    assert (plan.duplicate, plan.to_send, plan.cost) == (1, 2, Decimal(2))


def test_the_plan_is_named_by_its_messages():
    """Another order is the same plan; another text or recipient is another one, whatever identifies a message."""
    rows = [number(1), number(2), number(3)]
    same, other_order = planned(table_of(rows))[0], planned(table_of(rows[::-1]))[0]
    texts = {planned(table_of(rows, text), key_columns=[])[0].id for text in ("Hi", "Ho")}
    assert same.id == other_order.id
    assert len({same.id, planned(table_of(rows[:2]))[0].id, planned(table_of(rows, "Ho"))[0].id}) == 3
    assert len(texts) == 2


def test_suppressing_somebody_leaves_the_plan_the_same():
    """An approval of more people holds for fewer."""
    rows = table_of([number(1), number(2)])
    assert planned(rows)[0].id == planned(rows, suppress=table_of([number(1)]))[0].id


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_rows": 2}, "more than max_rows=2 rows"),
        ({"max_cost": Decimal("5.5")}, "about 6 credits, more than max_cost=5.5"),
        ({"max_parts_per_message": 1}, "message of row 0 takes 2 SMS parts"),
    ],
)
def test_a_plan_beyond_a_limit_is_refused(limits, words):
    """The error names the limit, the figure and what to do, and nothing was sent."""
    rows = table_of([number(1), number(2), number(3)], "x" * 161)
    with pytest.raises(LimitError, match=words) as caught:
        Limits(**limits).check(planned(rows, limits=Limits(**limits))[0])
    assert "Nothing was sent" in str(caught.value)


def test_too_many_rows_are_not_read_to_their_end():
    """A source of the wrong kind is refused as soon as it is too long."""
    read = []

    class Endless:
        schema = table_of([number(1)]).schema

        def batches(self, columns, size):
            while True:
                read.append(1)
                yield table_of([number(len(read))]).select(columns).to_batches()[0]

    table = CheckedTable()
    with pytest.raises(LimitError):
        check_table(Endless(), Preparation(None, "text"), table, StopFlag(), limits=Limits(max_rows=5))
    assert len(read) == 6


@pytest.mark.parametrize(("limit", "refused"), [(2, True), (3, False), (0.29, True), (0.3, False), (None, False)])
def test_invalid_rows_are_limited_by_number_or_share(limit, refused):
    """A float is a share of all rows, a whole number a number of them."""
    _, table = planned(table_of([*map(number, range(7)), "x", "y", "z"]))
    if refused:
        with pytest.raises(InvalidRowsError, match="3 of 10 rows cannot be texted"):
            Limits(max_invalid=limit).check_invalid(table)
    else:
        Limits(max_invalid=limit).check_invalid(table)


def test_the_plan_as_json_holds_no_number_and_no_text():
    """Everybody who may see the task may read it: figures, and single characters."""
    rows = table_of([number(1), "2782-bad"], "Caf\N{LATIN SMALL LETTER E WITH ACUTE} \N{RIGHT SINGLE QUOTATION MARK}s")
    plan, _ = planned(rows, balance=Balance(Decimal(500), post_paid=False), seconds_per_request=90.0)
    told = plan.as_json()
    assert number(1) not in str(told)
    assert "Caf" not in str(told)
    assert (told["rows"], told["valid"], told["to_send"], told["cost"], told["balance"]) == (2, 1, 1, 1.0, 500.0)
    assert (told["requests"], told["seconds"], told["texts"]["forcing"]["characters"][0]["code"]) == (1, 90, "U+2019")


def test_the_plan_as_a_table_names_what_is_dear():
    """A character that makes a text UCS-2 stands there with its name; so do the cost and the time."""
    rows = table_of([number(1), number(2)], "It\N{RIGHT SINGLE QUOTATION MARK}s " + "x" * 80)
    plan, _ = planned(rows, cost_per_part={"27": "0.5"}, seconds_per_request=7200.0)
    table = plan.table()
    for line in (
        "U+2019 RIGHT SINGLE QUOTATION MARK (\N{RIGHT SINGLE QUOTATION MARK}) in 2 messages, in 2 of them it alone",
        "about 2.0 credits",
        "about 2 h 0 min",
        "2 messages in 1 requests",
    ):
        assert line in table


@pytest.mark.parametrize(
    ("threshold", "below"), [({"rows": 2}, True), ({"rows": 3}, False), ({"cost": Decimal(1)}, True)]
)
def test_a_plan_beyond_the_threshold_needs_approval(threshold, below):
    """More messages, or more credits, than may go out unseen."""
    plan, _ = planned(table_of([number(1), number(2), number(3)]))
    assert Threshold(**threshold).is_below(plan) is below


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59.0, "59 s"), (61.0, "1 min"), (3600.0, "1 h 0 min"), (9000.0, "2 h 30 min")]
)
def test_times_are_short(seconds, words):
    """Two units at most."""
    assert duration(seconds) == words
