"""The figures as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.figures import Figure


def table_of(figures: Mapping[str, Sequence[Figure]], title: str, *, judged: bool) -> Table:
    """Return a table with one line per figure.

    :param figures: figures by case.
    :param judged: whether to print if goals are met.
    """
    table = Table("what", "goal", "figure", title=title)
    table.add_column("ratio", justify="right")
    table.add_column("verdict")
    for lines in figures.values():
        for line in lines:
            goal = "" if line.goal is None else line.goal.text
            ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
            verdict = line.verdict if judged or line.goal is None else "not judged"
            table.add_row(line.what, goal, line.text, ratio, verdict)
        table.add_section()
    return table


def report_of(
    figures: Mapping[str, Sequence[Figure]], facts: Mapping[str, Any], wrong: Mapping[str, str], *, judged: bool
) -> str:
    """Return all figures as JSON.

    :param wrong: errors by case.
    """
    lines = [
        {
            "case": case,
            **asdict(line),
            "goal": None if line.goal is None else line.goal.text,
            "ratio": line.ratio,
            "verdict": line.verdict if judged else "",
        }
        for case, lines in figures.items()
        for line in lines
    ]
    return json.dumps({**facts, "judged": judged, "wrong": dict(wrong), "figures": lines}, indent=1, ensure_ascii=False)
