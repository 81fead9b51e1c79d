from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.planning.prices import Prices

NUMBERS = ["27821234567", "27111234567", "447012345678", "15551234567"]


@pytest.mark.parametrize(
    ("price", "numbers", "parts", "total"),
    [
        *((price, NUMBERS[:3], [1, 2, 3], "12") for price in (2, 2.0, Decimal(2), "2", "2.00")),
        # Of prefixes that fit a number the longest has its price, and '' is for those that none fits.
        ({"": 7, "27": 1, "+2782": "0.5", "44": 2.5}, NUMBERS, [1, 3, 2, 4], "36.5"),
        # Sums are those of decimals: a float is taken as it reads.
        (0.1, NUMBERS[:1] * 1_000_000, [1] * 1_000_000, "100000.0"),
        ({"27": 0.1}, NUMBERS[:1] * 3, [1] * 3, "0.3"),
    ],
    ids=range(8),
)
def test_a_column_of_messages_has_its_price(price, numbers, parts, total):
    """One price is that of a part to any number, however it is written; others are by the first digits of numbers."""
    assert Decimal(total) == Prices(price).total(numbers, parts)


@pytest.mark.parametrize(
    "ask", [lambda prices: prices.of(NUMBERS[2], 1), lambda prices: prices.total(NUMBERS, [1] * 4)]
)
def test_a_number_without_a_price_is_an_error(ask):
    """The error names the argument, and shows the first digits alone."""
    with pytest.raises(InputError, match="cost_per_part") as caught:
        ask(Prices({"27": 1, "1555": 1}))
    assert "begin with 4470:" in str(caught.value)


@pytest.mark.parametrize(
    ("price", "words"),
    [
        *(
            (price, r"^cost_per_part.*, 0 or more$")
            for price in (-1, "-0.01", float("nan"), "NaN", float("inf"), "one", "", None, True, [1], {"27": -1})
        ),
        ({"27": 1, "44": -1}, r"^cost_per_part\['44'\] is -1"),
        ({}, r"^cost_per_part has no price"),
        *(
            ({prefix: 1}, r"^cost_per_part: .* is not a prefix")
            for prefix in ("ZA", "+", "0049", "2 7", "++27", "٢٧", 27, None)
        ),
        ({"27": 1, "+27": 2}, r"^cost_per_part has two prices for one prefix"),
    ],
)
def test_what_is_no_price_is_refused(price, words):
    """A price is a number of credits, 0 or more; a prefix is text of digits, with a plus or without, and has one."""
    with pytest.raises(InputError, match=words):
        Prices(price)


prefixes = st.text(st.sampled_from("123"), max_size=4)


@given(
    st.dictionaries(prefixes, st.decimals(0, 10, places=2)).map(lambda prices: {**prices, "": Decimal(1)}),
    st.lists(st.tuples(st.text(st.sampled_from("123"), min_size=7, max_size=9), st.integers(1, 9))),
)
def test_a_total_is_the_sum(prices, messages):
    """The total of a column is the sum of what each message costs."""
    numbers, parts = [number for number, _ in messages], [count for _, count in messages]
    expected = sum((Prices(prices).of(*message) for message in messages), Decimal(0))
    assert expected == Prices(prices).total(numbers, parts)
