"""The plain ways to write a number, of a whole column at once: ``27821234567``, ``+27 82 123-4567``, ``082 123 4567``.

What is read here is read as the rules of :mod:`written` and :mod:`destinations` would, at a tenth of their price. All
that has more to it, and all that is invalid, is left to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.recipients.columns import constant, is_text, mask, replaced, string_array, utf8, valid_rows
from airflow_provider_sms.recipients.numbers.parsing import whole_floats

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_provider_sms.recipients.numbers.national import Region

SHORTEST, LONGEST = 7, 15

_ZERO, _PLUS, _OPEN, _SPACE = b"0+( "
_BETWEEN_DIGITS = np.isin(np.arange(256), np.frombuffer(b" \t-/()+", np.uint8))


class _Bytes(NamedTuple):
    """A column of texts as bytes."""

    offsets: npt.NDArray[np.int32]
    """Where each text begins, and where the last ends; the first begins at 0."""
    data: npt.NDArray[np.uint8]

    @property
    def starts(self) -> npt.NDArray[np.int32]:
        return self.offsets[:-1]

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        return np.diff(self.offsets)

    def at(self, place: int) -> npt.NDArray[np.uint8]:
        """Take the byte at a place of each text: another's, or the last of all, where the text is too short."""
        return self.data[np.minimum(self.starts + place, len(self.data) - 1)]

    def rows_of(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.searchsorted(self.offsets, positions, "right") - 1


def read_plain(column: pa.Array, region: Region | None) -> pa.Array:
    """Read the numbers that are written in a plain way.

    :param column: of a type that can hold numbers.
    :param region: of the numbers without country code; None: there are none.
    :returns: strings of 7 to 15 digits with country code; null for every other number, valid or not.
    """
    texts = _as_texts(column)
    if texts is None:
        return pa.nulls(len(column), pa.string())
    found = _Bytes(*utf8(texts))
    if not len(found.data):
        return pa.nulls(len(column), pa.string())
    plain = _plainly_written(found)
    if texts.null_count:
        plain &= valid_rows(texts)
    with_plus = (found.at(0) == _PLUS) & plain
    with_zeros = (found.at(0) == _ZERO) & (found.at(1) == _ZERO) & (found.lengths > 1) & plain
    if region is not None and region.abroad != "00" and with_zeros.any():
        plain &= ~with_zeros
    digits = _digits(found, with_zeros)
    if not len(digits.data):
        return pa.nulls(len(column), pa.string())
    leading_zero = digits.at(0) == _ZERO
    fits = (digits.lengths >= SHORTEST) & (digits.lengths <= LONGEST) & ~leading_zero
    if region is None:
        return string_array(digits.offsets, digits.data, _unless_all(plain & fits))
    abroad = with_plus | with_zeros
    national = plain & ~abroad & (digits.lengths > 0)
    numbers = string_array(digits.offsets, digits.data, _unless_all(plain & abroad & fits))
    return _completed(numbers, string_array(digits.offsets, digits.data, None), national, region)


def _as_texts(column: pa.Array) -> pa.Array | None:
    kind, types = column.type, pa.types
    if is_text(kind):
        return column
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        return column.cast(pa.string())
    return whole_floats(column).cast(pa.string()) if types.is_float64(kind) else None


def _plainly_written(texts: _Bytes) -> npt.NDArray[np.bool_]:
    """Find the texts of digits, with at most a plus before and separators between them."""
    first = texts.at(0)
    plain: npt.NDArray[np.bool_] = _are_digits(first) | (first == _PLUS) | (first == _OPEN)
    plain &= texts.lengths > 0
    others = np.flatnonzero(~_are_digits(texts.data))
    if not len(others):
        return plain
    found = texts.data[others]
    odd = others[~_BETWEEN_DIGITS[found]]
    begins = np.zeros(len(texts.data) + 1, np.bool_)
    begins[texts.starts] = True
    pluses, opened = others[found == _PLUS], others[found == _OPEN]
    # A zero in brackets after the country code is not dialled from abroad.
    after = texts.data[np.minimum(opened + 1, len(texts.data) - 1)]
    opened = opened[(after == _ZERO) | (after == _SPACE)]
    for wrong in (odd, pluses[~begins[pluses]], opened[~begins[opened]]):
        plain[texts.rows_of(wrong)] = False
    return plain


def _digits(texts: _Bytes, with_zeros: npt.NDArray[np.bool_]) -> _Bytes:
    """Drop all bytes but the digits, and the 00 before a country code."""
    keep = _are_digits(texts.data)
    starts = texts.starts[with_zeros]
    keep[starts] = keep[starts + 1] = False
    if keep.all():
        return texts
    kept = np.zeros(len(keep) + 1, np.int32)
    np.cumsum(keep, out=kept[1:])
    return _Bytes(kept[texts.offsets], texts.data[keep])


def _are_digits(characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    digits: npt.NDArray[np.bool_] = (characters - _ZERO) < 10  # noqa: PLR2004 - what is below a zero wraps around
    return digits


def _completed(numbers: pa.Array, digits: pa.Array, national: npt.NDArray[np.bool_], region: Region) -> pa.Array:
    """Complete the national ones among numbers, as far as this needs no parser."""
    if not national.any():
        return numbers
    from airflow_provider_sms.recipients.numbers.national import complete_plain

    if national.all():
        completed = complete_plain(digits, region)
    else:
        rows = mask(national)
        completed = replaced(numbers, rows, complete_plain(digits.filter(rows), region))
    length = pc.binary_length(completed)
    wrong = pc.or_(pc.less(length, constant(SHORTEST)), pc.greater(length, constant(LONGEST)))
    return pc.if_else(wrong, constant(None), completed) if pc.any(wrong).as_py() else completed


def _unless_all(valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else valid
