"""The table of scenarios in the documentation: it is written from the rows of those that were played."""

from __future__ import annotations

import re
from pathlib import Path

from support.machines.scenarios import SCENARIOS

PAGE = Path(__file__).parents[3] / "docs" / "several-machines.md"
COLUMNS = ("Scenario", "People", "Twice", "Lost", "Unknown", "Task, s", "Process, s", "What Airflow showed")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|{'--:|' * (len(COLUMNS) - 2)}---|\n"
MORE = " The command plays more than is in the table."
"""What the page says below the day as long as the table lacks a scenario."""
DAY = re.compile(rf"^Measured on \d{{4}}-\d\d-\d\d(?: (?:and|to) \d\d)?, (.*?\.)(?:{re.escape(MORE)})?$", re.MULTILINE)
"""The line of the page above the table that says when it was played, and how."""


def line_of(row):
    """Return a row as the page has it.

    :param row: the cells, as texts.
    """
    return f"| {' | '.join(row)} |\n"


def read_rows(text):
    """Return the cells of each scenario that was played, by its name; of one that was played again, the last.

    :param text: lines as :func:`line_of` returns them, of any number of runs.
    :raises ValueError: a line is no row, or is one of a scenario that there is not.
    """
    names = {each.name for each in SCENARIOS}
    rows = {}
    for line in filter(str.strip, text.splitlines()):
        row = line.strip().removeprefix("| ").removesuffix(" |").split(" | ")
        if len(row) != len(COLUMNS):
            raise ValueError(f"a row has {len(row)} cells, not {len(COLUMNS)}: {line}")
        if row[0] not in names:
            raise ValueError(f"no scenario has the name {row[0]!r}")
        rows[row[0]] = row
    return rows


def with_rows(page, rows, day):
    """Return the page with a table of these rows, in the order of the scenarios; all else stays as it is.

    :param page: with one table of that head, and one line of that form above it.
    :param rows: the cells of each scenario, by its name.
    :param day: on which the last of them was played.
    :raises ValueError: there is no row, or in one of them somebody was texted twice or lost, or something did not end.
    """
    if not rows:
        raise ValueError("no scenario was played")
    for name, row in rows.items():
        cells = dict(zip(COLUMNS, row, strict=True))
        if (cells["Twice"], cells["Lost"]) != ("0", "0") or "not ended" in row:
            raise ValueError(f"the promise was broken, so nothing is written: {name}")
    begin = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", begin) + 1
    (told,) = DAY.finditer(page[:begin])
    more = "" if len(rows) == len(SCENARIOS) else MORE
    table = "".join(line_of(rows[each.name]) for each in SCENARIOS if each.name in rows)
    between = page[told.end() : begin]
    return f"{page[: told.start()]}Measured on {day.isoformat()}, {told[1]}{more}{between}{table}{page[end:]}"
