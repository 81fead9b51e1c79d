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
_BUSY_SECONDS = {"sending": 120.0, "paused": 120.0, "checking": 1800.0}
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


def current(notes: Iterable[Note]) -> list[Note]:
    """Give the notes that count: of each task the last run's, and of each mapped copy in it the last one.

    :returns: the newest first.
    """
    newest_first = sorted(notes, key=lambda note: -note.claimant_id)
    runs: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, int]] = set()
    counted: list[Note] = []
    for note in newest_first:
        run = runs.setdefault((note.dag_id, note.task_id), note.run_id)
        copy = (note.dag_id, note.task_id, note.map_index)
        if note.run_id == run and copy not in seen:
            seen.add(copy)
            counted.append(note)
    return counted


def state_of(notes: Sequence[Note], *, unknown: bool, paused: bool, now: float) -> str:
    """Say how a campaign stands.

    :param notes: those that count, at least one.
    :param unknown: whether the outcome of any request is unknown.
    :param paused: whether a person has paused it.
    :param now: seconds since the epoch.
    """
    silent = [is_silent(note, now) for note in notes]
    waits = {_WAITS[note.state] for note in notes if note.state in _WAITS}
    if paused:
        return PAUSED
    if any(note.state in _BUSY_SECONDS and not gone for note, gone in zip(notes, silent, strict=True)):
        return SENDING
    for state in (PERSON, CREDIT, HOURS):
        if state in waits:
            return state
    if unknown or any(silent) or any(note.state == "failed" or note.not_sent for note in notes):
        return ATTENTION
    return EARLIER if any(note.state == "earlier" for note in notes) else COMPLETE


def is_silent(note: Note, now: float) -> bool:
    """Whether a try was busy and has said nothing for so long that its process has probably ended."""
    patience = _BUSY_SECONDS.get(note.state)
    return patience is not None and now - note.updated_at > patience
