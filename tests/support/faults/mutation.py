"""A defect that a careless hand could bring into the package, as an exact replacement of its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SENDER = "tests/sending/test_sender.py"
LEDGER = "tests/ledger/test_campaign.py"
RESPONSES = "tests/ledger/test_requests.py"
CONTACTS = "tests/ledger/test_frequency_cap.py"
PAUSES = "tests/ledger/test_pauses.py"
SQLITE = "tests/ledger/test_sqlite.py"
FILESYSTEM = "tests/ledger/test_filesystem.py"
BACKLOG = "tests/sending/test_pending.py"
BRAKES = "tests/sending/test_stop_conditions.py"
CLEARANCE = "tests/execution/test_preflight.py"
SCHEDULES = "tests/faults/test_schedules.py"
PAIRS = "tests/faults/test_pairs.py"
KEYS = "tests/messages/test_keys.py"
CLIENT = "tests/service"
CLOCKS = "tests/ledger/test_clocks.py"
DECISIONS = "tests/ledger/test_decisions.py"
READER = "tests/ledger/test_reader.py"
ELAPSED = "tests/service/test_elapsed.py"
LAPSE = "tests/execution/test_lapse.py"


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
