"""Phone numbers as people store them → digits with country code (ITU-T E.164 without the plus), or a reason.

Whole Arrow columns at a time. A number that can be read in two ways is refused, not guessed. Numbers in a common
notation take :mod:`~airflow_provider_sms.recipients.numbers.fast_path`; all others take :func:`clean_by_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.recipients.columns import constant, mask, plain, replace_rows, utf8
from airflow_provider_sms.recipients.numbers.fast_path import LONGEST, SHORTEST, read_plain
from airflow_provider_sms.recipients.numbers.parsing import LENGTH, can_hold_numbers, first_reason, parse_numbers
from airflow_provider_sms.recipients.numbers.trunk_prefix import find_trunk_prefixes

if TYPE_CHECKING:
    from airflow_provider_sms.recipients.numbers.national import Region

NO_CODE = "no country code: set default_region or store numbers with their country code"
ZERO_CODE = "no country code begins with 0"
TRUNK_ZERO = "not a possible number, with or without the zero in (0)"
TRUNK_PREFIX = "too short without the trunk prefix, which is dialled within the country only"


@dataclass(frozen=True, slots=True, repr=False)
class CleanDestinations:
    """A column of numbers, cleaned: each row has a value in one of the two arrays."""

    digits: pa.Array
    """Strings of 7 to 15 digits with country code; null where the number is invalid."""
    reasons: pa.Array
    """Why a number is invalid, without the number; null where it is valid."""


def clean_destinations(column: pa.Array | pa.ChunkedArray, default_region: str | None) -> CleanDestinations:
    """Clean a column of numbers.

    Separators, a leading ``+`` or ``00``, and numbers stored as integers, floats or text of a float are accepted,
    and so are the digits of any script and the invisible characters that come with copied numbers.

    :param column: text, integers, floats or decimals, also dictionary-encoded.
    :param default_region: ISO 3166 alpha-2 code of the country whose numbers are stored without country code, for
        example ``"ZA"``; None means that every number carries its country code.
    :raises ColumnError: the column is of another type.
    :raises InputError: the region is unknown.
    """
    region = _region(default_region)
    if not can_hold_numbers(column.type):
        raise ColumnError(f"a column of type {column.type} holds no phone numbers: they are text or numbers")
    column = plain(column)
    digits, reasons = read_plain(column, region), pa.nulls(len(column), pa.string())
    if digits.null_count:
        left = pc.is_null(digits)
        cleaned = clean_by_rules(column.filter(left), region)
        digits = replace_rows(digits, left, cleaned.digits)
        reasons = replace_rows(reasons, left, cleaned.reasons)
    return CleanDestinations(digits=digits, reasons=reasons)


def clean_by_rules(column: pa.Array, region: Region | None) -> CleanDestinations:
    """Clean numbers in any notation, by all rules; :func:`clean_destinations` calls it for the numbers that need it.

    :param region: the region of the numbers without country code; None means that there are none.
    """
    parsed = parse_numbers(column)
    reasons = parsed.reasons
    readable = pc.is_valid(parsed.digits)
    with_zeros = pc.and_not(pc.starts_with(pc.coalesce(parsed.digits, constant("")), "00"), parsed.with_plus)
    digits = pc.if_else(with_zeros, pc.utf8_slice_codeunits(parsed.digits, 2), parsed.digits)
    with_trunk_zero = pc.and_(readable, parsed.with_trunk_zero)

    if pc.any(with_trunk_zero).as_py():
        from airflow_provider_sms.recipients.numbers.national import complete_trunk_zero

        completed = complete_trunk_zero(digits.filter(with_trunk_zero))
        digits = replace_rows(digits, with_trunk_zero, completed)
        reasons = pc.if_else(pc.and_(readable, pc.is_null(digits)), constant(TRUNK_ZERO), reasons)
    digits = _without_trunk_prefix(digits)
    if region is not None:
        from airflow_provider_sms.recipients.numbers.national import complete

        abroad = pc.or_(parsed.with_plus, with_trunk_zero)
        if region.abroad == "00":
            abroad = pc.or_(abroad, with_zeros)
        national = pc.and_not(readable, abroad)
        completed, refused = complete(parsed.digits.filter(national), region)
        digits = replace_rows(digits, national, completed)
        reasons = replace_rows(reasons, national, refused)

    length = pc.binary_length(digits)
    malformed = first_reason(
        (pc.or_(pc.less(length, constant(SHORTEST)), pc.greater(length, constant(LONGEST))), LENGTH),
        (pc.starts_with(digits, "0"), NO_CODE if region is None else ZERO_CODE),
        (_need_trunk_prefix(digits), TRUNK_PREFIX),
    )
    reasons = pc.coalesce(reasons, malformed)
    return CleanDestinations(digits=pc.if_else(pc.is_null(reasons), digits, constant(None)), reasons=reasons)


def _without_trunk_prefix(digits: pa.Array) -> pa.Array:
    found = find_trunk_prefixes(*utf8(pc.coalesce(digits, constant(""))))
    if not found.any():
        return digits
    from airflow_provider_sms.recipients.numbers.national import drop_trunk_prefix

    rows = mask(found)
    return replace_rows(digits, rows, drop_trunk_prefix(digits.filter(rows)))


def _need_trunk_prefix(digits: pa.Array) -> pa.Array:
    found = find_trunk_prefixes(*utf8(pc.coalesce(digits, constant(""))))
    if not found.any():
        return mask(found)
    from airflow_provider_sms.recipients.numbers.national import need_trunk_prefix

    rows = mask(found)
    return replace_rows(rows, rows, need_trunk_prefix(digits.filter(rows)))


def _region(name: str | None) -> Region | None:
    if name is None:
        return None
    # phonenumbers is slow to import.
    from airflow_provider_sms.recipients.numbers.national import find_region

    return find_region(name)
