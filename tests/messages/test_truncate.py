from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.parts import count_parts, encoding
from airflow_provider_sms.messages.truncate import shortened


@pytest.mark.parametrize(
    ("text", "parts"), [("", 1), ("a" * 160, 1), ("a" * 306, 2), ("ç" * 70, 1), ("ç" * 134, 2), ("Hi\n\n", 1)]
)
def test_what_fits_stays_as_it_is(text, parts):
    """A text is cut only where it takes more SMS than it may."""
    assert text == shortened(text, parts)


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("a" * 161, 1, "a" * 157 + "..."),
        ("a" * 307, 2, "a" * 303 + "..."),
        ("{" * 81, 1, "{" * 78 + "..."),
        ("ç" * 71, 1, "ç" * 67 + "..."),
        ("ç" * 135, 2, "ç" * 131 + "..."),
        ("😀" * 36, 1, "😀" * 33 + "..."),
        ("a" * 150 + " " * 7 + "b" * 9, 1, "a" * 150 + "..."),
    ],
)
def test_a_cut_text_is_as_long_as_it_may_be(text, parts, expected):
    """Septets and UCS-2 units are counted, pairs are whole, and no space is left before the three full stops."""
    assert expected == shortened(text, parts)


def test_a_cut_text_is_sent_in_the_alphabet_of_what_is_left():
    """An emoji that is cut off makes the text no longer UCS-2: it holds twice as much then."""
    cut = shortened("a" * 303 + "😀" * 40, 2)
    assert (cut, encoding(cut)) == ("a" * 303 + "...", "GSM-7")


@pytest.mark.parametrize(
    ("character", "count"),
    [
        ("e\u0301", 33),  # an accent of its own
        ("👨\u200d👩\u200d👧", 8),  # a family
        ("❤\ufe0f", 33),  # a sign with its style
    ],
)
def test_a_character_stays_whole(character, count):
    """What people see as one character is cut off or kept, but not halved."""
    assert character * count + "..." == shortened(character * 70, 1)


@given(
    st.one_of(
        st.text(st.sampled_from("a€[ ")),
        st.lists(st.sampled_from(["a" * 30, "😀", "ç", "b", "€", "e\u0301", " "])).map("".join),
        st.text(max_size=600),
    ),
    st.integers(1, 4),
)
def test_every_text_fits_and_begins_as_it_did(text, parts):
    """Whatever the text, it takes no more SMS than it may, and nothing but its end is changed."""
    cut = shortened(text, parts)
    assert count_parts(cut) <= parts
    assert text == cut or text.startswith(cut.removesuffix("..."))
