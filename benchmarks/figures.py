"""Figures, their goals, and whether they are met."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

__all__ = ["Figure", "at_least", "at_most", "median"]


@dataclass(frozen=True)
class Goal:
    """What a number should be.

    :param limit: in the unit of the number.
    :param least: whether the number should be at least that; else at most.
    :param text: as people read it.
    """

    limit: float
    least: bool
    text: str

    def ratio(self, number: float) -> float:
        """Give the number in units of the limit."""
        return number / self.limit

    def missed_by(self, number: float) -> float:
        """Give by what share of the limit the number misses it; 0 where it is met."""
        ratio = self.ratio(number)
        return max(0.0, 1 - ratio if self.least else ratio - 1)


def at_least(limit: float, text: str) -> Goal:
    """Make the goal of a number that should be large."""
    return Goal(limit, least=True, text=f"at least {text}")


def at_most(limit: float, text: str) -> Goal:
    """Make the goal of a number that should be small."""
    return Goal(limit, least=False, text=f"at most {text}")


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    :param what: was measured.
    :param text: the figure as people read it.
    :param number: what is compared with the goal, in its unit.
    :param goal: None where there is none.
    :param runs: what the number is the median of.
    :param details: whatever else is worth keeping, for the JSON.
    """

    what: str
    text: str
    number: float
    goal: Goal | None = None
    runs: tuple[float, ...] = ()
    details: dict[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Say whether the goal is met; empty where there is none."""
        if self.goal is None:
            return ""
        missed = self.goal.missed_by(self.number)
        return f"missed by {missed:.0%}" if missed else "met"

    @property
    def ratio(self) -> float | None:
        """Give the number in units of its goal."""
        return None if self.goal is None else self.goal.ratio(self.number)
