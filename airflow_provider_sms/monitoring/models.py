"""A campaign as the pages show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.ledger.model import AttemptState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sms.monitoring.counts import Counts
    from airflow_provider_sms.monitoring.status import AttemptProgress


class Attempt(NamedTuple):
    """A current attempt, with the figures that it reported. None means not known.

    :param silent: whether its process has probably ended without reporting it.
    :param total: rows that can be texted.
    :param done: rows that need nothing more.
    :param rate: messages a second.
    :param figures: further figures, as reported with its state.
    """

    progress: AttemptProgress
    silent: bool
    try_number: int
    total: int | None
    done: int | None
    invalid: int | None
    rate: float | None
    figures: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Which attempt of which task it is, for people."""
        mapped = "" if self.progress.map_index < 0 else f" [{self.progress.map_index}]"
        return f"Attempt {self.try_number} of task {self.progress.task_id}{mapped}"

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
    def latest(self) -> AttemptProgress:
        """The attempt that sent last."""
        return self.attempts[0].progress

    @property
    def total(self) -> int | None:
        """Rows that can be texted, of all its tasks; None if one of them has not reported it."""
        return _sum(each.total for each in self.attempts)

    @property
    def done(self) -> int | None:
        """Rows that need nothing more, which those of unknown requests do; None if a task has not reported it."""
        done, total = _sum(each.done for each in self.attempts), self.total
        return done if done is None or total is None else max(0, min(done, total - self.counts.unknown))

    @property
    def not_sent(self) -> int | None:
        """Rows that were left unsent, and that the next attempt sends; None if a task has not reported it."""
        return _sum(each.progress.not_sent for each in self.attempts)

    @property
    def invalid(self) -> int | None:
        """Rows that cannot be texted; None if a task has not reported it."""
        return _sum(each.invalid for each in self.attempts)

    @property
    def rate(self) -> float | None:
        """Messages a second of all running tasks together; if none runs, of the last one. None means not known."""
        now = [
            each.rate or 0.0
            for each in self.attempts
            if each.progress.state == AttemptState.SENDING and not each.silent
        ]
        return sum(now) if now else self.attempts[0].rate


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
