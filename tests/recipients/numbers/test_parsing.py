from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from support.numbers import (
    CHARACTERS,
    DECIMALS,
    IMPOSSIBLE,
    LENGTH,
    NEGATIVE,
    NO_NUMBER,
    NUMBER,
    SHORT_FLOAT,
    cleaned,
)

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.recipients.numbers.normalize import clean_destinations


@pytest.mark.parametrize(
    "column",
    [
        pa.array([NUMBER]),
        pa.array([NUMBER], pa.large_string()),
        pa.array([NUMBER]).dictionary_encode(),
        pa.array([NUMBER], pa.large_string()).dictionary_encode(),
        pa.chunked_array([[NUMBER]]),
        pa.array([int(NUMBER)]),
        pa.array([int(NUMBER)], pa.uint64()),
        pa.array([float(NUMBER)]),
        pa.array([Decimal(NUMBER)]),
        pa.array([Decimal(NUMBER + ".00")]),
        pa.array([Decimal(NUMBER)], pa.decimal256(40, 3)),
        pa.array([int(NUMBER)]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_column_types(column):
    """Text of any width, integers, floats and decimals hold numbers, dictionary-encoded too."""
    assert cleaned(column) == [(NUMBER, None)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([821234567]),
        pa.array([821234567], pa.int32()),
        pa.array([821234567.0]),
        pa.array([Decimal(821234567)]),
    ],
    ids=lambda column: str(column.type),
)
def test_numeric_columns_have_lost_their_zero(column):
    """A national number in a numeric column is completed, though it cannot have its leading zero."""
    assert cleaned(column, "ZA") == [(NUMBER, None)]


@pytest.mark.parametrize(
    ("column", "reasons"),
    [
        (pa.array([None, -27821234567, 0], pa.int64()), [NO_NUMBER, NEGATIVE, LENGTH]),
        (pa.array([2**64 - 1], pa.uint64()), [LENGTH]),
        (pa.array([None, float("nan")]), [NO_NUMBER, NO_NUMBER]),
        (pa.array([27821234567.5, -27821234567.0]), [DECIMALS, NEGATIVE]),
        (pa.array([2.0**53, 1e300, float("inf"), float("-inf")]), [LENGTH, LENGTH, SHORT_FLOAT, SHORT_FLOAT]),
        (pa.array([27821234567.0, 2.0**24], pa.float32()), [SHORT_FLOAT, SHORT_FLOAT]),
        (pa.array([Decimal("27821234567.25"), Decimal("123456.75"), None]), [DECIMALS, DECIMALS, NO_NUMBER]),
        (pa.nulls(2), [NO_NUMBER, NO_NUMBER]),
        (pa.array([None, "x"]).dictionary_encode(), [NO_NUMBER, CHARACTERS]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
@pytest.mark.parametrize("region", [None, "ZA"])
def test_numeric_columns_refuse_what_they_lost(column, reasons, region):
    """Numeric columns refuse nothing, fractions, signs, and floats that cannot hold all digits."""
    expected = [IMPOSSIBLE if region and reason == LENGTH and _is_plain_integer(column, row) else reason
                for row, reason in enumerate(reasons)]  # fmt: skip
    assert expected == [row[1] for row in cleaned(column, region)]


def _is_plain_integer(column, row):
    return pa.types.is_integer(column.type) and column[row].as_py() >= 0


def test_a_float32_that_is_exact_is_read():
    """A short number that even a float of 32 bits holds exactly is read."""
    assert cleaned(pa.array([8212345.0], pa.float32())) == [("8212345", None)]


def test_decimals_of_negative_scale_are_read():
    """A decimal stored in thousands has an exponent in its text, though it lost no digit."""
    column = pa.array([27821234], pa.decimal128(8, 0)).cast(pa.decimal128(11, 0))
    thousands = pa.Array.from_buffers(pa.decimal128(8, -3), 1, column.buffers())
    assert cleaned(thousands) == [("27821234000", None)]


@pytest.mark.parametrize(
    "column",
    [pa.array([True]), pa.array([b"27821234567"]), pa.array([["27821234567"]]), pa.array([{"a": 1}]),
     pa.array([1], pa.timestamp("s")), pa.array([True]).dictionary_encode()],
    ids=lambda column: str(column.type),
)  # fmt: skip
def test_other_columns_are_an_error(column):
    """A column that cannot hold numbers is an error and not a column of invalid rows."""
    with pytest.raises(ColumnError, match="holds no phone numbers"):
        clean_destinations(column, None)
