"""A defect that a careless change could introduce, as an exact replacement of the package's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SENDER = "tests/sending/test_sender.py"
LEDGER = "tests/ledger/test_claims.py"
HOLDERS = "tests/ledger/test_holders.py"
RESPONSES = "tests/ledger/test_requests.py"
PAUSES = "tests/ledger/test_pauses.py"
SQLITE = "tests/ledger/test_sqlite.py"
TRANSITIONS = "tests/ledger/test_transitions.py"
OUTCOMES = "tests/sending/test_outcomes.py"
SETTLE = "tests/sending/test_settle.py"
COUNTS = "tests/reporting/test_row_counts.py"
EVIDENCE = "tests/sending/test_evidence.py"
BRAKES = "tests/sending/test_stop_conditions.py"
SCHEDULES = "tests/faults/test_schedules.py"
KEYS = "tests/messages/test_keys.py"
CLIENT = "tests/service"
DECISIONS = "tests/ledger/test_decisions.py"
ELAPSED = "tests/service/test_elapsed.py"
LAPSE = "tests/execution/test_send.py"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One defect.

    :param file: path below the package.
    :param old: current text, which must occur exactly once.
    :param new: defective text.
    :param tests: tests to run, in this order, until one fails.
    :param first: test in the first of these files that holds the rule; it runs before all others.
    :param also: a second replacement in the same file.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = (SENDER, LEDGER, SCHEDULES)
    also: tuple[str, str] | None = None
    first: str | None = None

    @property
    def rounds(self) -> tuple[tuple[str, ...], ...]:
        """The tests of each pytest run, in order."""
        return (self.tests,) if self.first is None else ((f"{self.tests[0]}::{self.first}",), self.tests)

    def apply(self, package: Path) -> None:
        """Change a copy of the package.

        :raises ValueError: when the text does not occur exactly once: adapt the mutation to the changed file.
        """
        path = package / self.file
        text = path.read_text()
        for old, new in [(self.old, self.new)] + ([self.also] if self.also else []):
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: a text occurs {text.count(old)} times in {self.file}, not once")
            text = text.replace(old, new)
        path.write_text(text)
