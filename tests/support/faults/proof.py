"""The table of the proof in the documentation: each full run of a part writes its row there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from support.faults.verdict import Figures

PAGE = Path(__file__).parents[3] / "docs" / "proof.md"
HEAD = (
    "| Part | SQLite: cases | Unknown | Run on | PostgreSQL: cases | Unknown | Run on |\n"
    "|---|--:|--:|---|--:|--:|---|\n"
)
PLACES = {"sqlite": slice(1, 4), "postgresql": slice(4, 7)}
"""The cells of each kind of ledger in a row, behind the name of the part."""


def with_row(page: str, part: str, store: str, figures: Figures, day: date) -> str:
    """Return the page with what came of a part in its table; all else stays as it is.

    :param page: with one table of that head.
    :param part: one that has a row there.
    :param store: the kind of ledger.
    :param day: of the run.
    :raises ValueError: the part has no row.
    """
    begin = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", begin)
    rows = [line.strip("| ").split(" | ") for line in page[begin:end].splitlines()]
    (row,) = [row for row in rows if row[0] == part] or [None]
    if row is None:
        raise ValueError(f"the part {part!r} has no row on the page")
    row[PLACES[store]] = [f"{figures.cases:,}", f"{figures.unknown:,}", day.isoformat()]
    return page[:begin] + "\n".join(f"| {' | '.join(row)} |" for row in rows) + page[end:]
