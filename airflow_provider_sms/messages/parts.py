"""SMS parts: how many a text takes, by the rules of GSM 03.38 and GSM 03.40.

A text is sent in septets if all its characters are in the GSM alphabet or its extension table, else in UCS-2.
One SMS carries 160 septets or 70 UCS-2 units. The parts of a longer text carry 153 or 67: each has a header.
A module of its own, since it is all that the sandbox shares with the package.
"""

from __future__ import annotations

import re

SEPTETS_SINGLE, SEPTETS_PART = 160, 153
UNITS_SINGLE, UNITS_PART = 70, 67

# Without the escape itself (0x1B): as a character of a text it has no meaning in the alphabet.
BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""Characters of one septet."""
EXTENSION = "\f^{}\\[~]|€"
"""Characters of two septets: an escape precedes each."""
_ESCAPE = "\x1b"

is_gsm = re.compile(f"[{re.escape(BASIC + EXTENSION)}]*").fullmatch
"""Whether a text is sent in septets."""
_ESCAPED = str.maketrans({character: _ESCAPE + character for character in EXTENSION})
_parts_of_septets = re.compile(f".{{0,{SEPTETS_PART - 1}}}[^{_ESCAPE}]", re.DOTALL).findall
"""The parts of a text with its escapes; one at the end of a part would lose its character to the next."""
_parts_of_units = re.compile(rb"(?:..){0,%d}[^\xd8-\xdb]." % (UNITS_PART - 1), re.DOTALL).findall
"""The parts of a text in UCS-2; a high surrogate (Unicode 3.8) at the end of a part would be half a character."""


def count_parts(text: str) -> int:
    """Return the SMS parts that a text takes, at least 1; the service charges for each."""
    if is_gsm(text):
        septets = text.translate(_ESCAPED)
        return 1 if len(septets) <= SEPTETS_SINGLE else len(_parts_of_septets(septets))
    units = text.encode("utf-16-be", "replace")  # of two bytes; emoji and the like are pairs of them
    return 1 if len(units) <= 2 * UNITS_SINGLE else len(_parts_of_units(units))
