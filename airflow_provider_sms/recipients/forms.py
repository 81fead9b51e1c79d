"""The forms that recipients may have, told by the type of the object, without Arrow, which takes long to import.

A DAG file is loaded every few seconds, and an object of another type is refused there already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

FORMS = (
    "a path or a URI of files, an asset, a list of these, a SqlSource, a DataFrame, a pyarrow Table or another object "
    "with Arrow's C stream interface, a list or an iterator of dicts, a dict of columns, or a list of numbers"
)
"""What may be recipients, for an error."""


def is_rows(source: object) -> bool:
    """Return whether an object may be recipients in memory, by its type; the values in it are checked by reading."""
    return isinstance(source, (Mapping, list, tuple, Iterator)) or is_dataframe(source) or _is_arrow(source)


def is_dataframe(source: object) -> bool:
    """Return whether an object is a DataFrame of pandas."""
    pandas = sys.modules.get("pandas")  # a DataFrame cannot be where pandas has not been imported
    return pandas is not None and isinstance(source, pandas.DataFrame)


def is_stream(source: object) -> bool:
    """Return whether an object hands out its rows through Arrow's C stream interface.

    The type is asked: an object may take any name for one of its columns.
    """
    return hasattr(type(source), "__arrow_c_stream__")


def explain_other(source: object) -> str:
    """Return the words of an error for an object that cannot be recipients; they show no value but None."""
    is_text = isinstance(source, str)
    kind = "None" if source is None else "an empty text" if is_text else type(source).__name__
    return f"recipients cannot be read from {kind}: pass {FORMS}"


def _is_arrow(source: object) -> bool:
    pyarrow = sys.modules.get("pyarrow")
    is_ours = pyarrow is not None and isinstance(source, (pyarrow.Table, pyarrow.RecordBatch))
    return is_ours or is_stream(source)
