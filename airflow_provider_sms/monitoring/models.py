"""A campaign as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sms.ledger.statistics import Counts
    from airflow_provider_sms.monitoring.status import Note


class TryNote(NamedTuple):
    """A note that counts, and what else its try said.

    :param silent: whether its process has probably ended without a word.
    :param total: rows that can be texted; None where it is not known.
    :param done: rows that it is done with; None where it is not known.
    :param rate: messages a second; None where it is not known.
    :param figures: what it said with its state.
    :param plan: what it was to send; empty where there was none.
    """

    note: Note
    silent: bool
    conn_id: str | None
    try_number: int
    total: int | None
    done: int | None
    invalid: int | None
    rate: float | None
    figures: Mapping[str, Any]
    plan: Mapping[str, Any]


@dataclass(frozen=True)
class Campaign:
    """How a campaign stands.

    :param created_at: seconds since the epoch, as all times.
    :param tries: the notes that count, the newest first.
    """

    id: int
    name: str
    created_at: float
    state: str
    counts: Counts
    tries: Sequence[TryNote] = field(repr=False)

    @property
    def latest(self) -> Note:
        """Who sent it last."""
        return self.tries[0].note

    @property
    def total(self) -> int | None:
        """Rows that can be texted, of all its tasks; None where one of them does not know."""
        return _sum(each.total for each in self.tries)

    @property
    def done(self) -> int | None:
        """Rows that its tasks are done with; None where one of them does not know."""
        return _sum(each.done for each in self.tries)

    @property
    def not_sent(self) -> int | None:
        """Rows that were left unsent, and that a later try would send; None where a task does not say."""
        return _sum(each.note.not_sent for each in self.tries)

    @property
    def invalid(self) -> int | None:
        """Rows that cannot be texted; None where a task does not say."""
        return _sum(each.invalid for each in self.tries)

    @property
    def rate(self) -> float | None:
        """Messages a second, of all tasks that send now together, else of the last one; None where it is not known."""
        now = [each.rate or 0.0 for each in self.tries if each.note.state == "sending" and not each.silent]
        return sum(now) if now else self.tries[0].rate


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
