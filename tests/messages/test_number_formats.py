from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.number_formats import write_numbers

FIXED_POINT = [f"{comma}.{decimals}f" for comma in ("", ",") for decimals in range(7)]

halves = st.builds(lambda whole, power: whole / 2**power, st.integers(-(10**9), 10**9), st.integers(0, 8))
amounts = st.builds(
    lambda cents, more: cents / 100 + more, st.integers(-(10**8), 10**8), st.sampled_from([0, 0.005, 5e-7])
)
any_float = st.one_of(
    st.floats(), halves, amounts, st.integers(-(2**60), 2**60).map(float), st.sampled_from([-0.0, 1e300, 999.995])
)


@given(st.sampled_from(FIXED_POINT), st.lists(st.none() | any_float, min_size=1), st.integers(0, 1))
def test_fixed_point_is_what_python_writes(spec, values, start):
    """A float with so many digits after the point reads as Python writes it, or is left to Python."""
    column = pa.array([*values, 1.0], pa.float64())[start:]
    written = write_numbers(column, spec)
    written.validate(full=True)
    for value, text in zip([*values, 1.0][start:], written.to_pylist(), strict=True):
        assert text is None or text == format(value, spec)


@given(st.sampled_from(FIXED_POINT), st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 2000), min_size=1))
def test_integers_in_fixed_point(spec, values):
    """So does an integer."""
    for value, text in zip(values, write_numbers(pa.array(values, pa.int64()), spec).to_pylist(), strict=True):
        assert text is None or text == format(value, spec)


@given(st.lists(any_float, min_size=1))
def test_whole_floats_are_integers(values):
    """Without format, a float is written here only if it is whole, and as the integer that it was."""
    for value, text in zip(values, write_numbers(pa.array(values, pa.float64()), "").to_pylist(), strict=True):
        assert text is None or (value.is_integer() and text == str(int(value)))


@given(st.integers(0, 6), st.lists(st.integers(-(10**37), 10**37) | st.integers(-1000, 1000), min_size=1))
def test_decimals_as_stored(scale, values):
    """A decimal whose format asks for as many digits as it has reads as Python writes it, and so does a whole one."""
    column = pa.array([Decimal(f"{value}e-{scale}") for value in values], pa.decimal128(38, scale))
    for spec in ("", f".{scale}f") if scale == 0 else (f".{scale}f",):
        assert [format(value, spec) for value in column.to_pylist()] == write_numbers(column, spec).to_pylist()


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [(".2f", 0.0, "0.00"), (".2f", 0.05, "0.05"), (".2f", 1234.5, "1234.50"), (".2f", 123456789.99, "123456789.99"),
     (".0f", 7.4, "7"), (".3f", 2.0, "2.000"), (",.2f", 999.99, "999.99"), (".2f", 3, "3.00"), ("", 120.0, "120"),
     ("", -5.0, "-5"), ("", -0.0, "0"), (",.2f", 1000.0, "1,000.00"),
     (",.0f", 54321.2, "54,321"), (",.2f", 999999.99, "999,999.99")],
)  # fmt: skip
def test_common_numbers_need_no_python(spec, value, text):
    """Amounts as they stand in most tables are written a column at a time."""
    assert write_numbers(pa.array([value, None]), spec).to_pylist() == [text, None]


@pytest.mark.parametrize(
    ("spec", "value"),
    [(".2f", 0.125), (".2f", -1.0), (".2f", -0.0), (".2f", 1e300), (".2f", float("inf")), (".2f", float("nan")),
     (",.2f", 1e6), (",.2f", 999.995), (".0f", 0.5), ("", 0.5), ("", 2.0**53)],
)  # fmt: skip
def test_doubtful_numbers_are_left(spec, value):
    """What lies between two texts, or is out of the range where that can be told, is left to Python."""
    assert write_numbers(pa.array([value]), spec).to_pylist() == [None]


@pytest.mark.parametrize(
    ("column", "spec"),
    [
        (pa.array([1.5]), ".7f"),
        (pa.array([1.5]), "+.2f"),
        (pa.array([1.5]), "8.2f"),
        (pa.array([1.5]), ".2%"),
        (pa.array([5]), "05d"),
        (pa.array([True]), ".2f"),
        (pa.array(["x"]), ".2f"),
        (pa.array([Decimal("1.50")]), ".1f"),
        (pa.array([Decimal("1.50")]), ""),
        (pa.array([Decimal("1E-7")], pa.decimal128(9, 7)), ""),
        (pa.array([], pa.float64()), ".2f"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.type),
)
def test_other_formats_are_left(column, spec):
    """For other formats and types no way but Python's is known."""
    assert write_numbers(column, spec) is None
