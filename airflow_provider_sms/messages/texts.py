"""Tidying: texts that look the same → texts that are the same, and words that tools write for a missing value → null.

A table that is exported again may come back with decomposed accents (NFD), no-break spaces, padding blanks or direction
marks. Nobody sees the difference in a message, but its key would change, and the person would be texted again. Whole
Arrow columns are tidied at a time: a column of plain texts costs no more than a look at its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.plain_text import tidy_value
from airflow_provider_sms.recipients.columns import constant, mask, replace_rows, strings, utf8, whole
from airflow_provider_sms.recipients.values import MISSING_WORDS, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK, _AFTER_ASCII = ord(" "), ord("~") + 1
# First bytes of characters in UTF-8: of U+0080 to U+00BF, and of U+0300, from which on normalisation may touch a text.
_LATIN_SIGNS, _FIRST_THAT_COMBINES = 0xC2, 0xCC
_NO_BREAK_SPACE, _SOFT_HYPHEN = 0xA0, 0xAD  # second bytes; before the former there are control characters

_ERROR = ord("#")
_LONGEST_WORD = max(map(len, MISSING_WORDS))
_BEGINS_WORD = np.isin(np.arange(256), [ord(word[0]) for word in MISSING_WORDS])


def tidy(column: pa.Array, tidied: Callable[[str], str] = tidy_value) -> pa.Array:
    """Return a column of texts with each text tidied.

    :param column: of type ``string``.
    :param tidied: how a text is tidied; it has no effect but on blanks around a text of plain letters and signs.
    """
    column = whole(column)
    offsets, data = utf8(column)
    if not len(data):
        return column
    places = np.flatnonzero(data - np.uint8(_BLANK) >= _AFTER_ASCII - _BLANK)
    if len(places):
        first, second = data[places], data[np.minimum(places + 1, len(data) - 1)]
        signs = (first == _LATIN_SIGNS) & ((second <= _NO_BREAK_SPACE) | (second == _SOFT_HYPHEN))
        places = places[signs | (first >= _FIRST_THAT_COMBINES) | (first <= _AFTER_ASCII)]
    if len(places):
        affected = np.zeros(len(column), np.bool_)
        affected[np.searchsorted(offsets, places, "right") - 1] = True
        rows = mask(affected)
        texts = [None if text is None else tidied(text) for text in column.filter(rows).to_pylist()]
        column = replace_rows(column, rows, strings(texts))
        offsets, data = utf8(column)
        if not len(data):
            return column
    starts, ends, last = offsets[:-1], offsets[1:], len(data) - 1
    padded = (data[np.minimum(starts, last)] == _BLANK) | (data[ends - 1] == _BLANK)
    return pc.utf8_trim(column, characters=" ") if (padded & (ends > starts)).any() else column


def without_missing(column: pa.Array) -> pa.Array:
    """Return a tidied column with null in place of empty texts and of words for a missing value."""
    nothing = pc.or_(pc.equal(column, constant("")), missing_words(column))
    return pc.if_else(nothing, constant(None), column) if pc.any(nothing).as_py() else column


def missing_words(column: pa.Array) -> pa.Array:
    """Return which texts of a tidied column are words for a missing value, a spreadsheet's errors included."""
    offsets, data = utf8(column)
    found = np.zeros(len(column), np.bool_)
    if not len(data):
        return mask(found)
    lengths, first = np.diff(offsets), data[np.minimum(offsets[:-1], len(data) - 1)]
    errors = (lengths > 0) & (first == _ERROR)
    if errors.any():
        found[errors] = [text is not None and is_missing(text) for text in column.filter(mask(errors)).to_pylist()]
    if ((lengths <= _LONGEST_WORD) & _BEGINS_WORD[first]).any():
        return pc.or_(mask(found), pc.is_in(column, value_set=strings(MISSING_WORDS)))
    return mask(found)
