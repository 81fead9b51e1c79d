from __future__ import annotations

import time
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.masking import MOST_OF_AN_ID, mask_number, mask_numbers_in, quoted


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("27821234567", "2782*****67"),
        ("+27821234567", "2782*****67"),
        ("+27 (82) 123-4567", "2782*****67"),
        ("1234567", "1234*****67"),
        ("123456", "*****"),
        ("", "*****"),
        ("Mary Smith", "*****"),
        ("mary@example.com", "*****"),
        ("٢٧٨٢١٢٣٤٥٦٧", "٢٧٨٢*****٦٧"),
    ],
)
def test_a_number_shows_its_first_four_and_last_two_digits(text, masked):
    """A masked number is its first four digits, five stars and its last two; fewer than 7 show nothing."""
    assert masked == mask_number(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("27821234567 is opted out", "2782*****67 is opted out"),
        ("'+27 82 123 4567' and 082-123-4567", "'2782*****67' and 0821*****67"),
        ("+27 (0) 82 123 4567", "2708*****67"),
        ("+27\u00a082\u2011123\u20114567", "2782*****67"),
        ("\u202a+27 82 123 4567\u202c", "\u202a2782*****67\u202c"),
        ("٢٧٨٢١٢٣٤٥٦٧ failed", "٢٧٨٢*****٦٧ failed"),
        ("tel27821234567x", "tel2782*****67x"),
        ('{"rawDestination":"27821234567"}', '{"rawDestination":"2782*****67"}'),
        ("credit 1004.0 of 9000, code 503", "credit 1004.0 of 9000, code 503"),
        ("27,821,234,567", "2782*****67"),
        ("27|82|123|4567", "2782*****67"),
        ("27%2082%20123%204567 failed", "2782*****67 failed"),
        ("+27%2D82%2d123%C2%A04567", "2782*****67"),
        ("27 - -- (0) .. 82 ///// 123 ; 4567.", "2708*****67."),
        ("27\\u00a082\\n123&nbsp;45&#160;67", "2782*****67"),
        ('["+27821234567","+27831234568"]', '["2782*****67","2783*****68"]'),
        ('{"2782123":4567}', '{"2782*****67}'),
        ("2782123 4567 8", "2782*****78"),
        ("٢٧٨ ٢١٢ ٣٤٥٦٧, 27821234567", "٢٧٨٢*****67"),
        ("LIKE '%2782123'", "LIKE '%2782*****23'"),
        ("took 12 of 100 at 10:15, 85% of 100%", "took 12 of 100 at 10:15, 85% of 100%"),
        ("", ""),
    ],
)
def test_numbers_in_free_text_are_masked(text, masked):
    """Every run of 7 or more digits in free text is masked, whatever signs separate them; shorter runs stay."""
    assert masked == mask_numbers_in(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plenty", "'plenty'"),
        ("", "''"),
        ("it's", '"it\'s"'),
        ("a" * 20, f"'{'a' * 20}'"),
        ("a" * 21, f"'{'a' * 20}…'"),
        ("27\u00a082\u00a0123\u00a04567", "'2782*****67'"),
        ("is it 27821234567?", "'is it 2782*****67?'"),
    ],
)
def test_a_text_is_quoted_masked_and_cut(text, shown):
    """An error shows enough of a text to find it, and no number: not one whose signs its quotes would write out."""
    assert quoted(text) == shown


def test_more_of_an_id_is_quoted():
    """Its end tells it from others."""
    name = "sms_marketing_south_africa"
    assert quoted(name, MOST_OF_AN_ID) == f"'{name}'"
    assert len(quoted(name * 2, MOST_OF_AN_ID)) == MOST_OF_AN_ID + len("'…'")


@given(st.text(), st.from_regex(r"\+?[1-9][0-9]{6,14}", fullmatch=True), st.text())
def test_no_full_number_survives(before, number, after):
    """No text around a number keeps it from being masked."""
    assert number.lstrip("+") not in mask_numbers_in(f"{before} {number} {after}")


@given(st.text())
def test_masking_twice_changes_nothing(text):
    """Text that is masked already stays as it is, so layers may mask without knowing of each other."""
    once = mask_numbers_in(text)
    assert once == mask_numbers_in(once)


_SHORTEST = 0.005
"""Seconds below which a measurement is mostly noise."""


def seconds(text):
    """Return how long masking takes: the least CPU time of a few tries, since a busy machine makes each longer."""
    return min(timeit.repeat(lambda: mask_numbers_in(text), timer=time.process_time, repeat=3, number=1))


HOSTILE = ["1", "1 ", "-", "1a", "1&", "1%2", "%2D", "&aaaaaaaa", "1\\u00a0", "*****1", "27821234567,", "1" * 7 + "a"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_masking_takes_time_in_proportion_to_the_text(piece):
    """Ten times the text takes no more than some ten times as long, so no response can keep a task busy."""
    text = piece * (1_000_000 // len(piece))
    assert seconds(text) < 40 * max(seconds(text[: len(text) // 10]), _SHORTEST)
