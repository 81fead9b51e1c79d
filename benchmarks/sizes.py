"""Sizes of the measurements: rows and repetitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

CHUNK = 100


@dataclass(frozen=True)
class Sizes:
    """Rows and runs.

    :param rows: rows of the large table.
    :param bare: rows to post by bare threads.
    :param slow: rows to send to the slow service.
    :param started: rows of a small task.
    :param campaigns: campaigns in the full ledger, for the pages.
    :param runs: repetitions of the cheaper cases.
    :param imports: imports of the operators.
    :param fresh: whether each send has its own process, like a task.
    """

    rows: int = 10_000_000
    bare: int = 500_000
    slow: int = 40_000
    started: int = 1_000
    campaigns: int = 50_000
    runs: int = 3
    imports: int = 9
    fresh: bool = True

    @property
    def small(self) -> int:
        """Rows of the small table: a tenth of the large one."""
        return self.rows // 10

    def with_rows(self, rows: int) -> Sizes:
        """Return sizes for another large table, with the other tables at most a tenth of it."""
        return replace(self, rows=rows, bare=min(self.bare, rows // 10))

    def with_runs(self, runs: int) -> Sizes:
        """Return sizes with another number of runs."""
        return replace(self, runs=runs)


FULL = Sizes()
QUICK = Sizes(
    rows=110_000,  # the small table exceeds the limit of responses in an XCom, too
    bare=5_000,
    slow=2_000,
    started=200,
    campaigns=200,
    runs=1,
    imports=2,
    fresh=False,
)
