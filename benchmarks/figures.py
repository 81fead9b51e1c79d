"""Figures, their goals, and the table that shows them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    :param what: what was measured, and its unit.
    :param limit: the goal; None for none.
    :param least: whether the limit is a minimum, and not a maximum.
    :param note: what else to print, such as the figures of a ratio.
    """

    what: str
    number: float
    limit: float | None = None
    least: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the goal is met, or by which share of it the number misses it; empty without a goal."""
        if self.limit is None:
            return ""
        ratio = self.number / self.limit
        missed = 1 - ratio if self.least else ratio - 1
        return f"missed by {missed:.1%}" if missed > 0 else "met"


def ratio(
    what: str, pairs: Sequence[tuple[float, float]], limit: float | None = None, *, least: bool = False
) -> Figure:
    """Return the median of the ratios of numbers, each to another that was measured in the same minutes."""
    one, other = (median(each) for each in zip(*pairs, strict=True))
    number = median([one / other for one, other in pairs])
    return Figure(what, number, limit, least, f"{shown(one)} beside {shown(other)}")


def shown(number: float) -> str:
    """Return a number with at least three digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three digits


def table_of(figures: Mapping[str, Sequence[Figure]], title: str, *, judged: bool) -> Table:
    """Return a table with one line per figure.

    :param figures: figures by case.
    :param judged: whether to print if goals are met.
    """
    table = Table("case", "what", "figure", "", "goal", "verdict", title=title)
    for case, lines in figures.items():
        for line in lines:
            goal = "" if line.limit is None else f"at {'least' if line.least else 'most'} {line.limit:g}"
            table.add_row(case, line.what, shown(line.number), line.note, goal, line.verdict if judged else "")
        table.add_section()
    return table
