from __future__ import annotations

import sys
import unicodedata

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.composed import composed

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.messages.arguments import check_message
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.columns import _UNTIDY, tidy, without_missing
from airflow_provider_sms.recipients.values import MISSING_WORDS, is_missing, tidy_text, tidy_value

SIGNS = (
    " \t\xa0\u2007\u202f\u3000\u200b\ufeff\n\r\v\x00\x7f\x85\x92\u2028\u2003\u3001ae\u0301\xe9\u0327\u1100\u1161\u212b"
    "\xc2\xa9\xad\u20ac\u034f\u200c\u200d\u200f\u2764\ufe0e\ufe0f\u20e31\U0001f3fd\U0001f469\U0001f3f4\U000e0067\U000e007f"
    "\u06cc\u0627\u0d4d\u845b\U000e0100\u1820\u180b\U0001f600x"
)

some_texts = st.lists(
    st.none() | st.text(st.sampled_from(SIGNS), max_size=6) | st.sampled_from(["Ann", "nan", "", " ", "#REF!", "#1"])
)


@given(some_texts, st.integers(0, 2), st.sampled_from([tidy_text, tidy_value]))
def test_a_column_is_tidied_as_its_texts_are(texts, start, tidied):
    """Each text of a column, of a part of one too, is tidied by itself and for good, and null stays null."""
    column = pa.array([*texts, "Ann", None], pa.string())[start:]
    expected = [None if text is None else tidied(text) for text in column.to_pylist()]
    once = tidy(column, tidied)
    assert once.to_pylist() == expected
    assert tidy(once, tidied).to_pylist() == expected
    assert without_missing(once).to_pylist() == [None if not text or is_missing(text) else text for text in expected]


TIDIED = {
    "Jos\u00e9": ["Jose\u0301"],
    "\u00e9": ["e\u200b\u0301"],
    "R1 250": ["R1\u00a0250", "R1\u202f250"],
    "Ann": ["\u00a0 Ann \t", "\ufeffAnn\u3000 \u200b", "\x00A\x1bn\x7fn\x92", "A\xadn\u2060n", "Ann\ufe0f"],
    "Ann Lee": ["Ann\tLee"],
    "abc": ["a\u200bb\ufeffc"],
    "": ["\u3000"],
    **{text: [text] for text in ("Hi Thandi", "Ann  Lee", "a\u3000b", "Ann\u2003")},
}


@pytest.mark.parametrize(("text", "tidied"), [(text, tidied) for tidied, texts in TIDIED.items() for text in texts])
def test_what_looks_the_same_is_the_same(text, tidied):
    """Accents are composed, tabs and no-break spaces are spaces, blanks around go; other spaces stay."""
    assert tidy_text(text) == tidy_value(text) == tidied
    assert tidy(pa.array([text])).to_pylist() == tidy(pa.array([text]), tidy_text).to_pylist() == [tidied]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_a_line_ends_in_one_way(end):
    """However a line ends, it does so in a finished text as GSM 03.38 has it; a value stands on one line."""
    assert tidy_text(f"a{end}{end}b{end}") == "a\n\nb\n"
    assert tidy_value(f"{end}a{end}b{end}") == "a b"
    assert judged([f"a{end}b{end}"])[0] == ["Hi a b"]
    assert judged([f"a{end}b"], None, content_column="x")[0] == ["a\nb"]
    assert judged(["Ann"], f"Hi{end}{{x}}")[0] == ["Hi\nAnn"]


# Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 16.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip


@pytest.mark.parametrize(("first", "last"), IGNORABLE, ids=lambda code: f"{code:X}")
def test_what_nobody_sees_is_not_there(first, last):
    """A character that Unicode calls default-ignorable does not count among letters that stand apart."""
    column = pa.array([f"{chr(code)}Tha{chr(code)}ndi{chr(code)}" for code in range(first, last + 1)])
    assert set(tidy(column).to_pylist()) == set(tidy(column, tidy_text).to_pylist()) == {"Thandi"}


