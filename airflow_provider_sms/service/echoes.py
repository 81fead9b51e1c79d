"""Echoes: secrets and texts that the service repeats in its words, however it encodes them.

A gateway's error page can hold the whole request that it refused, escaped for a URL, for JSON or for HTML, and with the
credentials in base64 as HTTP Basic sends them. A shorter message can hold a piece of a text, in capital letters or with
different white space. So pieces are compared by their letters and digits alone.
"""

from __future__ import annotations

import base64
import html
import json
import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

BLANK = "***"

_SHORTEST_BASE64 = 6
"""Characters of the shortest base64 that is blanked: a shorter one may occur by chance."""

_SHORTEST_PIECE = 12
"""Letters and digits of the shortest piece of a text that is blanked: a shorter one may occur by chance."""

_SHORTEST_PIECE_OF_WORD = 8
"""The same for a hidden text without white space, such as a token, and for one of fewer than 12 letters and digits."""

_MAX_LAYERS = 5
"""Nested encodings that are looked through: a proxy may quote the page of another one."""

_ESCAPED = re.compile(
    r"""(?:%[0-9A-Fa-f]{2})+ | (?:\\u[0-9A-Fa-f]{4})+ | \\["\\/bfnrt]
    | &(?:\#[0-9]{1,7} | \#[xX][0-9A-Fa-f]{1,6} | [A-Za-z][0-9A-Za-z]{1,30});""",
    re.VERBOSE,
)


def forms_of(secret: str) -> tuple[str, ...]:
    """Return the forms that a secret can have in an echo: as it is, and in base64, alone or within other text.

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


def blanked(text: str, hidden: Iterable[str], *, pieces: bool = True) -> str:
    """Return a text without hidden texts, even where these are escaped for a URL, JSON or HTML.

    The text comes back decoded as far as needed to find them.

    :param hidden: the texts; empty ones are ignored.
    :param pieces: whether sizable pieces of hidden texts are blanked as well, in any case and with any white space and
        punctuation. That takes about a second for a million characters.
    """
    spaced = {each for each in hidden if each}
    ordered = sorted(spaced | {each.replace(" ", "+") for each in spaced}, key=len, reverse=True)

    def without_whole(decoded: str) -> str:
        for each in ordered:
            decoded = decoded.replace(each, BLANK)
        return decoded

    text = _in_each_layer(text, without_whole)
    if not (pieces and text):
        return text
    known = _pieces_of(spaced)
    return _in_each_layer(text, lambda decoded: _without_pieces(decoded, known))


def blanker(hidden: Iterable[str]) -> Callable[[str], str]:
    """Return a function that blanks sizable pieces of hidden texts, as :func:`blanked` does, in many short texts.

    A text that repeats nothing costs microseconds, since the pieces are made only for one that does.

    :param hidden: the texts, which are read with the first text that is long enough to repeat one.
    """

    @cache
    def letters() -> str:
        return _folded(" ".join(texts()))

    @cache
    def texts() -> list[str]:
        return list(hidden)

    @cache
    def pieces() -> dict[int, set[str]]:
        return _pieces_of(texts())

    def without_pieces(decoded: str) -> str:
        folded = _folded(decoded)
        starts = range(len(folded) - _SHORTEST_PIECE_OF_WORD + 1)
        repeats = any(folded[start : start + _SHORTEST_PIECE_OF_WORD] in letters() for start in starts)
        return _without_pieces(decoded, pieces()) if repeats else decoded

    return lambda text: _in_each_layer(text, without_pieces)


def _in_each_layer(text: str, clean: Callable[[str], str]) -> str:
    """Return a text, cleaned as it is and in each layer of encoding; decoded no further than cleaning required."""
    decoded = text
    for _ in range(_MAX_LAYERS):
        cleaned = clean(decoded)
        if cleaned != decoded:
            text = cleaned
        decoded = _ESCAPED.sub(_unescaped, cleaned)
        if decoded == cleaned:
            break
    return text


def _pieces_of(hidden: Iterable[str]) -> dict[int, set[str]]:
    """Return the shortest pieces that are blanked, by their length: a longer one is covered by those within it."""
    known: dict[int, set[str]] = {_SHORTEST_PIECE_OF_WORD: set(), _SHORTEST_PIECE: set()}
    for each in hidden:
        folded = _folded(each)
        is_text = len(folded) >= _SHORTEST_PIECE and any(map(str.isspace, each))
        length = _SHORTEST_PIECE if is_text else _SHORTEST_PIECE_OF_WORD
        known[length].update(folded[start : start + length] for start in range(len(folded) - length + 1))
    return known


def _folded(text: str) -> str:
    """Return the letters and digits of a text, in small letters."""
    return "".join(filter(str.isalnum, text)).casefold()


def _without_pieces(text: str, known: Mapping[int, set[str]]) -> str:
    """Return a text in which every run of characters that known pieces cover is blank."""
    letters = [(each, place) for place, sign in enumerate(text) if sign.isalnum() for each in sign.casefold()]
    folded = "".join(each for each, _ in letters)
    covered = bytearray(len(folded))
    for length, pieces in known.items():
        for start in range(len(folded) - length + 1):
            if folded[start : start + length] in pieces:
                covered[start : start + length] = b"\1" * length
    shown, end = [], 0
    for run in re.finditer(b"\1+", covered):
        shown += [text[end : letters[run.start()][1]], BLANK]
        end = letters[run.end() - 1][1] + 1
    return "".join([*shown, text[end:]])


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[0]
    if escaped.startswith("%"):
        return unquote(escaped)
    if escaped.startswith("&"):
        return html.unescape(escaped)
    return str(json.loads(f'"{escaped}"'))
