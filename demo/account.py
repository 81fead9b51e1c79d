"""The account of the demonstration: each line has a figure, and the checks of that figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console


WIDE = 100
"""Columns of the terminal from which several checks fit on a line."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A check of a promise.

    :param words: the promise.
    :param holds: whether the promise was kept.
    """

    words: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the account.

    :param label: name of the figure.
    :param figure: the formatted figure.
    :param claims: the checks of the figure.
    :param note: explanation of a figure without checks; empty for none.
    """

    label: str
    figure: str
    claims: tuple[Claim, ...]
    note: str


@dataclass(slots=True)
class Section:
    """A section of the account.

    :param title: the heading.
    :param lines: the lines, in order.
    :param footer: text that is too long for a line; empty for none.
    """

    title: str
    lines: list[Line] = field(default_factory=list)
    footer: str = ""

    def add(self, label: str, figure: Decimal | int, *claims: tuple[str, bool], note: str = "") -> None:
        """Add a line.

        :param figure: an amount of money as a Decimal, a count as an int.
        :param claims: pairs of a promise and whether it was kept.
        """
        written = f"{figure:,.2f}" if isinstance(figure, Decimal) else f"{figure:,}"
        self.lines.append(Line(label, written, tuple(Claim(*claim) for claim in claims), note))


def broken_claims(sections: Iterable[Section]) -> list[str]:
    """Return the failed checks, each with its line and section."""
    return [
        f"{section.title}: {line.label} {line.figure}: {claim.words}"
        for section in sections
        for line in section.lines
        for claim in line.claims
        if not claim.holds
    ]


def show(section: Section, console: Console) -> None:
    """Print a section."""
    from rich.table import Table
    from rich.text import Text

    between = Text("    " if console.width >= WIDE else "\n")
    table = Table(title=section.title, title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    for line in section.lines:
        claims = (
            Text.assemble(("ok  ", "green") if claim.holds else ("NO  ", "bold red"), claim.words)
            for claim in line.claims
        )
        table.add_row(line.label, line.figure, between.join(claims) if line.claims else Text(line.note, "dim"))
    console.print(table)
    if section.footer:
        console.print(section.footer, style="dim")
    console.print()
