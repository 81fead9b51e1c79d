"""Echoes: the service's words, which may repeat a secret or a person's text, in a form that anybody may read.

A message can hold a piece of a text, in capital letters or with different white space, so pieces are compared by their
letters and digits alone. A gateway's error page can hold the whole request that it refused, escaped in any way: words
with an escape in them are not shown at all.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WITHHELD = "(not shown, since it may repeat the request)"

SHORTEST = 4
"""Characters of the shortest hidden text that is looked for: a shorter one may occur by chance."""

_SHORTEST_PIECE = 12
"""Letters and digits of the shortest piece of one that is looked for."""

_LOOK_AHEAD = 100
"""Characters beyond those that are shown in which echoes are looked for, so that none is cut and shown."""

_ESCAPE = re.compile(
    r"""%[0-9A-F]{2} | \\u[0-9A-F]{4} | \\x[0-9A-F]{2} | \\["\\/bfnrt] | &\#?\w{1,31};""", re.VERBOSE | re.IGNORECASE
)


def harmless(hidden: Iterable[str], at_most: int) -> Callable[[str], str]:
    """Return a function that makes words of the service fit for logs, XComs and the ledger.

    They are withheld where they repeat a hidden text or a sizable piece of one, or may do so in an escape. Otherwise
    their numbers are masked, what cannot be printed becomes white space, and they are cut and on one line.

    :param hidden: tokens, secrets, texts of messages; read with the first words.
    :param at_most: characters that are kept.
    """

    @cache
    def texts() -> list[str]:
        return [each for each in map(_normal, hidden) if len(each) >= SHORTEST]

    @cache
    def pieces() -> frozenset[str]:
        known = [*map(_letters, texts()), *(each.encode("utf-8", "replace").hex() for each in texts())]
        return frozenset(piece for each in known for piece in _pieces(each))

    def repeats(words: str) -> bool:
        return any(each in words for each in texts()) or any(each in pieces() for each in _pieces(_letters(words)))

    def clean(words: str) -> str:
        words = _normal(words[: at_most + _LOOK_AHEAD])
        if _ESCAPE.search(words) or repeats(words):
            return WITHHELD
        words = mask_numbers_in(" ".join("".join(c if c.isprintable() else " " for c in words).split()))
        return words if len(words) <= at_most else words[: at_most - 1] + "…"

    return clean


def _normal(text: str) -> str:
    """Return a text in one form of Unicode, in which circled digits, say, are digits."""
    return unicodedata.normalize("NFKC", text)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, small and without accents."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text))).casefold()


def _pieces(letters: str) -> Iterator[str]:
    ends = range(_SHORTEST_PIECE, len(letters) + 1)
    return (letters[end - _SHORTEST_PIECE : end] for end in ends)
