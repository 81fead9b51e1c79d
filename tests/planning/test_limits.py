from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from decimal import Context, Decimal, localcontext

import pytest
from support.planning import checked, number, planned, texted

from airflow_provider_sms.exceptions import InvalidRowsError, LimitError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.batches import Source
from airflow_provider_sms.stop_flag import StopFlag


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_rows": 2}, "more rows than max_rows=2. Nothing"),
        ({"max_cost": Decimal("5.5")}, "about 6 credits, more than max_cost=5.5"),
        ({"max_parts": 1}, "message of row 0 takes 2 SMS parts"),
    ],
)
def test_a_plan_beyond_a_limit_is_refused(limits, words):
    """The error names the limit, the figure and what to do, and nothing was sent."""
    rows = texted([number(1), number(2), number(3)], "x" * 161)
    with pytest.raises(LimitError, match=words) as caught:
        Limits(**limits).check(planned(rows, limits=Limits(**limits)))
    assert "Nothing was sent" in str(caught.value)


@pytest.mark.parametrize("cost_per_part", [1, {"27": 1}])
def test_decimals_of_other_code_lift_no_limit(cost_per_part):
    """A DAG's file may compute with two digits; credits are added up with all of theirs."""
    rows = texted([number(n) for n in range(104)])
    with localcontext(Context(prec=2)), pytest.raises(LimitError, match="about 104 credits, more than max_cost=100"):
        Limits(max_cost=Decimal(100)).check(planned(rows, cost_per_part=cost_per_part))
    invalid = checked(texted([*map(number, range(148)), "x", "y"])).invalid
    with localcontext(Context(prec=1)), pytest.raises(InvalidRowsError, match="2 of 150 rows cannot be texted"):
        Limits(max_invalid=0.01).check_invalid(invalid, skip_invalid=True)


@pytest.mark.parametrize(("limit", "people", "refused"), [(None, 5, False), (0, 0, False), (0, 1, True), (2, 3, True)])
def test_people_who_have_had_another_text_are_limited(limit, people, refused):
    """The error names their number, the limit, and what to do, whether it was meant or not."""
    plan = replace(planned(texted([number(1)])), repeats=people)
    words = f" had another text of campaign c, more than max_repeats={limit}. Nothing was sent.*key_columns.*raise"
    with pytest.raises(LimitError, match=f"^{people} p.*{words}") if refused else nullcontext():
        Limits(max_repeats=limit).check(plan)


def test_too_many_rows_are_not_read_to_their_end():
    """A source of the wrong kind is refused as soon as it is too long."""
    read = []

    def endless(_):
        while True:
            read.append(1)
            yield texted([number(len(read))]).to_batches()[0]

    table = CheckedTable(Composer(None, "text"), Prices())
    with pytest.raises(LimitError):
        table.read(Source("endless", endless), StopFlag(), Limits(max_rows=5))
    assert len(read) == 6


@pytest.mark.parametrize(("rows", "words"), [(0, "0 rows"), (1, "1 row, fewer")])
def test_too_few_rows_are_refused(rows, words):
    """An empty extract is most likely a broken one, unless no limit says so."""
    with pytest.raises(LimitError, match=f"The source has {words}.*Nothing was sent"):
        Limits(min_rows=2).check_enough(rows)
    for enough in (Limits(min_rows=rows), Limits()):
        enough.check_enough(rows)


@pytest.mark.parametrize(
    ("numbers", "limit", "words"),
    [
        ([*map(number, range(7)), "x", "y", "z"], 2, "3 of 10 rows cannot be texted.* max_invalid=2 allows"),
        ([*map(number, range(7)), "x", "y", "z"], 3, None),
        ([*map(number, range(7)), "x", "y", "z"], 0.29, "3 of 10 rows cannot be texted.* max_invalid=0.29 allows"),
        ([*map(number, range(7)), "x", "y", "z"], 0.3, None),
        ([number(1), None], None, None),
        ([None], None, "no row is valid"),
    ],
)
def test_invalid_rows_are_left_out_up_to_a_number_or_share(numbers, limit, words):
    """A float is a share of all rows, a whole number a number of them; by default one invalid row is too many."""
    invalid = checked(texted(numbers)).invalid
    limits = Limits(max_invalid=limit)
    with pytest.raises(InvalidRowsError, match=words) if words else nullcontext():
        limits.check_invalid(invalid, skip_invalid=True)
    with pytest.raises(InvalidRowsError, match="on_invalid='skip'"):
        limits.check_invalid(invalid, skip_invalid=False)
