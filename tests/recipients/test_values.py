from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.recipients.values import write


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [(-0.005, ".2f", "0.00"), (-0.0051, ".2f", "-0.01"), (-0.5, ".0f", "0"), (-1.5, ".0f", "-2"),
     (-0.004, ".1%", "-0.4%"), (-0.0004, ".1%", "0.0%"),
     (-1e-10, "", "-0.0000000001"), (-3, "d", "-3"), (-3, ".1f", "-3.0"), (Decimal("-0.01"), ".2f", "-0.01")],
)  # fmt: skip
def test_other_negative_numbers_keep_their_sign(value, spec, text):
    """A minus goes only with zero: half of a cent below zero reads as zero, since ties round to the even digit."""
    assert write(value, spec) == text


@given(
    st.floats(-1, 0)
    | st.decimals(-1, 0, allow_nan=False, places=12)
    | st.sampled_from([-0.0, Decimal("-0"), Decimal("-0.00"), Decimal("-0E+3")]),
    st.sampled_from(
        [".0f", ".2f", "+.2f", " .1f", ",.2f", "f", "F", "08.2f", "8.2f", "<6.1f", "->8.2f", ".1%", "", "+", "8", ","]
    ),
)
def test_a_minus_stands_before_a_number_that_is_not_zero(value, spec):
    """A text with a minus has another digit than zero."""
    text = write(value, spec)
    assert text == write(0, spec) or ("-" in text and set(text.lower().split("e")[0]) & set("123456789"))


@pytest.mark.parametrize("spec", ["e", ".2e", "g", ".3", "n", "x", "b", "_", "#.0f", "%d %B", "s"])
def test_a_format_that_nobody_reads_is_refused(spec):
    """A format has a number of digits after the point, or none: .3 would write 1250.5 as 1.25e+03."""
    for value in (3, 1250.5, Decimal("0.5")):
        with pytest.raises(ValueError, match="a format of numbers is needed"):
            write(value, spec)
