"""Echoes: secrets and texts that the service repeats in its words, however it encodes them.

A gateway's page of an error can hold the whole request that it refused, escaped for a URL, for JSON or for HTML, and
with the credentials in base64 as HTTP Basic sends them.
"""

from __future__ import annotations

import base64
import html
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

BLANK = "***"

_SHORTEST_BASE64 = 6
"""Characters of the shortest base64 that is blanked: a shorter one occurs in any words."""

_MAX_LAYERS = 5
"""Encodings within each other that are looked through: a proxy may quote the page of another one."""

_ESCAPED = re.compile(
    r"""(?:%[0-9A-Fa-f]{2})+ | (?:\\u[0-9A-Fa-f]{4})+ | \\["\\/bfnrt]
    | &(?:\#[0-9]{1,7} | \#[xX][0-9A-Fa-f]{1,6} | [A-Za-z][0-9A-Za-z]{1,30});""",
    re.VERBOSE,
)


def forms_of(secret: str) -> tuple[str, ...]:
    """Return a secret as an echo can have it: as it is, and in base64, alone or within other text.

    Three bytes make four characters of base64, so what encodes the secret depends on how many bytes precede it.

    :param secret: a token, which can be base64 itself; an API secret; or client id and secret with the colon of HTTP
        Basic.
    """
    data = secret.encode()
    whole = base64.b64encode(data).decode()
    forms = {secret, secret.rstrip("="), whole, whole.rstrip("=")}
    for before, first in ((0, 0), (1, 2), (2, 3)):
        # Without the characters that neighbours share.
        forms.add(base64.b64encode(bytes(before) + data).decode()[first : (before + len(data)) * 8 // 6])
    forms |= {form.translate(str.maketrans("+/", "-_")) for form in forms - {secret}}
    return (secret, *(form for form in forms if len(form) >= _SHORTEST_BASE64 and form != secret))


def blanked(text: str, hidden: Iterable[str]) -> str:
    """Return a text without hidden texts, also where these are escaped for a URL, JSON or HTML.

    The text comes back decoded as far as needed to find them.

    :param hidden: empty ones are left out.
    """
    spaced = {each for each in hidden if each}
    ordered = sorted(spaced | {each.replace(" ", "+") for each in spaced}, key=len, reverse=True)
    decoded = text
    for _ in range(_MAX_LAYERS):
        clean = decoded
        for each in ordered:
            clean = clean.replace(each, BLANK)
        if clean != decoded:
            text = clean
        decoded = _ESCAPED.sub(_unescaped, clean)
        if decoded == clean:
            break
    return text


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[0]
    if escaped.startswith("%"):
        return unquote(escaped)
    if escaped.startswith("&"):
        return html.unescape(escaped)
    return str(json.loads(f'"{escaped}"'))
