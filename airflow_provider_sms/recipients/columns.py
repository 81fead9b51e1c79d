"""Columns: the many Arrow types of one kind of value, reduced to one; tidied texts; look-up by name; and arrays.

Arrays are made from buffers and read as buffers, since pyarrow's own conversions from and to NumPy import pandas.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.formatting import join_some
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.recipients.values import LOST_FROM, MISSING_WORDS, is_missing, tidy_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

_DAY_SECONDS = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}
_FIRST, _END = -719_162 * _DAY_SECONDS, 2_932_897 * _DAY_SECONDS
"""Seconds from 1970 to the beginning of the year 1, and to the end of the year 9999."""
_TIDY = (
    r" -~\x{a1}-\x{ac}\x{ae}-\x{2ff}"  # Latin
    r"\x{391}-\x{3a1}\x{3a3}-\x{3ce}\x{400}-\x{482}\x{48a}-\x{52f}\x{5d0}-\x{5ea}\x{621}-\x{64a}"  # Greek to Arabic
    r"\x{2010}-\x{2027}\x{2030}-\x{205e}\x{20a0}-\x{20bf}"  # quotes and dashes, currencies
    r"\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{4e00}-\x{9fff}\x{1f300}-\x{1f3fa}\x{1f400}-\x{1faff}"  # kana, Han, pictures
)
"""Characters that stay as they are between others of them: seen, and left alone by normalisation (NFC)."""
_UNTIDY = f"^ | $|[^{_TIDY}]"
_MAY_BE_MISSING = f"^(?:{'|'.join(map(re.escape, MISSING_WORDS))}|#.*)$"


def wrong_type(field: pa.Field, used_by: str, words: str) -> ColumnError:
    """Return the error of a column whose type an argument cannot use; a struct has names, which may be numbers."""
    kind = mask_numbers_in(str(field.type)) if pa.types.is_nested(field.type) else str(field.type)
    return ColumnError(f"{used_by}: column {mask_numbers_in(field.name)!r} is of type {kind}, {words}")


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text of any width; a dictionary of text is not."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_float(kind: pa.DataType) -> bool:
    """Return whether a type is a float of 32 or 64 bits; one of 16 bits holds no number that anybody would send."""
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, without a dictionary encoding."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array: dictionaries decoded, text as ``string``, floats in 64 bits, decimals in 128.

    A float of 32 bits becomes the number that it was written as: 0.1, and not 0.10000000149011612. A float too large to
    be told from its neighbours becomes infinite: its digits are lost, and infinity is nowhere taken for a value.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return plain(column.dictionary).take(column.indices)
    if types.is_float32(kind):
        lost = pc.greater_equal(pc.abs(column.cast(pa.float64())), constant(float(LOST_FROM[32])))
        return pc.if_else(lost, constant(float("inf")), column.cast(pa.string()).cast(pa.float64()))
    if types.is_decimal(kind) and kind.bit_width < pa.decimal128(1).bit_width:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column.cast(pa.string()) if is_text(kind) else column


def whole_floats(column: pa.Array) -> pa.Array:
    """Return the whole numbers of a float64 column as 64-bit integers where exact, null for every other value."""
    exact, whole = pc.less(pc.abs(column), constant(float(LOST_FROM[64]))), pc.equal(pc.floor(column), column)
    return pc.if_else(pc.and_(exact, whole), column, pa.nulls(1, pa.float64())[0]).cast(pa.int64())


def beyond_calendar(column: pa.Array) -> pa.Array | None:
    """Return which values of a plain column are dates or times outside the years 1 to 9999; None where none can be."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.unit == "ns":  # nanoseconds end in 2262
        return None
    # In its zone, a time may be some hours earlier or later than in UTC.
    margin, values = _DAY_SECONDS if kind.tz else 0, column.cast(pa.int64())
    return pc.or_(
        pc.less(values, constant((_FIRST + margin) * _PER_SECOND[kind.unit])),
        pc.greater_equal(values, constant((_END - margin) * _PER_SECOND[kind.unit])),
    )


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Return a name of a column without what a spreadsheet or a database may change: capitals, blanks, unseen signs."""
    seen = "".join(sign for sign in normalize("NFKC", name) if category(sign) != "Cf")
    return " ".join(seen.casefold().split())


def alike(names: Sequence[str], name: str) -> list[str]:
    """Return the columns that a name may mean: those of the very name or, without any, those :func:`folded` alike."""
    return [each for each in names if each == name] or [each for each in names if folded(each) == folded(name)]


def field_of(schema: pa.Schema, name: str, used_by: str) -> pa.Field:
    """Return the field of the one column that a name means, as :func:`alike` finds it; ``used_by`` is an argument."""
    found = alike(schema.names, name)
    if len(found) == 1:
        return schema.field(found[0])
    if found:
        raise ColumnError(
            f"{used_by}: {len(found)} columns of the source could be {name!r}: {', '.join(map(repr, found))}. Name one "
            "of them exactly, or rename the others"
        )
    by_folded = {} if _hold_numbers(schema.names) else {folded(each): each for each in schema.names}
    similar = " or ".join(repr(by_folded[each]) for each in get_close_matches(folded(name), by_folded))
    question = f". Did you mean {similar}?" if similar else ""
    raise ColumnError(f"{used_by}: the source has no column {name!r}; {names_of(schema)}{question}")


def names_of(schema: pa.Schema) -> str:
    """Return words for the names of the columns, as an error shows them."""
    if _hold_numbers(schema.names):
        return (
            "the names of its columns hold numbers, and are not shown: is the header missing, so that a row of "
            "recipients is in its place?"
        )
    return f"it has {join_some([repr(name) for name in schema.names])}"


def _hold_numbers(names: Sequence[str]) -> bool:
    return any(mask_numbers_in(name) != name for name in names)


def stored_names(schema: pa.Schema, names: Sequence[str] | None) -> list[str]:
    """Return the names of columns, each once, as the source has them; None means all columns."""
    if names is None:
        return list(schema.names)
    return list(dict.fromkeys(field_of(schema, name, "columns").name for name in names))


def column_of(batch: pa.RecordBatch, name: str, used_by: str) -> pa.Array:
    """Return a column of a batch, plain."""
    field = field_of(batch.schema, name, used_by)
    return plain(batch.column(batch.schema.get_field_index(field.name)))


def strings(values: Sequence[str | None]) -> pa.Array:
    """Return a column of texts, with nulls."""
    if values.count(None) == len(values):
        return pa.nulls(len(values), pa.string())
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int32, len(encoded) + 1)
    valid = np.packbits([value is not None for value in values], bitorder="little")
    buffers = [valid if None in values else None, offsets, b"".join(encoded)]
    return pa.Array.from_buffers(
        pa.string(), len(values), [None if each is None else pa.py_buffer(each) for each in buffers]
    )


def mask(values: npt.NDArray[np.bool_]) -> pa.Array:
    """Return a boolean column."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def chosen(rows: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a boolean column as an array; null counts as False."""
    flags = pc.coalesce(rows, constant(False)).cast(pa.uint8())  # noqa: FBT003 - a value, and no switch
    return np.frombuffer(flags.buffers()[1], np.uint8)[flags.offset : flags.offset + len(flags)].astype(np.bool_)