GONE = [
    ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f"), ("1\ufe0f", "1"), ("A\ufe0f\u200d\U0001f469", "A\U0001f469"),
    ("\U0001f469\u200d", "\U0001f469"), ("\u200d\U0001f469", "\U0001f469"),
    ("\U0001f3f4\U000e0067", "\U0001f3f4"),  # a flag of nowhere
    ("\u0639\u0644\u06cc\u200c", "\u0639\u0644\u06cc"), ("\u0645\u06cc\u200c\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ("\u0645\u06cc\u200f\u200c\u062e", "\u0645\u06cc\u200c\u062e"), ("A\U000e0100", "A"),
]  # fmt: skip
SEEN = [
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # family: emoji-zwj-sequences.txt, as the next six
    "\U0001f469\U0001f3fd\u200d\U0001f4bb",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0001f3f4\u200d\u2620\ufe0f",
    "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0f",
    "\u2764\ufe0f\u200d\U0001f525",
    "\U0001f642\u200d\u2194\ufe0f",
    "\u2764\ufe0f",  # red heart, and the same in black: emoji-variation-sequences.txt
    "\u2764\ufe0e",
    "\xa9\ufe0f",
    "1\ufe0f\u20e3",  # keycap: emoji-sequences.txt
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # flag of England: the same
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian "I want": UAX #31, A1
    "\u0915\u094d\u200c\u0937",  # Devanagari without a ligature: A2
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala "Sri": B
    "\u0d05\u0d35\u0d28\u0d4d\u200d",  # Malayalam "he", in the spelling before Unicode 5.1
    "\u845b\U000e0100",  # a Japanese name's own form of a character: the Ideographic Variation Database
    "\u1820\u180b",  # Mongolian: StandardizedVariants.txt
]


@pytest.mark.parametrize(("text", "seen"), [*((seen, seen) for seen in SEEN), *GONE], ids=ascii)
def test_what_changes_what_is_seen_stays(text, seen):
    """Joiners, variation selectors and tags stay where Unicode gives them an effect, and of several one."""
    assert tidy_text(text) == tidy_value(text) == seen
    assert judged([text])[0] == [f"Hi {seen}"]


def judged(column, message="Hi {x}", **arguments):
    """Give the texts and the reasons of the rows of one column of a table, and the keys."""
    rows = pa.RecordBatch.from_pydict({"destination": [str(27820000000 + n) for n in range(len(column))], "x": column})
    arguments = {"message": message, "content_column": None, **arguments}
    prepared = composed(Composer(**arguments), rows)
    return prepared.contents, [rejected.reason for rejected in prepared.rejected], prepared.keys


# By Excel's function ERROR.TYPE and XlCVError, Google Sheets' ErrorType and LibreOffice's help; then as Excel writes
# them in German, French, Spanish, Italian, Dutch, Polish, Russian, Greek, Danish and Czech.
SHEET_ERRORS = [
    "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CONNECT!",
    "#BLOCKED!", "#UNKNOWN!", "#FIELD!", "#CALC!", "#BUSY!", "#EXTERNAL!", "#PYTHON!", "#TIMEOUT!", "#ERROR!",
    "Loading...", "Err:502", "Err:508", "Err:522", "#FMT", "###", "########",
    "#BEZUG!", "#WERT!", "#NV", "#ÜBERLAUF!", "#VALEUR!", "#NOM?", "#¡REF!", "#¿NOMBRE?", "#¡DIV/0!", "#RIF!", "#N/D",
    "#VERW!", "#DEEL/0!", "#N/B", "#ADR!", "#N/D!", "#ССЫЛКА!", "#\u041d/\u0414", "#ΔΙΑΙΡ./0!", "#\u0394/\u03a5",
    "#VÆRDI!", "#I/T", "#NENÍ_K_DISPOZICI",
]  # fmt: skip


@pytest.mark.parametrize("word", dict.fromkeys([*MISSING_WORDS, *SHEET_ERRORS]))
@pytest.mark.parametrize("arguments", [{}, {"message": None, "content_column": "x"}], ids=["template", "column"])
def test_nobody_reads_a_word_for_a_missing_value(word, arguments):
    """A row with what a tool or a spreadsheet wrote in place of nothing is invalid, and says so."""
    contents, reasons, _ = judged(["Ann", word, f" {word}\n"], **arguments)
    assert len(contents) == 1
    assert [reason.split(",")[0] for reason in reasons] == ["a word that tools write where a value is missing"] * 2


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0", "\u200b", "\u2060", "\x00", None])
def test_nobody_reads_a_blank(text):
    """It is no value in a template, so nobody reads "Hi ,", and no text in a column; a finished text has no fields."""
    assert judged([text, "Ann"])[:2] == (["Hi Ann"], ["no value"])
    reason = "no value" if text is None else "the text is empty"
    assert judged([text, "Hi {x}"], None, content_column="x")[:2] == (["Hi {x}"], [reason])
    for blank, arguments in (("\u00a0\u2003", {}), ("\u2003\u00a0", {"message": None, "content_column": "x"})):
        assert judged([blank], **{"message": " {x}", **arguments})[:2] == ([], ["the text is empty"])


@pytest.mark.parametrize(
    "name",
    ["Nan", "Null", "NAN", "Nane", "none", "NA", "N/A", "nano", "<na>", "O'Null", "nan.", "#1", "#1!", "#VIP",
     "#thanks!", "#Sale!", "# REF!", "REF!", "#REF! Ann", "Hi #REF!", "##", "#1/2", "C#", "Err:5", "Err: 502"],
)  # fmt: skip
def test_names_are_no_missing_values(name):
    """Nan is a first name, Null a surname and #VIP a tag: in any other letters, or in a text, a word is a value."""
    assert judged([name])[:2] == ([f"Hi {name}"], [])


def test_an_error_among_numbers_in_text_is_missing():
    """An error in a column that a format reads as numbers is no value, rather than no number."""
    texts, (error, word), _ = judged(["12.5", "#DIV/0!", "soon"], "{x:.2f}")
    assert (texts, "#REF!" in error, "not a number" in word) == (["12.50"], True, True)


@pytest.mark.parametrize(("one", "other"), [(one, other) for one, others in TIDIED.items() for other in others])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"message": None, "content_column": "x"}, {"message": "Hi", "key_columns": ["x"]}, {"message": "{x}, hi {x}"}],
    ids=str,
)
def test_a_new_export_that_looks_the_same_is_the_same(one, other, arguments):
    """Decomposed, with no-break spaces or padded, a value has the text and the key that it had."""
    assert judged([one], **arguments) == judged([other], **arguments)


