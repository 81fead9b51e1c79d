"""How much of everything is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

CHUNK = 100
MAX_XCOM_RESPONSES = 1_000


@dataclass(frozen=True)
class Sizes:
    """Rows and runs.

    :param rows: of the large table.
    :param bare: rows that the bare threads post.
    :param slow: rows that are sent to the slow service.
    :param peers: rows that are sent in every way.
    :param throttled: rows that are sent to the throttled service.
    :param throttle: requests a second that it processes.
    :param campaigns: in the ledger whose pages are looked at.
    :param polled: rows that are sent while pages are looked at.
    :param runs: of what is cheap enough to be run more than once.
    :param imports: of the operators.
    :param fresh: whether each send has a process of its own, as a task has.
    """

    rows: int = 10_000_000
    bare: int = 500_000
    slow: int = 40_000
    peers: int = 5_000
    throttled: int = 1_000_000
    throttle: int = 100
    campaigns: int = 10_000
    polled: int = 300_000
    runs: int = 3
    imports: int = 9
    fresh: bool = True

    @property
    def small(self) -> int:
        """Rows of the small table: a tenth of the large one's."""
        return self.rows // 10

    @property
    def max_xcom_responses(self) -> int:
        """The operator's own default, but in a quick run so few that the small table exceeds it, too."""
        return min(MAX_XCOM_RESPONSES, self.small // CHUNK // 2)

    def with_rows(self, rows: int) -> Sizes:
        """Give sizes for another large table; the rest is no larger than its tenth."""
        small = rows // 10
        return replace(
            self,
            rows=rows,
            bare=min(self.bare, small),
            throttled=min(self.throttled, small),
            polled=min(self.polled, small),
        )

    def with_runs(self, runs: int) -> Sizes:
        """Give sizes with another number of runs."""
        return replace(self, runs=runs)


FULL = Sizes()
QUICK = Sizes(
    rows=50_000,
    bare=5_000,
    slow=2_000,
    peers=1_000,
    throttled=20_000,
    throttle=50,
    campaigns=200,
    polled=5_000,
    runs=1,
    imports=2,
    fresh=False,
)
