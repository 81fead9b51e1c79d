from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages.parts import count_parts, encoding, truncate

# GSM 03.38, 6.2.1: the default alphabet in the order of its codes without the escape at 0x1B, and its extension.
GSM = (
    "@£$¥èéùìòÇ\nØø\rÅå"
    "Δ_ΦΓΛΩΠΨΣΘΞÆæßÉ"
    " !\"#¤%&'()*+,-./"
    "0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNO"
    "PQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmno"
    "pqrstuvwxyzäöñüà"
)
EXTENSION = "\f^{}\\[~]|€"


def reference(text):
    """Lay the characters out one by one, each whole, in the plainest way."""
    if all(character in GSM + EXTENSION for character in text):
        sizes, single, part = [2 if character in EXTENSION else 1 for character in text], 160, 153
    else:
        sizes, single, part = [2 if ord(character) > 0xFFFF else 1 for character in text], 70, 67
    if sum(sizes) <= single:
        return 1
    parts, used = 1, 0
    for size in sizes:
        if used + size > part:
            parts, used = parts + 1, 0
        used += size
    return parts


def test_the_alphabet_is_whole():
    """The default alphabet has 127 characters besides the escape, and the extension table ten."""
    expected = (127, 10)
    assert expected == (len(set(GSM)), len(set(EXTENSION)))


@pytest.mark.parametrize("character", [*GSM, *EXTENSION])
def test_gsm_characters_are_sent_in_septets(character):
    """Each character of the alphabet and of its extension table keeps a text in septets."""
    assert encoding(character) == "GSM-7"


@pytest.mark.parametrize(
    "character", ["`", "\t", "\x1b", "\0", "ç", "á", "Á", "“", "\u2019", "\u2013", "…", "\u00a0", "你", "😀"]
)
def test_other_characters_are_sent_in_ucs2(character):
    """One character outside of the alphabet, the ASCII backtick and tab too, makes the whole text UCS-2."""
    assert encoding(f"Hello {character}") == "UCS-2"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("€" * 80, 1),
        ("€" * 80 + "a", 2),
        ("é" * 160, 1),
        ("ç" * 70, 1),
        ("ç" * 71, 2),
        ("ç" * 134, 2),
        ("ç" * 135, 3),
        ("😀" * 35, 1),
        ("😀" * 35 + "a", 2),
        ("`" + "a" * 69, 1),
        ("`" + "a" * 70, 2),
    ],
)
def test_parts_at_the_limits(text, parts):
    """One SMS holds 160 septets or 70 units; the parts of a longer text hold 153 or 67."""
    assert parts == count_parts(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a" * 152 + "€" + "a" * 152, 3),  # 306 septets fill two parts, unless the euro sign straddles them
        ("a" * 151 + "€" + "a" * 153, 2),
        ("€" * 153, 3),  # 76 whole euro signs in a part leave one septet empty
        ("€" * 152, 2),
    ],
)
def test_an_escape_stays_with_its_character(text, parts):
    """A character of the extension table is never split across two parts."""
    assert parts == count_parts(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ç" * 66 + "😀" + "ç" * 66, 3),
        ("ç" * 65 + "😀" + "ç" * 67, 2),
        ("😀" * 67, 3),
        ("😀" * 66, 2),
    ],
)
def test_a_surrogate_pair_stays_whole(text, parts):
    """A character of two UCS-2 units is never split across two parts."""
    assert parts == count_parts(text)


def test_half_a_pair_is_counted():
    """Text with a lone surrogate, which no table holds but a caller may, is counted and does not fail."""
    assert count_parts("\ud83d" * 135) >= 2


@given(
    st.one_of(
        st.text(st.sampled_from("a€[")),
        st.lists(st.sampled_from(["a" * 30, "€", "a", "é", "[" * 7])).map("".join),
        st.lists(st.sampled_from(["a" * 30, "😀", "ç", "b", "€"])).map("".join),
        st.text(max_size=400),
    )
)
def test_count_agrees_with_the_plain_reference(text):
    """Counting by steps gives what laying out character by character gives."""
    assert reference(text) == count_parts(text)


@pytest.mark.parametrize(
    ("text", "parts"), [("", 1), ("a" * 160, 1), ("a" * 306, 2), ("ç" * 70, 1), ("ç" * 134, 2), ("Hi\n\n", 1)]
)
def test_what_fits_stays_as_it_is(text, parts):
    """A text is cut only where it takes more SMS than it may."""
    assert text == truncate(text, parts)


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
    assert expected == truncate(text, parts)


def test_a_cut_text_is_sent_in_the_alphabet_of_what_is_left():
    """An emoji that is cut off makes the text no longer UCS-2: it holds twice as much then."""
    cut = truncate("a" * 303 + "😀" * 40, 2)
    assert (cut, encoding(cut)) == ("a" * 303 + "...", "GSM-7")


@pytest.mark.parametrize(
    ("character", "count"),
    [
        ("e\u0301", 33),  # an accent of its own
        ("👨\u200d👩\u200d👧", 8),  # a family
        ("❤\ufe0f", 33),  # a sign with its style
        ("🇿🇦", 16),  # a flag, of two letters
        ("👍🏽", 16),  # a hand with the colour of its skin
        ("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", 4),  # the flag of Scotland
    ],
)
def test_a_character_stays_whole(character, count):
    """What people see as one character is cut off or kept, but not halved."""
    assert character * count + "..." == truncate(character * 70, 1)


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
    cut = truncate(text, parts)
    assert count_parts(cut) <= parts
    assert text == cut or text.startswith(cut.removesuffix("..."))
