"""A defect that a careless hand could bring into the package, as an exact replacement of its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SENDER = "tests/sending/test_sender.py"
LEDGER = "tests/sending/test_ledger.py"
RESPONSES = "tests/sending/test_kept_responses.py"
CONTACTS = "tests/sending/test_contacts.py"
PAUSES = "tests/sending/test_pauses.py"
SQLITE = "tests/sending/test_sqlite.py"
FILESYSTEM = "tests/sending/test_filesystem.py"
BACKLOG = "tests/sending/test_backlog.py"
BRAKES = "tests/sending/test_brakes.py"
CLEARANCE = "tests/operators/test_clearance.py"
SCHEDULES = "tests/faults/test_schedules.py"
PAIRS = "tests/faults/test_pairs.py"
KEYS = "tests/messages/test_keys.py"
CLIENT = "tests/service"
CLOCKS = "tests/sending/test_clocks.py"
DECISIONS = "tests/sending/test_decisions.py"
READER = "tests/overview/test_reader.py"
TRANSPORT = "tests/service/test_transport.py"
LAPSE = "tests/operators/test_lapse.py"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One defect.

    :param file: below the package.
    :param old: what is there now, exactly once.
    :param new: what the defect makes of it.
    :param tests: what is run, in this order, until something fails.
    :param first: the test that holds the rule, of the first file of these, run before all of them.
    :param also: a second replacement that belongs to the first.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = (SENDER, LEDGER, SCHEDULES, PAIRS)
    also: tuple[str, str] | None = None
    first: str | None = None

    @property
    def rounds(self) -> tuple[tuple[str, ...], ...]:
        """What pytest is to run, one after the other."""
        return (self.tests,) if self.first is None else ((f"{self.tests[0]}::{self.first}",), self.tests)

    def apply(self, package: Path) -> None:
        """Change a copy of the package.

        :raises ValueError: when the text is not there exactly once: then the mutation is to be mended.
        """
        path = package / self.file
        text = path.read_text()
        for old, new in [(self.old, self.new)] + ([self.also] if self.also else []):
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: a text stands {text.count(old)} times in {self.file}, not once")
            text = text.replace(old, new)
        path.write_text(text)
