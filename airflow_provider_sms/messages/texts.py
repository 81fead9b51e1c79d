"""Tidying: texts that look the same → texts that are the same, and words that tools write for a missing value → null.

A table that is exported again may come back with decomposed accents (NFD), no-break spaces, or padding blanks.
Nobody sees the difference in a message, but its key would change, and the person would be texted again. Whole Arrow
columns are tidied at a time: a column of plain texts costs no more than a look at its bytes.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.plain_text import BLANKS, MISSING_WORDS, NO_BREAK_SPACES, WINDOWS_LINE_END
from airflow_provider_sms.recipients.columns import constant, mask, replace_rows, strings, utf8, whole

if TYPE_CHECKING:
    import numpy.typing as npt

_RETURN = ord(WINDOWS_LINE_END[0])
_ANY_NO_BREAK_SPACE = f"[{NO_BREAK_SPACES}]"
_IS_BLANK = np.isin(np.arange(256), [ord(blank) for blank in BLANKS if blank.isascii()])
_OTHER_BLANKS = [blank.encode() for blank in BLANKS if not blank.isascii()]

# First bytes of characters in UTF-8: of the first one outside ASCII; of U+00A0 and others; of U+0300, the first that
# normalisation may touch; of U+2007, U+202F and others.
_FIRST_NOT_ASCII, _LATIN_SIGNS, _FIRST_THAT_COMBINES, _SPACES = 0xC2, 0xC2, 0xCC, 0xE2
_AFTER_LATIN_SIGNS = 0xA0  # of U+00A0

_LONGEST_WORD = max(map(len, MISSING_WORDS))
_BEGINS_WORD = np.isin(np.arange(256), [ord(word[0]) for word in MISSING_WORDS])


def tidy(column: pa.Array) -> pa.Array:
    """Return a column of texts with each text tidied.

    :param column: of type ``string``.
    """
    column = whole(column)
    offsets, data = utf8(column)
    if not len(data):
        return column
    if (data == _RETURN).any():
        column = pc.replace_substring(column, WINDOWS_LINE_END, "\n")
        offsets, data = utf8(column)
    places = np.flatnonzero(data >= _FIRST_NOT_ASCII)
    may_be_padded = False
    if len(places):
        may_be_padded = _holds_any(data, _OTHER_BLANKS)
        tidied = _composed(_with_plain_spaces(column, data, places), data, places)
        if tidied is not column:
            column, (offsets, data) = tidied, utf8(tidied)
    starts, ends, last = offsets[:-1], offsets[1:], len(data) - 1
    outer = _IS_BLANK[data[np.minimum(starts, last)]] | _IS_BLANK[data[ends - 1]]
    may_be_padded |= bool((outer & (ends > starts)).any())
    return pc.utf8_trim(column, characters=BLANKS) if may_be_padded else column


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
    """Return which texts of a tidied column are a word for a missing value."""
    return pc.is_in(column, value_set=strings(MISSING_WORDS))


def _holds_any(data: npt.NDArray[np.uint8], characters: list[bytes]) -> bool:
    """Return whether UTF-8 data holds any of some characters: none of them begins within the bytes of another."""
    encoded = data.tobytes()
    return any(character in encoded for character in characters)


def _with_plain_spaces(column: pa.Array, data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> pa.Array:
    """Write no-break spaces as spaces.

    :param places: where characters outside of ASCII begin in the data.
    """
    first, second = data[places], data[places + 1]
    if (((first == _LATIN_SIGNS) & (second == _AFTER_LATIN_SIGNS)) | (first == _SPACES)).any():
        return pc.replace_substring_regex(column, _ANY_NO_BREAK_SPACE, " ")
    return column


def _composed(column: pa.Array, data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> pa.Array:
    """Compose the texts that hold a character that normalisation may touch."""
    if not (data[places] >= _FIRST_THAT_COMBINES).any():
        return column
    offsets, data = utf8(column)
    affected = np.zeros(len(column), np.bool_)
    affected[np.searchsorted(offsets, np.flatnonzero(data >= _FIRST_THAT_COMBINES), "right") - 1] = True
    rows = mask(affected)
    # Not Arrow's utf8_normalize, which in older versions leaves texts as they are.
    composed = [
        None if text is None else unicodedata.normalize("NFC", text) for text in column.filter(rows).to_pylist()
    ]
    return replace_rows(column, rows, strings(composed))
