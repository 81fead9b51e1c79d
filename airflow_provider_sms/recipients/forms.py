"""The forms that recipients may have, and the regions of their numbers, without Arrow, which is slow to import.

A DAG file is loaded every few seconds, and an object of any other type is refused as early as that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from numbers import Integral

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.masking import SHORTEST_NUMBER, mask_numbers_in

FORMS = (
    "a path or a URI of files, an asset, a list of these, a SqlSource, a DataFrame, a pyarrow Table or another object "
    "with Arrow's C stream interface, a list or an iterator of dicts, or a list of numbers"
)
"""The forms that recipients may have, as an error lists them."""

DATE = re.compile(
    r"((?<!\d)(?:19|20)\d\d[-_./]?(?:0[1-9]|1[0-2])[-_./]?(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:T\d\d:?\d\d:?\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d)?)?)"
)
"""A date, or a moment in ISO 8601: no country has a number with so few digits and such a beginning."""


def is_rows(source: object) -> bool:
    """Return whether an object may be recipients in memory, by its type; its values are checked when they are read."""
    return isinstance(source, (list, tuple, Iterator)) or is_dataframe(source) or is_stream(source)


def is_dataframe(source: object) -> bool:
    """Return whether an object is a DataFrame of pandas."""
    pandas = sys.modules.get("pandas")  # there is no DataFrame where pandas has not been imported
    return pandas is not None and isinstance(source, pandas.DataFrame)


def is_stream(source: object) -> bool:
    """Return whether an object has Arrow's C stream interface; its type is asked, since a column may have any name."""
    return hasattr(type(source), "__arrow_c_stream__")


def could_be_number(item: object) -> bool:
    """Return whether an item could be a phone number, or a text with several, and so is no path: logs show paths."""
    return is_in_number_list(item) and sum(map(str.isdecimal, DATE.sub("", str(item)))) >= SHORTEST_NUMBER


def is_in_number_list(item: object) -> bool:
    """Return whether a list of phone numbers may hold an item: one that is missing or too short is an invalid row."""
    if not isinstance(item, str):
        return item is None or (isinstance(item, Integral) and not isinstance(item, bool))
    between_digits = re.sub(r"(?<=\d)/(?=\d)", "", item)
    return not any(character.isalpha() or character in "/\\*?{" for character in between_digits)


def explain_other(source: object) -> str:
    """Return the words of an error for an object that cannot be recipients; they show no value but None."""
    kind = "None" if source is None else "an empty text" if isinstance(source, str) else type(source).__name__
    return f"recipients cannot be read from {kind}: pass {FORMS}"


def read_region(written: object) -> str:
    """Return the code of a region in capitals; blanks around it do not count."""
    from phonenumbers import SUPPORTED_REGIONS  # a DAG file without a region need not load it

    region = written.strip().upper() if isinstance(written, str) else ""
    if region not in SUPPORTED_REGIONS:
        given = mask_numbers_in(repr(written))
        meant = "; did you mean 'GB'?" if region == "UK" else ""
        raise InputError(f"default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not {given}{meant}")
    return region
