"""How a campaign stands, from what its tries said last: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SENDING = "sending"
CREDIT = "waiting for credit"
HOURS = "waiting for hours"
PERSON = "waiting for a person"
PAUSED = "paused"
COMPLETE = "complete"
ATTENTION = "needs attention"
EARLIER = "sent earlier"
"""By a version of this package that left no notes, so that nothing tells whether anybody was left out."""

STATES = (ATTENTION, PERSON, CREDIT, HOURS, PAUSED, SENDING, COMPLETE, EARLIER)

LIVE = frozenset({SENDING, PAUSED, CREDIT, HOURS, PERSON})
"""States in which more is to come by itself."""

_WAITS = {
    "waiting for approval": PERSON,
    "waiting for an answer": PERSON,
    "waiting for credit": CREDIT,
    "waiting for hours": HOURS,
}
_BUSY_SECONDS = {"sending": 300.0, "paused": 300.0, "checking": 1800.0}
"""How long a try that does this may say nothing before it is taken for dead; a check speaks only as it begins."""


class Note(NamedTuple):
    """What a try, or the part of one between two waits, said last.

    :param claimant_id: ascends with time.
    :param state: as tasks note it.
    :param updated_at: seconds since the epoch.
    :param not_sent: rows left unsent; None where it did not say.
    """

    claimant_id: int
    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    state: str
    updated_at: float
    not_sent: int | None = None


def current(notes: Iterable[Note], now: float) -> list[Note]:
    """Give the notes that count: of each task the last run's, and of each mapped copy in it the last one.

    An earlier run that is still at work counts, too: two runs may send one campaign at the same time.

    :param now: seconds since the epoch.
    :returns: the newest first.
    """
    newest_first = sorted(notes, key=lambda note: -note.claimant_id)
    runs: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, str, int]] = set()
    counted: list[Note] = []
    for note in newest_first:
        last_run = runs.setdefault((note.dag_id, note.task_id), note.run_id)
        copy = (note.dag_id, note.task_id, note.run_id, note.map_index)
        if copy not in seen and (note.run_id == last_run or _is_busy(note, now)):
            counted.append(note)
        seen.add(copy)
    return counted


def state_of(notes: Sequence[Note], *, unknown: bool, under_way: bool, paused: bool, now: float) -> str:
    """Say how a campaign stands.

    :param notes: those that count, at least one.
    :param unknown: whether the outcome of any request is unknown.
    :param under_way: whether any request is claimed and may be sent yet.
    :param paused: whether a person has paused it.
    :param now: seconds since the epoch.
    """
    waits = {_WAITS[note.state] for note in notes if note.state in _WAITS}
    failed = any(note.state == "failed" or is_silent(note, now) for note in notes)
    told = (
        (PAUSED, paused),
        (SENDING, under_way or any(_is_busy(note, now) for note in notes)),
        (PERSON, PERSON in waits),
        # Before waits that end by themselves: nobody would look at what failed beside them.
        (ATTENTION, failed),
        (CREDIT, CREDIT in waits),
        (HOURS, HOURS in waits),
        (ATTENTION, unknown or any(note.not_sent for note in notes)),
        (EARLIER, any(note.state == "earlier" for note in notes)),
    )
    return next((state for state, holds in told if holds), COMPLETE)


def _is_busy(note: Note, now: float) -> bool:
    return note.state in _BUSY_SECONDS and not is_silent(note, now)


def is_silent(note: Note, now: float) -> bool:
    """Whether a try was busy and has said nothing for so long that its process has probably ended."""
    patience = _BUSY_SECONDS.get(note.state)
    return patience is not None and now - note.updated_at > patience
