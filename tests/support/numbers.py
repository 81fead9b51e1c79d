"""Columns of numbers, cleaned."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_sms.recipients.numbers import clean_destinations

NUMBER = "27821234567"


def cleaned(column, region=None):
    """Return (digits, reason) of each row of a column."""
    column = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, pa.string())
    result = clean_destinations(column, region)
    assert len(column) == len(result.digits) == len(result.reasons)
    return list(zip(result.digits.to_pylist(), result.reasons.to_pylist(), strict=True))
