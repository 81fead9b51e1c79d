"""The forms that recipients may have, recognised by the type of the object, without Arrow, which is slow to import.

A DAG file is loaded every few seconds, and an object of any other type is refused as early as that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

FORMS = (
    "a path or a URI of files, an asset, a list of these, a SqlSource, a DataFrame, a pyarrow Table or another object "
    "with Arrow's C stream interface, a list or an iterator of dicts, or a list of numbers"
)
"""The forms that recipients may have, as an error lists them."""


def is_rows(source: object) -> bool:
    """Return whether an object may be recipients in memory, by its type; its values are checked when they are read."""
    return isinstance(source, (list, tuple, Iterator)) or is_dataframe(source) or is_stream(source)


def is_dataframe(source: object) -> bool:
    """Return whether an object is a DataFrame of pandas."""
    pandas = sys.modules.get("pandas")  # there is no DataFrame where pandas has not been imported
    return pandas is not None and isinstance(source, pandas.DataFrame)


def is_stream(source: object) -> bool:
    """Return whether an object hands out its rows through Arrow's C stream interface.

    The type is asked, since an object may take any attribute's name for one of its columns.
    """
    return hasattr(type(source), "__arrow_c_stream__")


def explain_other(source: object) -> str:
    """Return the words of an error for an object that cannot be recipients; they show no value but None."""
    is_text = isinstance(source, str)
    kind = "None" if source is None else "an empty text" if is_text else type(source).__name__
    return f"recipients cannot be read from {kind}: pass {FORMS}"
