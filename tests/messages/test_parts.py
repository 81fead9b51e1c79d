from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parts import EXTENSION, GSM, laid_out

from airflow_provider_sms.messages.parts import count_parts
from airflow_provider_sms.notifications.sms import truncate


@pytest.mark.parametrize("character", [*GSM, *EXTENSION])
def test_gsm_characters_are_sent_in_septets(character):
    """Each of the 127 characters of the alphabet and the ten of its extension table keeps a text in septets."""
    assert (len(set(GSM)), len(set(EXTENSION))) == (127, 10)
    assert count_parts("a" * 150 + character) == 1


@pytest.mark.parametrize(
    "character", ["`", "\t", "\x1b", "\0", "ç", "á", "Á", "“", "\u2019", "\u2013", "…", "\u00a0", "你", "😀"]
)
def test_other_characters_are_sent_in_ucs2(character):
    """One character outside of the alphabet, the ASCII backtick and tab too, makes the whole text UCS-2."""
    assert count_parts("a" * 150 + character) == 3


BY_PARTS = {
    1: ["", "a" * 160, "€" * 80, "ç" * 70, "😀" * 35],
    2: ["a" * 161, "a" * 306, "€" * 80 + "a", "ç" * 71, "ç" * 134, "😀" * 35 + "a"],
    3: ["a" * 307, "ç" * 135, "\ud83d" * 135],  # halves, which no table holds but a caller may
}
BESIDE_A_LIMIT = {
    2: ["a" * 151 + "€" + "a" * 153, "€" * 152, "ç" * 65 + "😀" + "ç" * 67, "😀" * 66],
    3: ["a" * 152 + "€" + "a" * 152, "€" * 153, "ç" * 66 + "😀" + "ç" * 66, "😀" * 67],
}
"""A character of two septets or units is never split across two parts."""


@pytest.mark.parametrize(
    ("text", "parts"), [(text, n) for some in (BY_PARTS, BESIDE_A_LIMIT) for n in some for text in some[n]]
)
def test_parts_at_the_limits(text, parts):
    """One SMS holds 160 septets or 70 units; the parts of a longer text hold 153 or 67."""
    assert parts == count_parts(text)


mixed = st.one_of(
    st.text(st.sampled_from("a€[ ")),
    st.lists(st.sampled_from(["a" * 30, "€", "a", "é", "[" * 7])).map("".join),
    st.lists(st.sampled_from(["a" * 30, "😀", "ç", "b", "€", "e\u0301", " "])).map("".join),
    st.text(max_size=600),
)


@given(mixed)
def test_count_agrees_with_the_plain_reference(text):
    """Counting by steps gives what laying out character by character gives."""
    assert laid_out(text) == count_parts(text)


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("a" * 307, 2, "a" * 303 + "..."),
        ("{" * 81, 1, "{" * 78 + "..."),
        ("ç" * 135, 2, "ç" * 131 + "..."),
        ("😀" * 36, 1, "😀" * 33 + "..."),
        ("a" * 150 + " " * 7 + "b" * 9, 1, "a" * 150 + "..."),
        ("a" * 303 + "😀" * 40, 2, "a" * 303 + "..."),  # what is left is in the GSM alphabet, and holds twice as much
        ("a" * 306, 2, "a" * 306),
        ("Hi\n\n", 1, "Hi\n\n"),
    ],
)
def test_a_cut_text_is_as_long_as_it_may_be(text, parts, expected):
    """Septets and UCS-2 units are counted, pairs are whole, and no space is left before the three full stops."""
    assert expected == truncate(text, parts)


@given(mixed, st.integers(1, 4))
def test_every_text_fits_and_begins_as_it_did(text, parts):
    """Whatever the text, it takes no more SMS than it may, and is changed only where it would: its end is cut off."""
    cut = truncate(text, parts)
    assert count_parts(cut) <= parts
    assert (cut == text) == (count_parts(text) <= parts)
    assert text == cut or text.startswith(cut.removesuffix("..."))