def test_the_text_between_fields_is_tidied():
    """So are the words of the message; blanks go at its ends, and stay between fields, as line breaks do."""
    assert judged(["Ann"], " R1\u00a0250 for {x} , Jose\u0301 ")[0] == ["R1 250 for Ann , Jos\u00e9"]
    assert judged(["Ann"], "{x} {x}\n")[0] == ["Ann Ann\n"]
    assert judged(["Ann"], "\ufeffHi\u3000{x}\u200e!\u200b")[0] == ["Hi\u3000Ann!"]


@pytest.mark.parametrize(
    ("message", "words"),
    [(word, "no value to render it from") for word in ("None", " nan ", "NULL", "#REF!\n")]
    + [(blank, "message is empty") for blank in ("", "  \n", "\u3000", " \u200b\n")]
    + [(None, "message must be a text, not NoneType"), (5, "message must be a text, not int")],
)
def test_a_message_that_nobody_should_read(message, words):
    """One that was rendered from nothing, or is nothing but what is removed around a text, is refused for all."""
    with pytest.raises(TemplateError, match=words):
        check_message(message)


def test_a_missing_key_value_is_none():
    """Exports write nothing, an empty text or a word for a missing value, so no key tells these apart."""
    missing, values = ["", None, "\u00a0", *MISSING_WORDS, *SHEET_ERRORS], ["0", "-", "Null", "none", "#1"]
    count = len(missing) + len(values)
    rows = pa.RecordBatch.from_pydict({"destination": ["27820000000"] * count, "x": [*missing, *values]})
    keys = composed(Composer("Hi", None, key_columns=["x"]), rows).keys
    assert (len(set(keys[: len(missing)])), len(set(keys))) == (1, 1 + len(values))


def test_characters_that_are_passed_over_need_no_tidying():
    """By Unicode's tables, each stays what it is, alone and beside the others."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    inside = pa.array([f"a{character}a" for character in every])
    passed = [
        each
        for each, rest in zip(every, pc.match_substring_regex(inside, _UNTIDY).to_pylist(), strict=True)
        if not rest
    ]
    assert len(passed) > 20_000
    assert [each for each in passed if tidy_value(f"a{each}a") != f"a{each}a"] == []
    decomposed = (unicodedata.decomposition(each).split() for each in every)
    seconds = {chr(int(parts[1], 16)) for parts in decomposed if len(parts) == 2 and "<" not in parts[0]}
    assert seconds.isdisjoint(passed)
