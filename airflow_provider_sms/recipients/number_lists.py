"""Phone numbers that are given in place of a table: ``source=["27820000001", …]``.

They are a table of one column. A text that could be a number is never taken for a path, since logs and Airflow show
paths.
"""

from __future__ import annotations

import re
from numbers import Integral

from airflow_provider_sms.masking import SHORTEST_NUMBER, mask_numbers_in

_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([-_./]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:T\d\d:?\d\d:?\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d)?)?"
)
"""A date, or a moment in ISO 8601: no country has a number with so few digits and such a beginning."""


def could_be_number(text: str) -> bool:
    """Return whether a text could be a phone number, or several.

    It has enough digits outside dates, no letters, and slashes only between digits.
    """
    rest = _DATE.sub("", text)
    return _is_without_letters(text) and sum(map(str.isdecimal, rest)) >= SHORTEST_NUMBER


def is_in_number_list(item: object) -> bool:
    """Return whether a list of phone numbers may hold an element.

    A number that is too short or missing counts as a row that cannot be texted.
    """
    return item is None or is_whole(item) or (isinstance(item, str) and _is_without_letters(item))


def is_whole(item: object) -> bool:
    """Return whether a value is a whole number, of Python or of NumPy, and not True or False."""
    return isinstance(item, Integral) and not isinstance(item, bool)


def path_without_numbers(path: str) -> str:
    """Return a path with everything masked that could be a phone number; dates are left."""
    if could_be_number(path):
        return mask_numbers_in(path.replace("/", ""))
    return "/".join(map(_masked, path.split("/")))


def _is_without_letters(text: str) -> bool:
    between_digits = re.sub(r"(?<=\d)/(?=\d)", "", text)
    return not any(character.isalpha() or character in "/\\*?{" for character in between_digits)


def _masked(segment: str) -> str:
    pieces: list[str] = []
    start = 0
    for date in _DATE.finditer(segment):
        pieces += (mask_numbers_in(segment[start : date.start()]), date[0])
        start = date.end()
    return "".join((*pieces, mask_numbers_in(segment[start:])))
