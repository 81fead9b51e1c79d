from __future__ import annotations

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


@pytest.mark.parametrize(("limit", "people", "refused"), [(None, 5, False), (0, 0, False), (0, 1, True), (2, 3, True)])
def test_people_who_have_had_another_text_are_limited(limit, people, refused):
    """The error names their number, the limit, and what to do, whether it was meant or not."""
    plan = replace(planned(texted([number(1)])), repeats=people)
    if not refused:
        Limits(max_repeats=limit).check(plan)
        return
    with pytest.raises(LimitError) as caught:
        Limits(max_repeats=limit).check(plan)
    have = "1 person has" if people == 1 else f"{people} people have"
    words = str(caught.value)
    assert words.startswith(f"{have} had another text of campaign c, more than max_repeats={limit}. Nothing was sent.")
    assert all(what in words for what in ("key_columns", "raise max_repeats", "another campaign name"))


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


@pytest.mark.parametrize(("limit", "refused"), [(2, True), (3, False), (0.29, True), (0.3, False), (None, False)])
def test_invalid_rows_are_limited_by_number_or_share(limit, refused):
    """A float is a share of all rows, a whole number a number of them."""
    invalid = checked(texted([*map(number, range(7)), "x", "y", "z"])).invalid
    if refused:
        with pytest.raises(InvalidRowsError, match=f"3 of 10 rows cannot be texted.* max_invalid={limit} allows"):
            Limits(max_invalid=limit).check_invalid(invalid, skip_invalid=True)
    else:
        Limits(max_invalid=limit).check_invalid(invalid, skip_invalid=True)


def test_invalid_rows_stop_everything_or_are_left_out():
    """By default one invalid row is too many; asked for, invalid rows are left out, but not all of them."""
    mixed, bad = (checked(texted(numbers)).invalid for numbers in ([number(1), None], [None]))
    with pytest.raises(InvalidRowsError, match="on_invalid='skip'"):
        Limits().check_invalid(mixed, skip_invalid=False)
    Limits().check_invalid(mixed, skip_invalid=True)
    with pytest.raises(InvalidRowsError, match="no row is valid"):
        Limits().check_invalid(bad, skip_invalid=True)
