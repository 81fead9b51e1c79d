"""Phone numbers that are given in place of a table: ``source=["27820000001", …]``.

They are a table of one column. A text that could be a number is never taken for a path, since logs and Airflow show
paths.
"""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

from airflow_provider_sms.masking import SHORTEST_NUMBER, mask_numbers_in

_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([-_./]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:T\d\d:?\d\d:?\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d)?)?"
)
"""A date, or a moment in ISO 8601: no country has a number with so few digits and such a beginning."""
_BETWEEN_NUMBERS = re.compile(r"[,;|\t\r\n]")


def could_be_number(text: str) -> bool:
    """Return whether a text could be a phone number, or several.

    It has enough digits outside dates, no letters, and slashes only between digits.
    """
    rest = _DATE.sub("", text)
    return _is_without_letters(text) and sum(map(str.isdecimal, rest)) >= SHORTEST_NUMBER


def holds_several(text: str) -> bool:
    """Return whether a text that could be a number holds several, which would be read as one."""
    groups = re.split(r"\s+", text.strip())
    return bool(_BETWEEN_NUMBERS.search(text.strip())) or sum(map(could_be_number, groups)) > 1


def is_date(text: str) -> bool:
    """Return whether a text is a date, and so not a number."""
    return _DATE.fullmatch(text.strip()) is not None


def is_number_list(source: Any) -> bool:
    """Return whether a list holds phone numbers: one element could be a number, and none could be anything else.

    A number that is too short or missing counts as a row that cannot be texted.
    """
    if not isinstance(source, (list, tuple)):
        return False
    texts = [str(item) for item in source if _is_digits_or_text(item)]
    return (
        all(item is None or _is_digits_or_text(item) for item in source)
        and all(map(_is_without_letters, texts))
        and any(map(could_be_number, texts))
    )


def is_whole(item: object) -> bool:
    """Return whether a value is a whole number, of Python or of NumPy, and not True or False."""
    return isinstance(item, Integral) and not isinstance(item, bool)


def first_other(source: list[Any] | tuple[Any, ...]) -> int | None:
    """Return the position of the first element that keeps a list from being one of phone numbers.

    None means that no element could be a number, or that each of them could.
    """
    if not any(_is_digits_or_text(item) and could_be_number(str(item)) for item in source):
        return None
    others = (n for n, item in enumerate(source) if not is_number_list([item, "0000000"]))
    return next(others, None)


def path_without_numbers(path: str) -> str:
    """Return a path with everything masked that could be a phone number; dates are left."""
    if could_be_number(path):
        return mask_numbers_in(path.replace("/", ""))
    return "/".join(map(_masked, path.split("/")))


def _is_digits_or_text(item: object) -> bool:
    return is_whole(item) or isinstance(item, str)


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
