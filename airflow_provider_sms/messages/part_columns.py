"""The SMS parts of a whole column of texts; :mod:`~airflow_provider_sms.messages.parts` counts those of one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.messages.integer_set import are_in
from airflow_provider_sms.messages.parts import (
    BASIC,
    EXTENSION,
    SEPTETS_PART,
    SEPTETS_SINGLE,
    UNITS_PART,
    UNITS_SINGLE,
)
from airflow_provider_sms.recipients.columns import utf8

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

_TWO_SEPTETS, _ONE_UNIT, _TWO_UNITS = 1, 2, 3
_ASTRAL = 0x10000  # characters from here on are pairs in UCS-2, and share one place in the table

_KINDS = np.full(_ASTRAL + 1, _ONE_UNIT, np.uint8)
_KINDS[[ord(character) for character in BASIC]] = 0
_KINDS[[ord(character) for character in EXTENSION]] = _TWO_SEPTETS
_KINDS[_ASTRAL] = _TWO_UNITS

# How many bytes of a character follow its first byte, by that byte (UTF-8, RFC 3629).
_FURTHER_BYTES = np.zeros(256, np.int64)
_FURTHER_BYTES[0xC0:], _FURTHER_BYTES[0xE0:], _FURTHER_BYTES[0xF0:] = 1, 2, 3
# Whether a byte may begin a character outside the basic alphabet; beyond ASCII, the character has to be decoded.
_BEGINS_SPECIAL = bytes(int(_KINDS[byte]) != 0 for byte in range(0x80)) + bytes(0x40) + b"\1" * 0x40


@dataclass(frozen=True, slots=True, repr=False)
class PartColumns:
    """The sizes of a column of texts. The first three arrays have a value for each text."""

    parts: npt.NDArray[np.int32]
    """SMS parts, at least 1."""
    characters: npt.NDArray[np.int32]
    """Code points."""
    ucs2: npt.NDArray[np.bool_]
    """Whether the text is sent in UCS-2; else in septets."""
    foreign_rows: npt.NDArray[np.int64]
    """For each character outside of the GSM alphabet, in order, the text in which it stands."""
    foreign_codes: npt.NDArray[np.uint32]
    """The code points of these characters."""


def count_part_columns(contents: pa.Array) -> PartColumns:
    """Return the SMS parts, the length and the encoding of each text.

    :param contents: of type ``string``, without nulls.
    """
    offsets, data = utf8(contents)
    lengths, count, raw = np.diff(offsets), len(contents), data.tobytes()
    # By bytes.translate, which takes half the time of a look-up in NumPy.
    places = np.flatnonzero(np.frombuffer(raw.translate(_BEGINS_SPECIAL), np.bool_))
    if not len(places):
        none = np.empty(0, np.int64)
        parts = _count(lengths, SEPTETS_SINGLE, SEPTETS_PART)
        return PartColumns(parts, lengths, np.zeros(count, np.bool_), none, none.astype(np.uint32))

    # From here on, mostly only the characters that begin at these places are looked at.
    rows = np.repeat(np.arange(count), np.diff(np.searchsorted(places, offsets)))
    further = _FURTHER_BYTES.take(data[places])
    characters = lengths - np.bincount(rows, further, count).astype(np.int32)
    # All continuation bytes belong to these characters.
    at = places - (np.cumsum(further) - further)
    codes = np.frombuffer(raw.decode().encode("utf-32-le"), np.uint32)[at]
    kinds = _KINDS.take(np.minimum(codes, _ASTRAL))
    foreign = kinds >= _ONE_UNIT
    ucs2 = np.bincount(rows[foreign], minlength=count) > 0
    # A character of two septets takes one unit.
    doubled = (kinds == _TWO_UNITS) | ((kinds == _TWO_SEPTETS) & ~ucs2[rows])
    doubles = np.bincount(rows[doubled], minlength=count)

    sizes = characters + doubles
    parts = np.where(ucs2, _count(sizes, UNITS_SINGLE, UNITS_PART), _count(sizes, SEPTETS_SINGLE, SEPTETS_PART))
    filled = (doubles > 0) & (parts > 1)
    if filled.any():
        halves = at[doubled] + np.arange(doubled.sum())
        stop = np.cumsum(sizes)
        capacity = np.where(ucs2, UNITS_PART, SEPTETS_PART)
        parts[filled] = _fill(halves, (stop - sizes)[filled], stop[filled], capacity[filled])
    return PartColumns(parts, characters, ucs2, rows[foreign], codes[foreign])


def _count(sizes: npt.NDArray[np.integer], single: int, part: int) -> npt.NDArray[np.int32]:
    """Return the parts of texts that can be cut anywhere."""
    return np.where(sizes <= single, 1, -(-sizes // part)).astype(np.int32)


def _fill(
    halves: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    stop: npt.NDArray[np.int64],
    capacity: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Return the parts of long texts, each part filled with as many whole characters as it can take.

    All places are counted in septets or units, continuing from one text to the next.

    :param halves: where the characters of two septets or units begin, in order.
    :param start: where each text begins.
    :param stop: where each text ends.
    :param capacity: the septets or units that a part of each text holds.
    """
    parts = np.zeros(len(start), np.int32)
    while (left := start < stop).any():
        parts += left
        start = start + capacity
        start = np.minimum(start - are_in(halves, start - 1), stop)
    return parts
