"""Columns of numbers, cleaned, and the reasons why numbers are refused."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.recipients.numbers.normalize import clean_destinations

NUMBER = "27821234567"

NO_NUMBER = "no number"
EXPONENT = "written with an exponent, digits were lost: store the column as text"
SHORT_FLOAT = "stored as a float too short for it, digits were lost: store the column as text"
DECIMALS = "has decimals, so it is not a phone number"
NEGATIVE = "a negative number is no phone number"
CHARACTERS = "holds letters or signs that do not belong to a phone number"
LENGTH = "not 7 to 15 digits"
NO_CODE = "no country code: set default_region or store numbers with their country code"
ZERO_CODE = "no country code begins with 0"
IMPOSSIBLE = "not a possible number in default_region; write those of other countries with + or 00"
AMBIGUOUS = "can be read with and without a country code: write it with +"
TRUNK_ZERO = "not a possible number, with or without the zero in (0)"
TRUNK_PREFIX = "too short without the trunk prefix, which is dialled within the country only"


def cleaned(column, region=None):
    """Return (digits, reason) of each row of a column."""
    column = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, pa.string())
    result = clean_destinations(column, region)
    assert len(column) == len(result.digits) == len(result.reasons)
    return list(zip(result.digits.to_pylist(), result.reasons.to_pylist(), strict=True))
