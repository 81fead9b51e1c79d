"""Suppression: numbers that must not be texted, read from a table that may be as large as that of the recipients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.planning.invalid_rows import InvalidRows
from airflow_provider_sms.recipients.columns import (
    alike,
    are_in,
    column_of,
    constant,
    distinct,
    integers,
    names_of,
)
from airflow_provider_sms.recipients.numbers import CODES, NO_NUMBER, clean_destinations, require_numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_provider_sms.recipients.batches import Source

_NUMBER = "destination"
_OF_REPORT = {"row", _NUMBER, "status", "reason", "request_id", "event_id", "sent_at"}
"""The columns of a row report."""

_ENDING = 10**7
_ARGENTINE_MOBILE, _NINE = 549, 495 * 10**10
"""What an Argentine mobile begins with before its ten digits, and the difference that the 9 makes."""
_POWERS = 10 ** np.arange(16, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SuppressedNumbers:
    """Numbers that must not be texted, as :func:`read_suppressed` finds them."""

    digits: npt.NDArray[np.int64]
    """The different numbers, in ascending order."""
    former: npt.NDArray[np.int64]
    """The country code and the last seven digits of numbers that are not possible today, in the same way."""
    unreadable: InvalidRows

    def mask(self, destinations: pa.Array) -> npt.NDArray[np.bool_]:
        """Return which destinations must not be texted.

        A country that changes its numbers gives each line another spelling, and the old one stays in lists: Benin put
        01 before all numbers, and Mexico dropped 044 and 1. The old one has too few digits today, or too many. So it
        stands for all numbers of its country that end with the same seven digits.
        """
        numbers = _as_integers(destinations)
        return are_in(self.digits, numbers) | are_in(self.former, _endings(numbers))


def read_suppressed(source: Source, destination_column: str, default_region: str | None) -> SuppressedNumbers:
    """Read numbers that must not be texted, and clean them like those of recipients.

    They are in the column of the recipients' name or, without one, in ``destination``, as in a row report, or in the
    only column. This takes 8 bytes of memory for each different number, and thrice as much while it is read. A number
    that cannot be read is counted and suppresses nobody: the caller decides what to do about it.
    """
    unreadable = InvalidRows("of suppress cannot be read")
    digits: list[npt.NDArray[np.int64]] = []
    former: list[npt.NDArray[np.int64]] = []
    for batch in source.batches(check=lambda schema: _column_of_numbers(schema, destination_column)):
        name = _column_of_numbers(batch.schema, destination_column)
        column = column_of(batch, name, "suppress")
        # A report has country codes without a plus: a number from abroad could be read as one of the region's own.
        is_report = set(batch.schema.names) >= _OF_REPORT
        cleaned = clean_destinations(column, None if is_report else default_region)
        digits.append(_as_integers(pc.coalesce(cleaned.digits, cleaned.former).drop_null()))
        former.append(_endings(_as_integers(cleaned.former.filter(pc.is_null(cleaned.digits)).drop_null())))
        status = pc.coalesce(batch.column("status").cast(pa.string()), constant("")) if is_report else constant("")
        is_lost = pc.and_(pc.not_equal(cleaned.reasons, constant(NO_NUMBER)), pc.is_null(cleaned.former))
        is_lost = pc.and_not(is_lost, pc.equal(status, constant("invalid")))  # it was refused in the table already
        reasons = pc.if_else(is_lost, cleaned.reasons, constant(None))
        unreadable.add(pa.repeat(constant(name), len(column)), reasons, column)
    return SuppressedNumbers(distinct(digits), distinct(former), unreadable)


def _column_of_numbers(schema: pa.Schema, wanted: str) -> str:
    """Return the column with the numbers of a list; from a wrong one nobody would be suppressed."""
    found = alike(schema.names, wanted) or alike(schema.names, _NUMBER) or schema.names
    if len(found) != 1:
        raise ColumnError(
            f"suppress: the list has {'several columns' if alike(schema.names, wanted) else 'no column'} {wanted!r}; "
            f"{names_of(schema)}. Name the column with the numbers {wanted!r}, or pass it alone"
        )
    require_numbers(schema.field(found[0]), "suppress")
    return str(found[0])


def _as_integers(destinations: pa.Array) -> npt.NDArray[np.int64]:
    """Return clean numbers as integers, without the 9 of Argentine mobiles, which many leave out."""
    numbers = integers(destinations.cast(pa.int64()))
    return np.where(numbers // 10**10 == _ARGENTINE_MOBILE, numbers - _NINE, numbers)


def _endings(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the country code and the last seven digits of each number as one integer."""
    beginnings = numbers // _POWERS[np.maximum(np.searchsorted(_POWERS, numbers, "right") - 3, 0)]
    endings: npt.NDArray[np.int64] = CODES[beginnings] * _ENDING + numbers % _ENDING
    return endings
