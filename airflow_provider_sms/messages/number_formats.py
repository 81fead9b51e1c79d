"""Common number formats, written for a whole Arrow column at once: amounts one by one make a send a sixth slower."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.recipients.columns import constant, mask, whole_floats

# With more digits after the point the text of an Arrow decimal may have an exponent.
_is_fixed_point = re.compile(r"(?P<thousands>,?)\.(?P<digits>[0-6])f").fullmatch
_UNGROUPED = r"^([0-9]+)([0-9]{3})([.,]|$)"
# Below this, a product of a float and a power of ten is off by less than 0.0002.
_SCALED_LIMIT = 2.0**40


def write_numbers(column: pa.Array, spec: str) -> pa.Array:
    """Write numbers as :func:`~airflow_provider_sms.recipients.values.write` does, where that is certain.

    :param column: of integers, 64-bit floats or decimals.
    :param spec: the format, in the syntax of :func:`format`.
    :returns: strings, null for null and for numbers that :func:`write` must write.
    """
    fixed_point = _is_fixed_point(spec)
    if fixed_point:
        return _write_fixed(column.cast(pa.float64(), safe=False), int(fixed_point["digits"]), fixed_point["thousands"])
    return pa.nulls(len(column), pa.string()) if spec else whole_floats(column).cast(pa.string())


def _write_fixed(column: pa.Array, decimals: int, thousands: str) -> pa.Array:
    """Write floats rounded to some digits after the point; null for those negative, large, or nearly midway."""
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    with np.errstate(all="ignore"):
        scaled = values * 10.0**decimals
        rounded = np.rint(scaled)
        sure = ~np.signbit(values) & (rounded < _SCALED_LIMIT) & (np.abs(scaled - rounded) < 0.499)  # noqa: PLR2004
    digits = np.zeros((len(values), 2), np.int64)
    np.copyto(digits[:, 0], rounded, where=sure, casting="unsafe")
    texts = pa.Array.from_buffers(pa.decimal128(19, decimals), len(values), [None, pa.py_buffer(digits)])
    texts = texts.cast(pa.string())
    while thousands and pc.any(pc.match_substring_regex(texts, _UNGROUPED)).as_py():
        texts = pc.replace_substring_regex(texts, _UNGROUPED, r"\1,\2\3")
    return pc.if_else(pc.and_(mask(sure), pc.is_valid(column)), texts, constant(None))
