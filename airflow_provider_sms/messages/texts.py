"""Texts that look the same → texts that are the same, and the words that tools write where nothing was.

A table that is exported again may come back with decomposed accents (NFD), with no-break spaces, or padded with blanks.
Nobody sees that in a message, but its key would be another, and so the person would be texted again. Whole Arrow
columns at a time: a column of plain texts costs a look at its bytes.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.arrow import constant, mask, strings, utf8

BLANKS = " \t"
_NO_BREAK_SPACES = "\u00a0\u2007\u202f"
_TO_SPACES = dict.fromkeys(map(ord, _NO_BREAK_SPACES), " ")
_NO_BREAK_BYTES = tuple(space.encode() for space in _NO_BREAK_SPACES)
_IS_BLANK = np.isin(np.arange(256), np.frombuffer(BLANKS.encode(), np.uint8))

_FIRST_NOT_ASCII = 0x80
_FIRST_THAT_COMBINES = 0xCC  # U+0300 is the first character that normalisation may touch, and this byte begins it

MISSING_WORDS = ("nan", "NaN", "NaT", "<NA>", "None", "null", "NULL", "#N/A", "\\N")
"""What pandas, NumPy, Java, databases, Excel and Hive write as text where there is no value; as a whole text, in
exactly these letters: ``Nan`` is a first name, and ``Null`` a surname."""
_LONGEST_WORD = max(map(len, MISSING_WORDS))
_BEGINS_WORD = np.isin(np.arange(256), [ord(word[0]) for word in MISSING_WORDS])


def tidy_text(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), no-break spaces as spaces, without blanks around it."""
    return plain_text(text).strip(BLANKS)


def plain_text(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), no-break spaces as spaces."""
    return unicodedata.normalize("NFC", text).translate(_TO_SPACES)


def tidy(column: pa.Array) -> pa.Array:
    """Return a column of texts with each text tidied.

    :param column: of type ``string``.
    """
    offsets, data = utf8(column)
    if not len(data):
        return column
    if data.max() >= _FIRST_NOT_ASCII:
        tidied = _composed(_with_plain_spaces(column, data), offsets, data)
        if tidied is not column:
            column, (offsets, data) = tidied, utf8(tidied)
    starts, ends = offsets[:-1], offsets[1:]
    last = len(data) - 1
    outer = _IS_BLANK[data[np.minimum(starts, last)]] | _IS_BLANK[data[ends - 1]]
    return pc.utf8_trim(column, characters=BLANKS) if (outer & (ends > starts)).any() else column


def without_missing(column: pa.Array) -> pa.Array:
    """Return a tidied column with null in place of empty texts and of the words for a missing value."""
    offsets, data = utf8(column)
    lengths = np.diff(offsets)
    if not len(lengths) or lengths.min() > _LONGEST_WORD:
        return column
    nothing = mask(lengths == 0)
    if len(data):
        first = data[np.minimum(offsets[:-1], len(data) - 1)]
        if ((lengths <= _LONGEST_WORD) & _BEGINS_WORD[first]).any():
            nothing = pc.or_(nothing, missing_words(column))
    return pc.if_else(nothing, constant(None), column) if pc.any(nothing).as_py() else column


def missing_words(column: pa.Array) -> pa.Array:
    """Tell which texts of a tidied column are a word for a missing value."""
    return pc.is_in(column, value_set=strings(MISSING_WORDS))


def _with_plain_spaces(column: pa.Array, data: np.ndarray) -> pa.Array:
    raw = data.tobytes()
    for space, encoded in zip(_NO_BREAK_SPACES, _NO_BREAK_BYTES, strict=True):
        if encoded in raw:
            column = pc.replace_substring(column, space, " ")
    return column


def _composed(column: pa.Array, offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Compose the texts in which something could be composed.

    :param offsets: of the column before its spaces were replaced; so is ``data``.
    """
    places = np.flatnonzero(data >= _FIRST_THAT_COMBINES)
    if not len(places):
        return column
    affected = np.zeros(len(column), np.bool_)
    affected[np.searchsorted(offsets, places, "right") - 1] = True
    rows = mask(affected)
    return pc.replace_with_mask(column, rows, pc.utf8_normalize(column.filter(rows), form="NFC"))
