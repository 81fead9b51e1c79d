from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.recipients.columns import are_in, column_of, distinct, field_of, plain


@pytest.mark.parametrize(
    ("names", "wanted", "words"),
    [
        # A table without the names of its columns has a person's row in their place.
        (["0820000001", "Thandeka"], "to", "the source has no column 'to'; the names of its columns hold numbers"),
        (list("012345678"), "to", "it has '0', '1', '2', '3', '4', '5', '6', '7', '8'"),
        ([f"c{index}" for index in range(25)], "to", "'c18', 'c19' and 5 more"),
        (["first_name", "town"], "First Name", "it has 'first_name', 'town'. Did you mean 'first_name'?"),
        (["Name", "name", "NAME"], " name", "3 columns of the source could be ' name': 'Name', 'name', 'NAME'. Name"),
        (["a.b", "a.b"], "a.b", "2 columns of the source could be 'a.b': 'a.b', 'a.b'. Name one of them exactly"),
    ],
)
def test_a_name_that_no_column_or_several_have_is_refused(names, wanted, words):
    """With the names that there are, some of many, but none that may be a person's; nobody guesses."""
    with pytest.raises(ColumnError, match=f"^key_columns: .*{re.escape(words)}") as refused:
        field_of(pa.schema([(name, pa.string()) for name in names]), wanted, "key_columns")
    assert not {"0820000001", "Thandeka"} & set(re.findall(r"\w+", str(refused.value)))


IN_CAPITALS = ["DESTINATION", "DESTINATI\u00d3N\u200b", "\u00a0Destination"]


@pytest.mark.parametrize("stored", [*IN_CAPITALS, "destination ", "\ufeffdestination", "dest\u00adination"])
def test_a_name_in_other_capitals_or_with_blanks(stored):
    """A name that differs in capitals, blanks and unseen signs alone is taken, where no column has the very name."""
    schema = pa.schema([("name", pa.string()), (stored, pa.string()), ("NAME", pa.string())])
    name = "Destinati\u006f\u0301n" if "\u00d3" in stored else "destination"
    assert field_of(schema, name, "message").name == stored
    assert column_of(pa.record_batch([["a"], ["b"], ["c"]], schema), name, "message").to_pylist() == ["b"]
    assert field_of(schema, "NAME", "message").name == "NAME"


@pytest.mark.parametrize("short", [pa.decimal32(5, 2), pa.decimal64(5, 2)], ids=str)
def test_short_decimals(short):
    """They become the decimals of which Arrow can tell the distinct values, with all digits."""
    column = plain(pa.array([Decimal("1.50"), None]).cast(pa.decimal128(5, 2)).cast(short))
    assert (column.type, column.to_pylist()) == (pa.decimal128(5, 2), [Decimal("1.50"), None])


INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(INTEGERS, max_size=20), max_size=5), st.lists(INTEGERS, max_size=20))
def test_each_integer_is_there_once_and_is_found(pieces, others):
    """In ascending order, whatever the arrays that they come in; and nothing else is found."""
    every = {value for piece in pieces for value in piece}
    integers = distinct(np.array(piece, np.int64) for piece in pieces)
    assert integers.tolist() == sorted(every)
    asked = np.array([*others, *every], np.int64)
    assert are_in(integers, asked).tolist() == [value in every for value in asked.tolist()]
