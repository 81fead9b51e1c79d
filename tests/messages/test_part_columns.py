from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.part_columns import count_part_columns
from airflow_provider_sms.messages.parts import BASIC, EXTENSION, count_parts, encoding

AT_THE_LIMITS = [
    "",
    "a" * 160,
    "a" * 161,
    "a" * 306,
    "a" * 307,
    "é" * 160,
    "é" * 161,
    "€" * 80,
    "€" * 80 + "a",
    "a" * 152 + "€" + "a" * 152,
    "a" * 151 + "€" + "a" * 153,
    "€" * 153,
    "€" * 152,
    "ç" * 70,
    "ç" * 71,
    "ç" * 134,
    "ç" * 135,
    "😀" * 35,
    "😀" * 35 + "a",
    "ç" * 66 + "😀" + "ç" * 66,
    "ç" * 65 + "😀" + "ç" * 67,
    "😀" * 67,
    "😀" * 66,
    "[" * 70 + "ç",
    "[" * 69 + "ç",
    "\ufffd\uffff" * 40,
    "\x1b",
    "\0",
]
texts = st.one_of(
    st.text(st.sampled_from("a€[")),
    st.lists(st.sampled_from(["a" * 30, "€", "a", "é", "[" * 7])).map("".join),
    st.lists(st.sampled_from(["a" * 30, "😀", "ç", "b", "€"])).map("".join),
    st.text(max_size=400),
)


def expected(contents):
    """Lay out one by one what a column is laid out as."""
    foreign = [
        (row, ord(character))
        for row, content in enumerate(contents)
        for character in content
        if character not in BASIC + EXTENSION
    ]
    return (
        [count_parts(content) for content in contents],
        [len(content) for content in contents],
        [encoding(content) == "UCS-2" for content in contents],
        foreign,
    )


def found(column):
    layout = count_part_columns(column)
    foreign = list(zip(layout.foreign_rows.tolist(), layout.foreign_codes.tolist(), strict=True))
    return layout.parts.tolist(), layout.characters.tolist(), layout.ucs2.tolist(), foreign


@pytest.mark.parametrize("text", AT_THE_LIMITS, ids=ascii)
def test_a_text_at_a_limit(text):
    """A text is laid out in a column as it is by itself, also where a part ends in the middle of a character."""
    assert expected([text]) == found(pa.array([text]))


@given(st.lists(texts, max_size=8))
def test_a_column_agrees_with_its_texts(contents):
    """Whatever texts a column has, each has the parts, characters and encoding that it has by itself."""
    assert expected(contents) == found(pa.array(contents, pa.string()))


@given(st.lists(st.sampled_from(AT_THE_LIMITS), min_size=2))
def test_texts_beside_each_other_do_not_mix(contents):
    """A text that ends with half-filled parts leaves no mark on the next."""
    assert expected(contents) == found(pa.array(contents))


@given(st.lists(texts, min_size=3), st.integers(0, 2))
def test_a_slice_is_a_column(contents, start):
    """A slice of a column, which shares its buffers, is laid out as a column of its own."""
    assert expected(contents[start:-1]) == found(pa.array(contents)[start:-1])


@pytest.mark.slow
def test_every_character_has_its_size():
    """Every character that UTF-8 can hold takes as many septets or units as it does in a text by itself."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    some = [*characters[:0x3000], *characters[0x3000::97]]
    # Of two septets or units, 80 or 35 fill an SMS; of one, 160 or 70.
    for count in (35, 36, 70, 71, 80, 81, 160, 161):
        contents = [character * count for character in some]
        assert [count_parts(content) for content in contents] == count_part_columns(pa.array(contents)).parts.tolist()
