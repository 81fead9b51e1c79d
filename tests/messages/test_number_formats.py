from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.template import write_numbers
from airflow_provider_sms.recipients.values import write

FORMATS = [f"{comma}.{decimals}f" for comma in ("", ",") for decimals in range(7)]

halves = st.builds(lambda whole, power: whole / 2**power, st.integers(-(10**9), 10**9), st.integers(0, 8))
amounts = st.builds(
    lambda cents, more: cents / 100 + more, st.integers(-(10**8), 10**8), st.sampled_from([0, 0.005, 5e-7])
)
floats = st.one_of(
    st.floats(allow_infinity=False, allow_nan=False),
    halves,
    amounts,
    st.integers(-(2**53) + 1, 2**53 - 1).map(float),
    st.sampled_from([-0.0, 1e300, 999.995]),
)
decimals = st.builds(
    lambda whole, scale: Decimal(whole).scaleb(-scale), st.integers(1 - 10**30, 10**30 - 1), st.integers(0, 8)
)
integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 2000)


@given(
    st.sampled_from(FORMATS),
    st.sampled_from([(floats, pa.float64()), (integers, pa.int64()), (decimals, pa.decimal128(38, 8))]).flatmap(
        lambda kind: st.tuples(st.lists(st.none() | kind[0], min_size=1), st.just(kind[1]))
    ),
    st.integers(0, 1),
)
def test_a_number_is_written_as_by_itself_or_not_at_all(spec, column, start):
    """A column of floats, integers or decimals, or a part of one, reads as its numbers do one by one."""
    values, kind = column
    made = pa.array([*values, 1], kind)[start:]
    written = write_numbers(made, spec)
    written.validate(full=True)
    for value, text in zip(made.to_pylist(), written.to_pylist(), strict=True):
        assert text is None or text == write(value, spec)


@given(st.lists(floats, min_size=1))
def test_whole_floats_are_integers(values):
    """Without format, a float is written here only if it is whole, and as the integer that it was."""
    for value, text in zip(values, write_numbers(pa.array(values, pa.float64()), "").to_pylist(), strict=True):
        assert text is None or (value.is_integer() and text == str(int(value)))


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [(".2f", 0.0, "0.00"), (".2f", 0.05, "0.05"), (".2f", 1234.5, "1234.50"), (".2f", 123456789.99, "123456789.99"),
     (".0f", 7.4, "7"), (".3f", 2.0, "2.000"), (",.2f", 999.99, "999.99"), (".2f", 3, "3.00"), ("", 120.0, "120"),
     ("", -5.0, "-5"), ("", -0.0, "0"), (",.2f", 1000.0, "1,000.00"), (",.2f", 1234567.89, "1,234,567.89"),
     (",.0f", 54321.2, "54,321"), (",.2f", 999999.99, "999,999.99"), (".2f", Decimal("12.50"), "12.50")],
)  # fmt: skip
def test_common_numbers_need_no_python(spec, value, text):
    """Amounts as they stand in most tables are written a column at a time."""
    assert write_numbers(pa.array([value, None]), spec).to_pylist() == [text, None]


@pytest.mark.parametrize(
    ("spec", "value"),
    [(".2f", 0.125), (".2f", -1.0), (".2f", -0.0), (".2f", 1e300), (",.2f", 999.995), (".0f", 0.5), ("", 0.5),
     ("", 2.0**53), (".7f", 1.5), ("+.2f", 1.5), ("8.2f", 1.5), ("05d", 5), (".2%", 1.5)],
)  # fmt: skip
def test_other_numbers_are_left(spec, value):
    """What lies between two texts, or has another format, is left to be written by itself."""
    assert write_numbers(pa.array([value]), spec).to_pylist() == [None]
