"""The common number formats, written for a whole Arrow column at once.

The texts are those that :func:`airflow_provider_sms.recipients.values.write` returns for each value; where that is not
certain, the number is left to that function.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.recipients.columns import constant, mask, whole_floats

# With more digits after the point the text of an Arrow decimal may have an exponent.
_MOST_DECIMALS = 6
_is_fixed_point = re.compile(rf"(?P<thousands>,?)\.(?P<decimals>[0-{_MOST_DECIMALS}])f").fullmatch

# Below this, a product of a float and a power of ten is off by less than 0.0002.
_SCALED_LIMIT = 2.0**40
_THOUSANDS_FROM, _MILLIONS_FROM = 1_000, 1_000_000
_THOUSANDS = r"^([0-9]{1,3})([0-9]{3})(\.|$)"


def write_numbers(column: pa.Array, spec: str) -> pa.Array | None:
    """Write those numbers of a column that need no call of a Python function for each.

    :param column: of 64-bit floats, integers or decimals.
    :param spec: the format, in the syntax of :func:`format`.
    :returns: strings, null for null and for numbers that Python must write; None if Python must write all of them.
    """
    if not len(column):
        return None
    kind, types = column.type, pa.types
    fixed_point = _is_fixed_point(spec)
    if types.is_decimal(kind):
        as_stored = 0 <= kind.scale <= _MOST_DECIMALS and spec in {"", f".{kind.scale}f"}
        return column.cast(pa.string()) if as_stored and (spec or kind.scale == 0) else None
    if fixed_point and types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    elif not types.is_float64(kind):
        return None
    if not spec:
        return whole_floats(column).cast(pa.string())
    return _write_fixed(column, int(fixed_point["decimals"]), bool(fixed_point["thousands"])) if fixed_point else None


def _write_fixed(column: pa.Array, decimals: int, thousands: bool) -> pa.Array:  # noqa: FBT001 - a part of the format
    """Write floats with a number of digits after the point, rounded as their exact values are.

    A float nearly midway between two texts is left to Python, and so is a negative or a large one.
    """
    values = np.frombuffer(column.buffers()[1], np.float64)[column.offset : column.offset + len(column)]
    with np.errstate(all="ignore"):
        scaled = values * 10.0**decimals
        rounded = np.rint(scaled)
        limit = _MILLIONS_FROM * 10.0**decimals if thousands else _SCALED_LIMIT
        sure = ~np.signbit(values) & (rounded < limit) & (np.abs(scaled - rounded) < 0.499)  # noqa: PLR2004
    digits = np.zeros((len(values), 2), np.int64)
    np.copyto(digits[:, 0], rounded, where=sure, casting="unsafe")
    kind = pa.decimal128(19, decimals)
    texts = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(digits)]).cast(pa.string())
    if thousands and (large := digits[:, 0] >= _THOUSANDS_FROM * 10**decimals).any():
        rows = mask(large)
        grouped = pc.replace_substring_regex(texts.filter(rows), _THOUSANDS, r"\1,\2\3")
        texts = pc.replace_with_mask(texts, rows, grouped)
    if not column.null_count and sure.all():
        return texts
    return pc.if_else(pc.and_(mask(sure), pc.is_valid(column)), texts, constant(None))
