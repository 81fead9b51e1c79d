"""Tidying: texts that look the same → texts that are the same, and words that tools write for a missing value → null.

A table that is exported again may come back with decomposed accents (NFD), no-break spaces, padding blanks or direction
marks. Nobody sees the difference in a message, but its key would change, and the person would be texted again. A
pattern finds the few texts of a column that need a look, and each of these is tidied.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from airflow_provider_sms.messages.plain_text import tidy_value
from airflow_provider_sms.recipients.columns import constant, strings
from airflow_provider_sms.recipients.values import MISSING_WORDS, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_TIDY = (
    r" -~\x{a1}-\x{ac}\x{ae}-\x{2ff}"  # Latin
    r"\x{391}-\x{3a1}\x{3a3}-\x{3ce}\x{400}-\x{482}\x{48a}-\x{52f}\x{5d0}-\x{5ea}\x{621}-\x{64a}"  # Greek to Arabic
    r"\x{2010}-\x{2027}\x{2030}-\x{205e}\x{20a0}-\x{20bf}"  # quotes and dashes, currencies
    r"\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{4e00}-\x{9fff}\x{1f300}-\x{1f3fa}\x{1f400}-\x{1faff}"  # kana, Han, pictures
)
"""Characters that stay as they are between others of them: seen, and left alone by normalisation (NFC)."""
_UNTIDY = f"^ | $|[^{_TIDY}]"
_MAY_BE_MISSING = f"^(?:{'|'.join(map(re.escape, MISSING_WORDS))}|#.*)$"


def tidy(column: pa.Array, tidied: Callable[[str], str] = tidy_value) -> pa.Array:
    """Return a column of texts with each text tidied.

    :param tidied: how a text is tidied; it changes no text of plain letters and signs without blanks around it.
    """
    rows = pc.match_substring_regex(column, _UNTIDY)
    if not pc.any(rows).as_py():
        return column
    return pc.replace_with_mask(column, rows, strings([tidied(text) for text in column.filter(rows).to_pylist()]))


def without_missing(column: pa.Array) -> pa.Array:
    """Return a tidied column with null in place of empty texts and of words for a missing value."""
    nothing = pc.or_(pc.equal(column, constant("")), missing_words(column))
    return pc.if_else(nothing, constant(None), column) if pc.any(nothing).as_py() else column


def by_value(column: pa.Array, write: Callable[[Any], str | None]) -> pa.Array:
    """Write each distinct value of a column once."""
    distinct = pc.dictionary_encode(column)
    return strings([write(value) for value in distinct.dictionary.to_pylist()]).take(distinct.indices)


def missing_words(column: pa.Array) -> pa.Array:
    """Return which texts of a tidied column are words for a missing value, a spreadsheet's errors included."""
    found = pc.match_substring_regex(column, _MAY_BE_MISSING)
    if not pc.any(found).as_py():
        return found
    return pc.is_in(
        column, value_set=strings([text for text in set(column.filter(found).to_pylist()) if is_missing(text)])
    )
