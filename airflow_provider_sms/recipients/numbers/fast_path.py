"""The fast path: numbers written in a plain way, such as ``27821234567``, ``+27 82 123-4567`` or ``082 123 4567``.

The result is that of the rules of :mod:`~airflow_provider_sms.recipients.numbers.normalize`, at a tenth of their cost.
Every other number, and every invalid one, is left to those rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.recipients.columns import (
    constant,
    is_text,
    mask,
    replace_rows,
    string_array,
    utf8,
    valid_rows,
)
from airflow_provider_sms.recipients.numbers.parsing import whole_floats
from airflow_provider_sms.recipients.numbers.trunk_prefix import find_trunk_prefixes

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_provider_sms.recipients.numbers.national import Region

SHORTEST, LONGEST = 7, 15

_ZERO, _PLUS, _OPEN, _SPACE = b"0+( "
_BETWEEN_DIGITS = np.isin(np.arange(256), np.frombuffer(b" \t-/()+", np.uint8))


class _Bytes(NamedTuple):
    """The bytes of a column of texts."""

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
        """Return the byte at a place of each text; where the text is shorter, a byte of another text."""
        return self.data[np.minimum(self.starts + place, len(self.data) - 1)]

    def rows_of(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.searchsorted(self.offsets, positions, "right") - 1


def read_plain(column: pa.Array, region: Region | None) -> pa.Array:
    """Return the digits of numbers that are written in a plain way.

    :param column: of a type that can hold numbers.
    :param region: the region of the numbers without country code; None means that there are none.
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
    fits &= ~find_trunk_prefixes(digits.offsets, digits.data)
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
    """Return which texts are digits, with at most a plus before them and separators between them."""
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
    """Return the digits alone, without the 00 before a country code."""
    keep = _are_digits(texts.data)
    starts = texts.starts[with_zeros]
    keep[starts] = keep[starts + 1] = False
    if keep.all():
        return texts
    kept = np.zeros(len(keep) + 1, np.int32)
    np.cumsum(keep, out=kept[1:])
    return _Bytes(kept[texts.offsets], texts.data[keep])


def _are_digits(characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    digits: npt.NDArray[np.bool_] = (characters - _ZERO) < 10  # noqa: PLR2004 - characters below a zero wrap around
    return digits


def _completed(numbers: pa.Array, digits: pa.Array, national: npt.NDArray[np.bool_], region: Region) -> pa.Array:
    """Complete the national numbers as far as no parser is needed."""
    if not national.any():
        return numbers
    from airflow_provider_sms.recipients.numbers.national import complete_plain

    if national.all():
        completed = complete_plain(digits, region)
    else:
        rows = mask(national)
        completed = replace_rows(numbers, rows, complete_plain(digits.filter(rows), region))
    length = pc.binary_length(completed)
    wrong = pc.or_(pc.less(length, constant(SHORTEST)), pc.greater(length, constant(LONGEST)))
    return pc.if_else(wrong, constant(None), completed) if pc.any(wrong).as_py() else completed


def _unless_all(valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else valid
