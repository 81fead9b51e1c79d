from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.recipients.numbers.fast_path import read_plain
from airflow_provider_sms.recipients.numbers.national import find_region
from airflow_provider_sms.recipients.numbers.normalize import clean_by_rules

REGIONS = [None, "ZA", "US", "DE", "AU", "BR", "IT", "FO"]


def region_of(name):
    return None if name is None else find_region(name)


def read(values, region=None):
    return read_plain(pa.array(values, pa.string()), region_of(region)).to_pylist()


near_numbers = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.text(st.sampled_from(" \t-./()+0012789eE\u00a0\u0661\n"), max_size=18),
    st.from_regex(r"(\+|00|0|\+?27|\(0|1|011)?[0-9][0-9 /().\t-]{4,16}", fullmatch=True),
    st.from_regex(r"(\+27|0027|0|27|)[ -]?\(?[0-9]{2}\)?[ -][0-9]{3}[ -][0-9]{4}", fullmatch=True),
    st.from_regex(r"(27|0|)[678][0-9]{8}", fullmatch=True),
)


@given(st.sampled_from(REGIONS), st.lists(near_numbers, max_size=12), st.integers(0, 2))
def test_plain_numbers_are_read_as_by_all_the_rules(region, values, start):
    """Whatever is read the plain way is what the rules for every way give, and they accept it."""
    column = pa.array(values, pa.string())[start:]
    plain, judged = read_plain(column, region_of(region)), clean_by_rules(column, region_of(region)).digits
    plain.validate(full=True)
    assert plain.type == judged.type
    assert len(column) == len(plain)
    for number, by_rules in zip(plain.to_pylist(), judged.to_pylist(), strict=True):
        assert number in {None, by_rules}


numbers = st.one_of(
    st.sampled_from([27821234567, 821234567, 0, -27821234567, 2**53]),
    st.integers(-5, 10**17),
    st.integers(10**6, 10**12),
)


@given(
    st.sampled_from([pa.int64(), pa.float64(), pa.decimal128(18, 0), pa.decimal128(20, 2)]),
    st.sampled_from([None, "ZA"]),
    st.lists(st.none() | numbers, max_size=12),
    st.integers(0, 1),
)
def test_stored_numbers_are_read_as_by_all_the_rules(kind, region, values, start):
    """Numbers stored as integers, floats or decimals are read as the rules read them, in a part of a column too."""
    column = pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(20, 0))
    column = column.cast(kind, safe=False)[start:]
    judged = clean_by_rules(column, region_of(region)).digits.to_pylist()
    for number, by_rules in zip(read_plain(column, region_of(region)).to_pylist(), judged, strict=True):
        assert number in {None, by_rules}


@given(st.lists(st.floats(width=64)))
def test_floats_are_read_as_by_all_the_rules(values):
    """No fraction, infinity or large float is taken for a number."""
    column = pa.array(values, pa.float64())
    for number, by_rules in zip(
        read_plain(column, None).to_pylist(), clean_by_rules(column, None).digits.to_pylist(), strict=True
    ):
        assert number in {None, by_rules}


@pytest.mark.parametrize(
    "text",
    ["27821234567", "+27821234567", "0027821234567", "+27 82 123 4567", "27-82-123/4567", "00 27 82 123 4567",
     "+27 (82) 123\t4567", "27 821234567 "],
)  # fmt: skip
def test_common_ways_are_plain(text):
    """The ways in which most tables hold numbers do not wait for the rules for every way."""
    assert read([text, "x"]) == ["27821234567", None]
    assert read([text, "x"], "ZA") == ["27821234567", None]


@pytest.mark.parametrize("text", ["0821234567", "082 123 4567", "(082) 123-4567", "(0)82 123 4567", "82 123 4567"])
def test_common_national_ways_are_plain(text):
    """The same holds of numbers as they are written within a country."""
    assert read([text, "+447911123456"], "ZA") == ["27821234567", "447911123456"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([27821234567]),
        pa.array([27821234567.0]),
        pa.array([Decimal(27821234567)]),
        pa.array([27821234567, None]),
        pa.array([27821234567.0, None]),
    ],
    ids=lambda column: f"{column.type}-{len(column)}",
)
def test_stored_numbers_are_plain(column):
    """Numbers of numeric columns are plain, beside nulls too."""
    assert read_plain(column, None).to_pylist()[0] == "27821234567"


@pytest.mark.parametrize(
    "text",
    [None, "", " ", "+", "27", "2782123456789012", "0821234567", "+0821234567", "-27821234567", " -27821234567",
     "27821234567.0", "27.82.123.4567", "2.78E+10", "++27821234567", "27+821234567", "(+27) 82 123 4567",
     "+27 (0)82 123 4567", "+27 ( 0 )82 123 4567", "0 027821234567", "27821234567x", "27\u00a0821234567",
     "27821234567\n"],
)  # fmt: skip
def test_everything_else_is_left(text):
    """What is invalid, or has more to it, is left to the rules for every way, whatever stands next to it."""
    assert read([text]) == [None]
    assert read(["27821234567", text, "+27 82 123 4568"]) == ["27821234567", None, "27821234568"]


def test_nulls_hide_no_numbers():
    """A null is no number, also where its place in memory holds one."""
    hidden = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x01"), *pa.array(["27821234567"] * 2).buffers()[1:]]
    )
    assert read_plain(hidden, None).to_pylist() == ["27821234567", None]
