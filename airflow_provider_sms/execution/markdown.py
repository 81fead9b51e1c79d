"""Other people's texts within the Markdown of a plan: shown as they are, and never read as Markdown.

Airflow's page renders a question as GitHub Flavored Markdown. It fetches images, and turns bare URLs, ``www.``
and e-mail addresses into links, even after a backslash or written with character references: it searches the finished
text for them. Only code is left alone, so each such text becomes code.
"""

from __future__ import annotations

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except the tab, and characters that override, embed or isolate the direction of writing."""


def code(text: str) -> str:
    """Return a text as a code span on one line; an empty text stays empty.

    Line ends and other white space become single spaces. A character without a shape of its own becomes ``�``: one that
    overrides the direction of writing could make the text around it read differently.
    """
    shown = "".join(each if each.isprintable() else REPLACEMENT for each in " ".join(text.split()))
    if not shown:
        return ""
    # A code span ends at a run of as many backticks as begin it.
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str) -> str:
    r"""Return a text as a code span in a cell of a table.

    A bar ends a cell even within code, unless a backslash stands before it. In Airflow's parser a backslash escapes a
    backslash, too, so a text's own ``\|`` becomes ``\ |`` first.
    """
    return code(text).replace("\\|", "\\ |").replace("|", "\\|")


def block(text: str) -> list[str]:
    """Return the lines of a code block, which has to stand between empty lines; no line for an empty text.

    A control character, or a character that overrides the direction of writing, becomes ``�``. Tabs stay, and so do the
    joiners of emoji and of scripts that need them.
    """
    return [f"    {_CONTROL.sub(REPLACEMENT, line)}" for line in text.splitlines()]
