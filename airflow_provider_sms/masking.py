"""Masking: phone numbers as logs, errors and reprs may show them. A file of its own, since all layers import it."""

from __future__ import annotations

import re

STARS = "*****"
SHORTEST_NUMBER = 7
"""Digits of the shortest number that is shown in part."""
MOST_OF_A_TEXT = 20
"""Characters of a text that an error quotes."""
MOST_OF_AN_ID = 40
"""Characters of an id that an error quotes: ids of connections are longer than words, and differ at their ends."""

_ENCODED = r"%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|[nrt])|&#?\w{1,8};"
"""A character as URLs, JSON and HTML encode it. Its letters do not end a number."""
# No repetition is nested in another one: the time grows in proportion to the text.
_BOUNDARY = re.compile(rf"(?P<sign>{_ENCODED})|{re.escape(STARS)}|[^\W\d_]+")
_DIGITS = re.compile(r"\+?(\d+)")
_FIRST_TO_LAST_DIGIT = re.compile(r"\+?\d.*\d", re.DOTALL)


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
    """Return free text with its numbers masked: 7 or more digits with any signs but no letter between them.

    It may mask too much, such as a date with its time, or a list of counts, but lets no phone number pass, however it
    is written: ``+27 (0) 82 - 123``, ``27,82,123``, ``27%2082``. Numbers that stand side by side, each with 7 or more
    digits together, are masked one by one.

    :param text: free text, for example the service's own words about a failed request.
    """
    pieces: list[str] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary["sign"] is None:
            pieces += (_masked(text[start : boundary.start()]), boundary[0])
            start = boundary.end()
    return "".join((*pieces, _masked(text[start:])))


def quoted(text: str, most: int = MOST_OF_A_TEXT) -> str:
    """Return a text in quotes as an error may show it: masked, then cut, since a template may have rendered anything.

    :param most: characters that are shown; three dots stand for the others.
    """
    # Masked before it is quoted: the letters of an escape such as \\xa0 would end a number.
    masked = mask_numbers_in(text)
    return repr(masked if len(masked) <= most else f"{masked[:most]}…")


def _masked(text: str) -> str:
    """Return text without letters with its numbers masked."""
    if len(text) < SHORTEST_NUMBER:
        return text
    lengths = [len(digits) for digits in _DIGITS.findall(text)]
    if sum(lengths) < SHORTEST_NUMBER:
        return text
    pattern = _DIGITS if min(lengths) >= SHORTEST_NUMBER else _FIRST_TO_LAST_DIGIT
    return pattern.sub(lambda match: mask_number(re.sub(_ENCODED, "", match[0])), text)
