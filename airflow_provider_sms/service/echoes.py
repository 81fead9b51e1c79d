"""Echoes: secrets and texts that the service repeats in its words, where they must not show.

A message can hold a piece of a text, in capital letters or with different white space, so pieces are compared by their
letters and digits alone. A gateway's error page can hold the whole request that it refused, escaped in any way: what
has an escape in it is not shown at all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

BLANK = "***"

_SHORTEST = 4
"""Characters of the shortest hidden text that is blanked: a shorter one may occur by chance."""

_SHORTEST_PIECE = 12
"""Letters and digits of the shortest piece of one that is blanked."""

_ESCAPE = re.compile(r"""%[0-9A-Fa-f]{2} | \\u[0-9A-Fa-f]{4} | \\["\\/bfnrt] | &\#?\w{1,31};""", re.VERBOSE)


def blanker(hidden: Iterable[str]) -> Callable[[str], str]:
    """Return a function that blanks hidden texts, and sizable pieces of them in any case and with any signs.

    It blanks all of a text that has an escape of URLs, JSON or HTML.

    :param hidden: read with the first text that is cleaned.
    """

    @cache
    def known() -> tuple[list[str], str]:
        texts = sorted({each for each in hidden if len(each) >= _SHORTEST}, key=len, reverse=True)
        return texts, "\n".join(_letters(each) for each in texts)

    def blank(text: str) -> str:
        if _ESCAPE.search(text):
            return BLANK
        texts, letters = known()
        for each in texts:
            text = text.replace(each, BLANK)
        return _without_pieces(text, letters)

    return blank


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in small letters."""
    return "".join(filter(str.isalnum, text)).casefold()


def _without_pieces(text: str, known: str) -> str:
    """Return a text in which every run of characters that pieces of known letters cover is blank."""
    letters = [(each, place) for place, sign in enumerate(text) if sign.isalnum() for each in sign.casefold()]
    folded = "".join(each for each, _ in letters)
    covered = bytearray(len(folded))
    for start in range(len(folded) - _SHORTEST_PIECE + 1):
        if folded[start : start + _SHORTEST_PIECE] in known:
            covered[start : start + _SHORTEST_PIECE] = b"\1" * _SHORTEST_PIECE
    shown, end = [], 0
    for run in re.finditer(b"\1+", covered):
        shown += [text[end : letters[run.start()][1]], BLANK]
        end = letters[run.end() - 1][1] + 1
    return "".join([*shown, text[end:]])