def places(order: npt.NDArray[np.integer[Any]]) -> pa.Array:
    """Return positions as a column, by which Arrow takes rows."""
    return pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order.astype(np.int64))])


def integers(column: pa.Array) -> npt.NDArray[Any]:
    """Return a column of signed integers as an array, without a copy; the value in place of a null is undefined."""
    values = np.frombuffer(column.buffers()[1], f"i{column.type.bit_width // 8}")
    return values[column.offset : column.offset + len(column)]


def distinct(pieces: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the different integers of arrays, in ascending order; NumPy's ``unique`` takes twice the memory."""
    ordered = np.concatenate([np.empty(0, np.int64), *pieces])
    ordered.sort()
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def are_in(ordered: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which of the values are in an array in ascending order; NumPy's ``isin`` would sort it each time."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    # Among millions, values in order are looked up in less than half the time: each is near the one before.
    order = np.argsort(values)
    looked_up = values[order]
    places = np.minimum(np.searchsorted(ordered, looked_up), len(ordered) - 1)
    found = np.empty(len(values), np.bool_)
    found[order] = ordered[places] == looked_up
    return found


@lru_cache(maxsize=1000, typed=True)
def constant(value: str | float | bool | None) -> pa.Scalar:  # noqa: FBT001 - a value, and no switch
    """Return a value as a scalar, which stands for it in every row: a text or its null, a 64-bit number, a boolean."""
    if value is None or isinstance(value, str):
        return strings([value])[0]
    if isinstance(value, bool):
        return mask(np.array([value]))[0]
    kind, values = (pa.int64(), np.int64(value)) if isinstance(value, int) else (pa.float64(), np.float64(value))
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(values.tobytes())])[0]


def first_reason(*rules: tuple[pa.Array, str]) -> pa.Array:
    """Return for each row the reason of the first rule that holds for it, null where none does."""
    conditions = pc.make_struct(*(condition for condition, _ in rules), field_names=[str(i) for i in range(len(rules))])
    return pc.case_when(conditions, *(constant(reason) for _, reason in rules))


def tidy(column: pa.Array, tidied: Callable[[str], str] = tidy_value) -> pa.Array:
    """Return a column of texts with each text tidied: a pattern finds the few that need a look."""
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
    encoded = pc.dictionary_encode(column)
    return strings([write(value) for value in encoded.dictionary.to_pylist()]).take(encoded.indices)


def missing_words(column: pa.Array) -> pa.Array:
    """Return which texts of a tidied column are words for a missing value, a spreadsheet's errors included."""
    found = pc.match_substring_regex(column, _MAY_BE_MISSING)
    if not pc.any(found).as_py():
        return found
    return pc.is_in(
        column, value_set=strings([text for text in set(column.filter(found).to_pylist()) if is_missing(text)])
    )
