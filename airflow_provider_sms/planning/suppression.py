"""Suppression: numbers that must not be texted, read from a table that may be as large as that of the recipients."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import SHORTEST_NUMBER, mask_number, mask_numbers_in
from airflow_provider_sms.planning.integers_on_disk import IntegersOnDisk
from airflow_provider_sms.planning.invalid_rows import InvalidRow, InvalidRows
from airflow_provider_sms.recipients.columns import (
    alike,
    column_of,
    constant,
    integers,
    is_float,
    is_text,
    names_of,
    type_words,
)
from airflow_provider_sms.recipients.numbers import NO_NUMBER, can_hold_numbers, clean_destinations, read_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from typing_extensions import Self

    from airflow_provider_sms.recipients.batches import Source

log = logging.getLogger(__name__)

_USED_BY = "suppress"
_NUMBER, _STATUS, _INVALID = "destination", "status", "invalid"
_OF_REPORT = {"row", _NUMBER, _STATUS, "reason", "request_id", "event_id", "sent_at"}
"""The columns of a row report."""
_LIKE_NUMBER = rf"^(?:[^\pL\pN]*\pN){{{SHORTEST_NUMBER}}}[^\pL]*$"
_DAY, _YEAR = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:19|20)[0-9]{2}"
_TIME = r"[ T][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[+-][0-9]{2}:?[0-9]{2})?"
_LIKE_DATE = rf"^\s*(?:{_YEAR}[-/.]?{_DAY}[-/.]?{_DAY}|{_DAY}[-/.]{_DAY}[-/.]{_YEAR})(?:{_TIME})?\s*$"

_ENDING = 10**7
_LONGER = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
_ARGENTINA, _ARGENTINE_MOBILE = 54 * 10**10, 549 * 10**10
_POWERS = 10 ** np.arange(16, dtype=np.int64)
_LONGEST_CODE = 3
_CODE_LENGTHS = np.array(
    [next((n for n in (1, 2) if int(f"{start:03}"[:n]) in COUNTRY_CODE_TO_REGION_CODE), 3) for start in range(1000)]
)
"""Digits of the country code of a number, by its first three digits."""


@dataclass(slots=True, eq=False, repr=False)
class SuppressedNumbers:
    """Numbers that must not be texted, as :func:`read_suppressed` finds them. Close it to free its room on disk."""

    rows: int = 0
    """Rows that were read."""
    numbers: int = 0
    """Different numbers."""
    unreadable: InvalidRows = field(default_factory=InvalidRows)
    """Rows with a number that cannot be read."""
    digits: IntegersOnDisk = field(default_factory=IntegersOnDisk)
    """The numbers, as many times as they were read."""
    former: int = 0
    """Rows with a number that is not valid today."""
    endings: IntegersOnDisk = field(default_factory=IntegersOnDisk)
    """What :func:`_endings` returns for each of the numbers, negative where it is not valid today."""

    def __repr__(self) -> str:
        numbers, rows = by_count(self.numbers, "number"), by_count(self.rows, "row")
        return f"SuppressedNumbers({self.numbers} {numbers} of {self.rows} {rows})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def mask(self, destinations: pa.Array) -> npt.NDArray[np.bool_]:
        """Return which destinations must not be texted.

        A country that changes its numbers gives each line another spelling, and the old one stays in lists: Benin put
        01 before all numbers, and Mexico dropped 044 and 1. So where one of two numbers is not valid today, they are
        one line if they have the same country code and last seven digits, and are not of the same length. An Argentine
        line has a 9 before its ten digits when it is a mobile, and many leave that out.

        :param destinations: digits with country code, of type ``string``, without nulls.
        """
        numbers = _as_integers(destinations)
        listed, endings = self.digits.contains(numbers), _endings(numbers)
        for spelling in _argentine(numbers):
            listed |= self.digits.contains(spelling)
        similar = np.zeros(len(numbers), np.bool_)
        for longer in _LONGER:
            similar |= self.endings.contains(endings + longer)
            if self.former:
                listed |= self.endings.contains(-endings - longer)
        for row in np.flatnonzero(similar & ~listed).tolist():
            listed[row] = read_number(f"+{numbers[row]}", None).former is not None
        return listed

    def explain(self, advice: str = "") -> str:
        """Return how many rows cannot be read and why, and the first of them, one per line; numbers are masked.

        :param advice: sentences to put before these rows, without the last full stop.
        """
        count, rows = self.unreadable.total, by_count(self.rows, "row")
        have = by_count(count, "has", "have")
        return self.unreadable.in_words(
            f"{count} of {self.rows} {rows} of {_USED_BY} {have} a number that cannot be read", advice
        )

    def close(self) -> None:
        """Release the numbers and their room on disk; the counts stay."""
        self.digits.close()
        self.endings.close()


def read_suppressed(source: Source, destination_column: str, default_region: str | None) -> SuppressedNumbers:
    """Read numbers that must not be texted, and clean them like those of recipients.

    They are in the column of the recipients' name; without one in the only column, or in the only one that could hold
    numbers; in a row report in its own.

    This takes 16 bytes of disk for each row, and next to no memory. A number that cannot be read is counted and
    suppresses nobody: the caller decides what to do about it.

    :param source: rows that each hold a number or nothing.
    :param destination_column: column with the number of a recipient.
    :param default_region: ISO 3166 alpha-2 code of the country whose numbers are stored without country code; None
        means that every number carries its country code.
    :raises ColumnError: no column, or more than one, could be that of the numbers.
    :raises SourceError: the source cannot be read.
    :raises InputError: the region is unknown.
    :raises SourceUnavailableError: there is no room in the folder for temporary files.
    """
    found, name = SuppressedNumbers(), None
    try:
        for batch in source.batches(check=lambda schema: _require_candidate(schema, destination_column)):
            name = _column_of_numbers(batch, destination_column, name)
            if name is None:
                found.rows += len(batch)
                continue
            column = column_of(batch, name, _USED_BY)
            if _is_report(batch.schema) and is_text(column.type):
                column = _with_plus(column, column_of(batch, _STATUS, _USED_BY))
            _add(found, column, name, default_region)
        found.numbers = found.digits.count_distinct()
    except BaseException:
        found.close()
        raise
    if found.rows and name is None:
        found.close()
        raise _no_column(batch.schema, destination_column)
    return found


def _is_report(schema: pa.Schema) -> bool:
    return set(schema.names) >= _OF_REPORT


def _candidates(schema: pa.Schema, wanted: str) -> list[str]:
    """Return the columns that could be that of the numbers, by their names and types."""
    if _is_report(schema):
        return [_NUMBER]
    if found := alike(schema.names, wanted):
        return found
    return schema.names if len(schema) == 1 else [each.name for each in schema if can_hold_numbers(each.type)]


def _require_candidate(schema: pa.Schema, wanted: str) -> None:
    """Refuse a list without a column that could be that of the numbers.

    :raises ColumnError: from a wrong column nobody would be suppressed.
    """
    found = _candidates(schema, wanted)
    if not found:
        raise _no_column(schema, wanted)
    if len(found) == 1 and not can_hold_numbers(kind := schema.field(found[0]).type):
        raise ColumnError(f"{_USED_BY}: {found[0]!r} is of type {type_words(kind)}; phone numbers are text or numbers")


def _column_of_numbers(batch: pa.RecordBatch, wanted: str, before: str | None) -> str | None:
    """Return the column with the numbers of a list; None where no column has held any yet.

    :param before: the column in the batches before.
    :raises ColumnError: several could be it.
    """
    found = _candidates(batch.schema, wanted)
    if len(found) > 1 and not alike(batch.schema.names, wanted):
        found = [name for name in found if _holds_numbers(column_of(batch, name, _USED_BY))]
    names = {*found, *([] if before is None else [before])}
    if len(names) > 1:
        raise _no_column(batch.schema, wanted, "several columns")
    name = next(iter(names), None)
    if name is not None and name not in (before, wanted):
        log.info("%s: the numbers of the list are taken from its column %r", _USED_BY, mask_numbers_in(name))
    return name


def _no_column(schema: pa.Schema, wanted: str, found: str = "no column") -> ColumnError:
    return ColumnError(
        f"{_USED_BY}: the list has no column {wanted!r}, and {found} that could hold its numbers; {names_of(schema)}. "
        f"Name the column with the numbers {wanted!r}, or pass it alone"
    )


def _holds_numbers(column: pa.Array) -> bool:
    """Return whether a value could be a phone number: it has enough digits, no letter, and is no date."""
    if is_float(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
        column = column.filter(pc.is_finite(column)).cast(pa.int64(), safe=False)
    numbers, dates = (pc.match_substring_regex(column.cast(pa.string()), each) for each in (_LIKE_NUMBER, _LIKE_DATE))
    return pc.any(pc.and_not(numbers, dates)).as_py() is True


def _with_plus(numbers: pa.Array, statuses: pa.Array) -> pa.Array:
    """Return the numbers of a row report, with a plus before those that it has as they were used.

    Without it, a number from another country could be read as one of the region's own. A number of an invalid row is
    there as it was written.
    """
    is_used = pc.fill_null(pc.not_equal(statuses, constant(_INVALID)), constant(False))  # noqa: FBT003 - a value, and no switch
    return pc.if_else(is_used, pc.binary_join_element_wise(constant("+"), numbers, constant("")), numbers)


def _add(found: SuppressedNumbers, column: pa.Array, name: str, default_region: str | None) -> None:
    cleaned = clean_destinations(column, default_region)
    numbers = _as_integers(pc.coalesce(cleaned.digits, cleaned.former).drop_null())
    former = _as_integers(cleaned.former.drop_null())
    found.digits.add(numbers)
    found.endings.add(np.concatenate([_endings(numbers), -_endings(former)]))
    found.former += len(former)
    if cleaned.digits.null_count:
        unreadable = pc.and_(pc.not_equal(cleaned.reasons, constant(NO_NUMBER)), pc.is_null(cleaned.former))
        unreadable = pc.fill_null(unreadable, constant(False))  # noqa: FBT003 - a value, and no switch
        rows, reasons = pc.indices_nonzero(unreadable).to_pylist(), cleaned.reasons.filter(unreadable).to_pylist()
        found.unreadable.add(
            InvalidRow(found.rows + row, name, reason, mask_number(str(number)))
            for row, reason, number in zip(rows, reasons, column.filter(unreadable).to_pylist(), strict=True)
        )
    found.rows += len(column)


def _as_integers(destinations: pa.Array) -> npt.NDArray[np.int64]:
    """Return clean numbers as integers, which keep every digit: no number begins with a zero."""
    return integers(destinations.cast(pa.int64()))


def _argentine(numbers: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the numbers of Argentina with a 9 after the country code and without it; 0 in place of all others."""
    lines = numbers % 10**10
    yield np.where(numbers - lines == _ARGENTINE_MOBILE, _ARGENTINA + lines, 0)
    yield np.where(numbers - lines == _ARGENTINA, _ARGENTINE_MOBILE + lines, 0)


def _endings(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the country code, the last seven digits and the length of each number as one integer."""
    lengths = np.searchsorted(_POWERS, numbers, "right")
    beginnings = numbers // _POWERS[np.maximum(lengths - _LONGEST_CODE, 0)]
    codes = beginnings // _POWERS[_LONGEST_CODE - _CODE_LENGTHS[beginnings]]
    endings: npt.NDArray[np.int64] = (codes * _ENDING + numbers % _ENDING) * len(_POWERS) + lengths
    return endings
