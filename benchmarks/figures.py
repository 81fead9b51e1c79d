"""Figures, their goals, and whether they are met."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

__all__ = ["Figure", "at_least", "at_most", "median"]


@dataclass(frozen=True)
class Goal:
    """The goal of a figure.

    :param limit: limit in the figure's unit.
    :param least: True for a minimum, False for a maximum.
    :param text: the goal as printed.
    """

    limit: float
    least: bool
    text: str

    def ratio(self, number: float) -> float:
        """Return the number as a multiple of the limit."""
        return number / self.limit

    def missed_by(self, number: float) -> float:
        """Return by which share of the limit the number misses the goal; 0 when it meets the goal."""
        ratio = self.ratio(number)
        return max(0.0, 1 - ratio if self.least else ratio - 1)


def at_least(limit: float, text: str) -> Goal:
    """Return the goal of a number that should be large."""
    return Goal(limit, least=True, text=f"at least {text}")


def at_most(limit: float, text: str) -> Goal:
    """Return the goal of a number that should be small."""
    return Goal(limit, least=False, text=f"at most {text}")


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    :param what: what was measured.
    :param text: the figure as printed.
    :param number: number to compare with the goal, in its unit.
    :param goal: the goal; None for none.
    :param runs: the runs whose median the number is.
    :param details: further values for the JSON.
    """

    what: str
    text: str
    number: float
    goal: Goal | None = None
    runs: tuple[float, ...] = ()
    details: dict[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether the goal is met, in words; empty without a goal."""
        if self.goal is None:
            return ""
        missed = self.goal.missed_by(self.number)
        return f"missed by {missed:.0%}" if missed else "met"

    @property
    def ratio(self) -> float | None:
        """The number as a multiple of its goal; None without a goal."""
        return None if self.goal is None else self.goal.ratio(self.number)
