from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.messages.plain_text import MISSING_WORDS, tidy_text
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.messages.texts import tidy, without_missing

BLANKS = " \t\u00a0\u2007\u202f\u3000\u200b\ufeff"
SIGNS = BLANKS + "\n\r\u2003\u3001\u200cae\u0301\u00e9\u0327\u1100\u1161\u212b\u00c2\u00a9\u20ac\U0001f600x"

some_texts = st.lists(
    st.none() | st.text(st.sampled_from(SIGNS), max_size=6) | st.sampled_from(["Ann", "nan", "", " "])
)


@given(some_texts, st.integers(0, 2))
def test_a_column_is_tidied_as_its_texts_are(texts, start):
    """Each text of a column, of a part of one too, is tidied by itself, and null stays null."""
    column = pa.array([*texts, "Ann", None], pa.string())[start:]
    expected = [None if text is None else tidy_text(text) for text in column.to_pylist()]
    tidied = tidy(column)
    assert tidied.to_pylist() == expected
    assert tidy(tidied).to_pylist() == expected
    assert without_missing(tidied).to_pylist() == [
        None if not text or text in MISSING_WORDS else text for text in expected
    ]


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("Hi Thandi", "Hi Thandi"),
        ("Jose\u0301", "Jos\u00e9"),
        ("R1\u00a0250", "R1 250"),
        ("R1\u202f250", "R1 250"),
        ("\u00a0 Ann \t", "Ann"),
        ("Ann  Lee", "Ann  Lee"),
        ("a\u3000b", "a\u3000b"),
        ("a\u200bb\ufeffc", "a\u200bb\ufeffc"),
        ("\ufeffAnn\u3000 \u200b", "Ann"),
        ("\u3000", ""),
        ("Ann\u2003", "Ann\u2003"),
        ("Hi\n", "Hi\n"),
        (" \n", "\n"),
        ("", ""),
    ],
)
def test_what_looks_the_same_is_the_same(text, tidied):
    """Accents are composed, no-break spaces are spaces, blanks around go; line breaks and other spaces stay."""
    assert tidy_text(text) == tidied
    assert tidy(pa.array([text])).to_pylist() == [tidied]


def judged(column, message="Hi {x}", **arguments):
    """Give the texts and the reasons of the rows of one column of a table, and the keys."""
    rows = pa.RecordBatch.from_pydict({"destination": [str(27820000000 + n) for n in range(len(column))], "x": column})
    arguments = {"message": message, "content_column": None, **arguments}
    prepared = Preparation(**arguments).prepare(rows, 0)
    return prepared.contents, [rejected.reason for rejected in prepared.rejected], prepared.keys


@pytest.mark.parametrize("word", MISSING_WORDS)
@pytest.mark.parametrize("arguments", [{}, {"message": None, "content_column": "x"}], ids=["template", "column"])
def test_nobody_reads_a_word_for_a_missing_value(word, arguments):
    """A row with what a tool wrote in place of nothing is invalid, and says so."""
    contents, reasons, _ = judged(["Ann", word, f" {word} "], **arguments)
    assert len(contents) == 1
    assert [reason.split(",")[0] for reason in reasons] == ["a word that tools write where a value is missing"] * 2


@pytest.mark.parametrize("name", ["Nan", "Null", "NAN", "Nane", "none", "NA", "N/A", "nano", "<na>", "O'Null", "nan."])
def test_names_are_no_missing_values(name):
    """Nan is a first name and Null a surname: in any other letters a word is a value."""
    assert judged([name])[:2] == ([f"Hi {name}"], [])


@pytest.mark.parametrize("value", ["", " ", "\u00a0", "\u200b", None])
def test_an_empty_value_is_none(value):
    """A blank is no value, in every format: nobody reads "Hi ,"."""
    assert judged([value, "Ann"])[:2] == (["Hi Ann"], ["no value"])


@pytest.mark.parametrize("message", ["None", " nan ", "NULL"])
def test_a_message_that_was_rendered_from_nothing(message):
    """A message that is nothing but such a word is refused for all."""
    with pytest.raises(TemplateError, match="no value to render it from"):
        Preparation(message, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Jos\u00e9", "Jose\u0301"),
        ("Ann Lee", "Ann\u00a0Lee"),
        ("Ann", "Ann  "),
        ("Ann", "\tAnn"),
        ("Ann", "Ann\u3000"),
        ("Ann", "Ann\ufeff"),
        ("Ann", "Ann\u200b"),
        ("a\nb", "a\r\nb"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [{}, {"message": None, "content_column": "x"}, {"message": "Hi", "key_columns": ["x"]}, {"message": "{x}, hi {x}"}],
    ids=str,
)
def test_a_new_export_that_looks_the_same_is_the_same(one, other, arguments):
    """Decomposed, with no-break spaces or padded, a value has the text and the key that it had."""
    assert judged([one], **arguments) == judged([other], **arguments)


def test_the_text_between_fields_is_tidied():
    """So are the words of the message; blanks go at its ends, and stay between fields."""
    assert judged(["Ann"], " R1\u00a0250 for {x} , Jose\u0301 ")[0] == ["R1 250 for Ann , Jos\u00e9"]
    assert judged(["Ann"], "{x} {x}\n")[0] == ["Ann Ann\n"]
    assert judged(["Ann"], "\ufeffHi\u3000{x}!\u200b")[0] == ["Hi\u3000Ann!"]


@pytest.mark.parametrize("message", ["\u3000", " \u200b\n"])
def test_a_message_that_nobody_would_see_is_empty(message):
    """What is removed around a text is no text."""
    with pytest.raises(TemplateError, match="message is empty"):
        Preparation(message, None)


def test_a_missing_key_value_is_none():
    """Exports write nothing, an empty text or a word for a missing value, so no key tells these apart."""
    missing, values = ["", None, "\u00a0", *MISSING_WORDS], ["0", "-", "Null", "none"]
    count = len(missing) + len(values)
    rows = pa.RecordBatch.from_pydict({"destination": ["27820000000"] * count, "x": [*missing, *values]})
    keys = Preparation("Hi", None, key_columns=["x"]).prepare(rows, 0).keys
    assert (len(set(keys[: len(missing)])), len(set(keys))) == (1, 1 + len(values))
