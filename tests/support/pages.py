"""The documentation's pages and their code blocks."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

DEPLOY, LEDGER = ROOT / "docs" / "deploy.md", ROOT / "docs" / "ledger.md"

_BLOCK = re.compile(
    r"^(?:<!-- (?P<file>\S+\.py): (?P<mark>\w+) -->\n)?"
    r"(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code on a page.

    :param where: page and line number.
    :param example: example and marker that the block includes; None for a block without one.
    """

    where: str
    language: str
    code: str
    example: tuple[str, str] | None

    @property
    def is_dag(self):
        """Whether the block is a whole DAG file."""
        return self.language == "python" and bool(re.search(r"airflow\.sdk import.*(DAG\(|@dag)", self.code, re.DOTALL))


def blocks(page, language=None):
    """Return the code blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start('code'))}",
            found["language"],
            dedent(found["code"]),
            (found["file"], found["mark"]) if found["file"] else None,
        )
        for found in _BLOCK.finditer(text)
        if language in (None, found["language"])
    ]


def shell(words):
    """Return the only shell block of the pages *Deploy* and *The ledger* that contains some words."""
    (found,) = (block.code for page in (DEPLOY, LEDGER) for block in blocks(page, "sh") if words in block.code)
    return found


def generated(name):
    """Return the text of a page of reference that ``make docs`` writes."""
    return runpy.run_path(str(ROOT / "docs" / "reference.py"))["PAGES"][name]()
