"""Phone numbers as logs, errors and reprs may show them: ``2782*****67``."""

from __future__ import annotations

import re

STARS = "*****"
SHORTEST_NUMBER = 7

# Up to three characters that are no digit may stand between two digits: people write "+27 (0) 82 - 123".
_BETWEEN_DIGITS = r"[\s\-./()\u00ad\u200b-\u200f\u2010-\u2015\u202a-\u202e\u2060\u2212\ufeff]{0,3}"
_NUMBER = re.compile(rf"\+?\d(?:{_BETWEEN_DIGITS}\d){{{SHORTEST_NUMBER - 1},}}")


def mask_number(text: str) -> str:
    """Show of a number as much as is needed to find it again: its first four and its last two digits.

    Whatever is not a digit is left out, so a name or an address in the wrong column does not show either.

    :param text: a number as somebody wrote it.
    :returns: for example ``2782*****67``; only ``*****`` for fewer than 7 digits.
    """
    digits = "".join(filter(str.isdecimal, text))
    if len(digits) < SHORTEST_NUMBER:
        return STARS
    return f"{digits[:4]}{STARS}{digits[-2:]}"


def mask_numbers_in(text: str) -> str:
    """Mask every run of 7 or more digits in free text, also where separators or a plus are in it.

    It rather masks too much, a date with its time for example, than lets a number of somebody pass.

    :param text: free text, for example the service's own words about a failed request.
    """
    return _NUMBER.sub(lambda match: mask_number(match[0]), text)
