from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.recipients.columns import constant, integers, mask, strings, text, utf8, valid_rows


@given(st.lists(st.none() | st.text()))
def test_texts_as_arrow_has_them(values):
    """A column made by hand is the one that Arrow makes, nulls and foreign letters included."""
    column = strings(values)
    column.validate(full=True)
    assert pa.array(values, pa.string()).equals(column)


@given(st.lists(st.booleans()))
def test_conditions_as_arrow_has_them(values):
    """A condition made by hand is the one that Arrow makes, of any length."""
    column = mask(np.array(values, np.bool_))
    column.validate(full=True)
    assert pa.array(values, pa.bool_()).equals(column)


@pytest.mark.parametrize("value", ["", "é", True, False, 0, 1, 2**53, 0.0, 2.0**53, 0.5], ids=repr)
def test_constants(value):
    """A constant is a scalar of the type that its value has, also where Python calls two values equal."""
    assert pa.scalar(value).equals(constant(value))


def test_no_value():
    """The constant for no value is the null of a text."""
    assert pa.scalar(None, pa.string()).equals(constant(None))


def test_a_text_for_all_rows():
    """A text is a scalar."""
    assert pa.scalar("Hi José").equals(text("Hi José"))


@pytest.mark.parametrize("start", [0, 1, 9])
def test_valid_rows(start):
    """What is not null is found, also in a part of a column."""
    values = [None, "a", "", None, "b", None, None, "c", "d", None, "e"]
    assert [value is not None for value in values[start:]] == valid_rows(pa.array(values)[start:]).tolist()


@given(st.lists(st.text(), min_size=2), st.integers(0, 2))
def test_the_parts_of_texts_make_them_again(values, start):
    """Texts can be read from the bytes and the places that a column, or a slice of one, is made of."""
    offsets, data = utf8(strings(values)[start:])
    pieces = [data[begin:end].tobytes().decode() for begin, end in pairwise(offsets)]
    assert values[start:] == pieces


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
def test_integers_are_looked_at(kind):
    """An array of integers, or a slice of one, is read as it stands in memory."""
    assert integers(pa.array([1, -2, 3], kind)[1:]).tolist() == [-2, 3]
