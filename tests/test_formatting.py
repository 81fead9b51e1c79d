from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_provider_sms import formatting


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "—"),
        ("3", "3.00"),
        (Decimal("1234567.8"), "1,234,567.80"),
        ("0.3565", "0.3565"),
        (145.5, "145.50"),
        (Decimal("1E+3"), "1,000.00"),
        ("0.12345678901", "0.123457"),
    ],
)
def test_money_keeps_its_decimals(value, written):
    """At least two of them, and no more than a reader can use."""
    assert formatting.money(value) == written


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.4, "0 s"), (61, "61 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 d")]
)
def test_a_length_of_time_is_written_in_the_unit_that_says_most(seconds, written):
    """Two of a unit at least, so that rounding hides little."""
    assert formatting.duration(seconds) == written


@pytest.mark.parametrize(
    ("part", "whole", "share"),
    [(1, 4, 25.0), (5, 4, 100.0), (0, 0, None), (None, 4, None), (4, None, None), (-1, 4, 0.0)],
)
def test_a_share_is_between_nothing_and_all(part, whole, share):
    """Where either is not known, so is the share."""
    assert formatting.percent(part, whole) == share


def test_moments_are_utc_and_counts_have_their_words():
    """Pages and commands write them alike."""
    assert formatting.utc(1_000_000_000.0) == "2001-09-09 01:46:40"
    assert formatting.iso(1_000_000_000.0) == "2001-09-09T01:46:40+00:00"
    assert formatting.utc(None) == "—"
    assert [formatting.counted(n, "person", "people") for n in (0, 1, 1200)] == ["0 people", "1 person", "1,200 people"]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "rows are"), (1, "row is"), (2, "rows are"), (Decimal(1), "row is"), (1.0, "row is"), (0.5, "rows are")],
)
def test_a_word_is_singular_with_one_alone(count, words):
    """Also a verb, and with a count that is no integer, such as credits or seconds."""
    assert f"{formatting.by_count(count, 'row')} {formatting.by_count(count, 'is', 'are')}" == words
