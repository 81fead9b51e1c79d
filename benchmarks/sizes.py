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
    :param senders: rows of each of several senders.
    :param most_senders: how many senders there are at once, at most.
    :param started: rows of a small task.
    :param peers: rows to send in every way.
    :param throttled: rows to send to the throttled service.
    :param throttle: requests per second that the throttled service processes.
    :param campaigns: campaigns in the full ledger, for the pages.
    :param polled: rows to send while pages are open.
    :param runs: repetitions of the cheaper cases.
    :param imports: imports of the operators.
    :param fresh: whether each send has its own process, like a task.
    """

    rows: int = 10_000_000
    bare: int = 500_000
    slow: int = 40_000
    senders: int = 30_000
    most_senders: int = 8
    started: int = 1_000
    peers: int = 5_000
    throttled: int = 1_000_000
    throttle: int = 100
    campaigns: int = 50_000
    polled: int = 300_000
    runs: int = 3
    imports: int = 9
    fresh: bool = True

    @property
    def small(self) -> int:
        """Rows of the small table: a tenth of the large one."""
        return self.rows // 10

    def with_rows(self, rows: int) -> Sizes:
        """Return sizes for another large table, with the other tables at most a tenth of it."""
        small = rows // 10
        return replace(
            self,
            rows=rows,
            bare=min(self.bare, small),
            throttled=min(self.throttled, small),
            polled=min(self.polled, small),
        )

    def with_runs(self, runs: int) -> Sizes:
        """Return sizes with another number of runs."""
        return replace(self, runs=runs)


FULL = Sizes()
QUICK = Sizes(
    rows=110_000,  # the small table exceeds the limit of responses in an XCom, too
    bare=5_000,
    slow=2_000,
    senders=600,
    most_senders=2,
    started=200,
    peers=1_000,
    throttled=20_000,
    throttle=50,
    campaigns=200,
    polled=5_000,
    runs=1,
    imports=2,
    fresh=False,
)
