from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.recipients.columns import (
    column_of,
    field_of,
    plain,
)


def test_names_that_hold_numbers_are_not_shown():
    """A table without the names of its columns has a person's row in their place."""
    schema = pa.schema([("0820000001", pa.string()), ("Thandeka", pa.string())])
    words = "no column 'destination'; the names of its columns hold numbers, and are not shown"
    with pytest.raises(ColumnError, match=words) as refused:
        field_of(schema, "destination", "destination_column")
    assert not [name for name in schema.names if name in str(refused.value)]


def test_numbered_columns_are_shown():
    """Their names are the best hint that the names of the table are missing."""
    with pytest.raises(ColumnError, match=r"it has '0', '1', '2', '3', '4', '5', '6', '7', '8'$"):
        field_of(pa.schema([(str(number), pa.int64()) for number in range(9)]), "destination", "destination_column")


@pytest.mark.parametrize(
    "stored",
    [
        "DESTINATION",
        "destination ",
        "\u00a0Destination",
        "\ufeffdestination",
        "dest\u00adination",
        "DESTINATI\u00d3N\u200b",
    ],
)
def test_a_name_in_other_capitals_or_with_blanks(stored):
    """A name that differs in capitals, blanks and unseen signs alone is taken, where one column has it."""
    schema = pa.schema([("name", pa.string()), (stored, pa.string())])
    name = "Destinati\u006f\u0301n" if "\u00d3" in stored else "destination"
    assert field_of(schema, name, "message").name == stored
    assert column_of(pa.record_batch([["a"], ["b"]], schema), name, "message").to_pylist() == ["b"]


def test_the_very_name_wins():
    """A name that a column has exactly is that column, whatever others are called; of two alike none is taken."""
    schema = pa.schema([(name, pa.string()) for name in ("Name", "name", "NAME")])
    assert field_of(schema, "name", "message").name == "name"
    words = "^key_columns: 3 columns of the source could be ' name': 'Name', 'name', 'NAME'. Name one of them exactly"
    with pytest.raises(ColumnError, match=words):
        field_of(schema, " name", "key_columns")


def test_a_similar_name_is_asked_about():
    """A name that no column has is an error that asks whether a similar one was meant."""
    schema = pa.schema([("first_name", pa.string()), ("town", pa.string())])
    with pytest.raises(ColumnError, match=r"it has 'first_name', 'town'\. Did you mean 'first_name'\?$"):
        field_of(schema, "First Name", "message")


@pytest.mark.parametrize("short", ["decimal32", "decimal64"])
def test_short_decimals(short):
    """They become the decimals of which Arrow can tell the distinct values, with all digits."""
    if not hasattr(pa, short):
        pytest.skip("this pyarrow has no such type")
    column = plain(pa.array([Decimal("1.50"), None]).cast(pa.decimal128(5, 2)).cast(getattr(pa, short)(5, 2)))
    assert (column.type, column.to_pylist()) == (pa.decimal128(5, 2), [Decimal("1.50"), None])
