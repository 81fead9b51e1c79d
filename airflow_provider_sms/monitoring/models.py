"""A campaign as the pages and the commands show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.ledger.model import AttemptState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sms.monitoring.counts import Counts


class Attempt(NamedTuple):
    """An attempt, or a leg of one between two deferrals, as it reported itself last. None means not known.

    :param state: an :class:`~airflow_provider_sms.ledger.model.AttemptState`.
    :param updated_at: seconds since the epoch.
    :param total: rows that can be texted.
    :param done: rows that need nothing more.
    :param not_sent: rows left unsent.
    :param rate: messages a second.
    :param figures: further figures, as reported with its state.
    :param silent: whether its process has probably ended without reporting it.
    """

    id: int
    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    state: str
    updated_at: float
    total: int | None
    done: int | None
    not_sent: int | None
    invalid: int | None
    rate: float | None
    figures: Mapping[str, Any]
    silent: bool

    @property
    def name(self) -> str:
        """Which attempt of which task it is, for people."""
        mapped = "" if self.map_index < 0 else f" [{self.map_index}]"
        return f"Attempt {self.try_number} of task {self.task_id}{mapped}"

    @property
    def remaining(self) -> int:
        """Rows that it has not reached, as far as it reported them."""
        return 0 if self.total is None or self.done is None else max(0, self.total - self.done)


@dataclass(frozen=True)
class Campaign:
    """A campaign, its state and its counts.

    :param created_at: seconds since the epoch, as all times.
    :param counts: those of its requests.
    :param attempts: the current ones, newest first.
    """

    id: int
    name: str
    created_at: float
    state: str
    counts: Counts = field(repr=False)
    attempts: Sequence[Attempt] = field(repr=False)

    @property
    def latest(self) -> Attempt:
        """The attempt that sent last."""
        return self.attempts[0]

    @property
    def total(self) -> int | None:
        """Rows that can be texted, of all its tasks; None if one of them has not reported it."""
        return _sum(each.total for each in self.attempts)

    @property
    def done(self) -> int | None:
        """Rows that need nothing more, which those of unknown requests do; None if a task has not reported it."""
        done, total = _sum(each.done for each in self.attempts), self.total
        if done is None or total is None:
            return done
        # On its way, an attempt does not count what it has lost; at its end it does.
        unfinished = min(done, total - self.counts.unknown)
        return max(0, unfinished if self._at_work else done - self.counts.unknown - self.counts.freed)

    @property
    def not_sent(self) -> int | None:
        """Rows that were left unsent or freed by a decision, which the next attempt sends; None if not reported."""
        left = _sum(each.not_sent for each in self.attempts)
        return left if left is None or self._at_work else left + self.counts.freed

    @property
    def invalid(self) -> int | None:
        """Rows that cannot be texted; None if a task has not reported it."""
        return _sum(each.invalid for each in self.attempts)

    @property
    def still_to_do(self) -> int:
        """Rows that attempts at work will still reach, or that a process did not reach before it ended."""
        return max(0, sum(each.remaining for each in self._at_work) - self.counts.under_way)

    @property
    def _at_work(self) -> list[Attempt]:
        return [each for each in self.attempts if each.state not in (AttemptState.ENDED, AttemptState.FAILED)]

    @property
    def rate(self) -> float | None:
        """Messages a second of all running tasks together; if none runs, of the last one. None means not known."""
        running = [each for each in self.attempts if each.state == AttemptState.SENDING and not each.silent]
        return sum(each.rate or 0.0 for each in running) if running else self.latest.rate

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        """Messages and rows by outcome, as many as there are; those that were accepted in any case."""
        counts = self.counts
        lines = [
            ("Accepted", counts.accepted),
            ("Under way", counts.under_way),
            ("Unknown", counts.unknown),
            ("Still to do", self.still_to_do),
            ("Left out by the service", counts.left_out),
            ("Not sent", self.not_sent or 0),
            ("Invalid", self.invalid or 0),
            ("Suppressed", self._figure("suppressed")),
            ("Duplicate", self._figure("duplicate")),
        ]
        return [(name, count) for name, count in lines if count or name == "Accepted"]

    def _figure(self, name: str) -> int:
        return sum(each.figures.get(name) or 0 for each in self.attempts)


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
