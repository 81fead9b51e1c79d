"""Masking: phone numbers as logs, errors and reprs may show them. A file of its own, since all layers import it."""

from __future__ import annotations

import re

STARS = "*****"
SHORTEST_NUMBER = 7
"""Digits of the shortest number that is shown in part."""

# Up to three characters that are no digit may stand between two digits: people write "+27 (0) 82 - 123".
_BETWEEN_DIGITS = r"[\s\-./()\u00ad\u200b-\u200f\u2010-\u2015\u202a-\u202e\u2060\u2212\ufeff]{0,3}"
_NUMBER = re.compile(rf"\+?\d(?:{_BETWEEN_DIGITS}\d){{{SHORTEST_NUMBER - 1},}}")


def mask_number(text: str) -> str:
    """Return as much of a number as is needed to find it again: its first four and its last two digits.

    Other characters are left out, so a name or an address in the wrong column does not show either.

    :param text: a number as it is written.
    :returns: for example ``2782*****67``; only ``*****`` for fewer than 7 digits.
    """
    digits = "".join(filter(str.isdecimal, text))
    if len(digits) < SHORTEST_NUMBER:
        return STARS
    return f"{digits[:4]}{STARS}{digits[-2:]}"


def mask_numbers_in(text: str) -> str:
    """Return free text with every run of 7 or more digits masked, also one with separators or a plus.

    It may mask too much, such as a date with its time, and lets no phone number pass.

    :param text: free text, for example the service's own words about a failed request.
    """
    return _NUMBER.sub(lambda match: mask_number(match[0]), text)
