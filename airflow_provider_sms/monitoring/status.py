"""The state of a campaign, derived from what its attempts last reported: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.ledger.model import AttemptState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SENDING = "sending"
CREDIT = "waiting for credit"
HOURS = "waiting for hours"
PAUSED = "paused"
COMPLETE = "complete"
ATTENTION = "needs attention"

STATES = (ATTENTION, CREDIT, HOURS, PAUSED, SENDING, COMPLETE)

LIVE = frozenset({SENDING, PAUSED, CREDIT, HOURS})
"""States in which more will be sent without anybody clearing a task."""

_WAITS: dict[str, str] = {
    AttemptState.WAITING_FOR_CREDIT: CREDIT,
    AttemptState.WAITING_FOR_HOURS: HOURS,
}
_BUSY_SECONDS: dict[str, float] = {
    AttemptState.SENDING: 300.0,
    AttemptState.PAUSED: 300.0,
    AttemptState.CHECKING: 1800.0,
}
"""Seconds without progress after which a busy attempt counts as dead; a check of rows reports only when it begins."""


class AttemptProgress(NamedTuple):
    """What an attempt, or a leg of one between two deferrals, reported last.

    :param state: as tasks record it.
    :param updated_at: seconds since the epoch.
    :param not_sent: rows left unsent; None means not reported.
    """

    claimant_id: int
    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    state: str
    updated_at: float
    not_sent: int | None = None


def current_attempts(reported: Iterable[AttemptProgress], now: float) -> list[AttemptProgress]:
    """Return the attempts that count, newest first: for each task its last run, for each mapped copy its last attempt.

    An earlier run that is still at work counts as well: two runs may send one campaign at the same time.
    """
    runs: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, str, int]] = set()
    current: list[AttemptProgress] = []
    for each in sorted(reported, key=lambda each: -each.claimant_id):
        last_run = runs.setdefault((each.dag_id, each.task_id), each.run_id)
        copy = (each.dag_id, each.task_id, each.run_id, each.map_index)
        if copy not in seen and (each.run_id == last_run or _is_busy(each, now)):
            current.append(each)
        seen.add(copy)
    return current


def campaign_state(
    attempts: Sequence[AttemptProgress], *, unknown: bool, under_way: bool, paused: bool, now: float
) -> str:
    """Return the state of a campaign.

    :param attempts: the current ones, at least one.
    :param unknown: whether the outcome of any message is unknown.
    :param under_way: whether any request is claimed and its outcome may still be recorded.
    :param paused: whether a person has paused the campaign.
    """
    waits = {_WAITS[each.state] for each in attempts if each.state in _WAITS}
    failed = any(each.state == AttemptState.FAILED or is_silent(each, now) for each in attempts)
    states = (
        (PAUSED, paused),
        (SENDING, under_way or any(_is_busy(each, now) for each in attempts)),
        # Before the waits that end without a person: nobody would notice a failed copy beside them.
        (ATTENTION, failed),
        (CREDIT, CREDIT in waits),
        (HOURS, HOURS in waits),
        (ATTENTION, unknown or any(each.not_sent for each in attempts)),
    )
    return next((state for state, applies in states if applies), COMPLETE)


def is_silent(attempt: AttemptProgress, now: float) -> bool:
    """Return whether a busy attempt has reported nothing for so long that its process has probably ended."""
    limit = _BUSY_SECONDS.get(attempt.state)
    return limit is not None and now - attempt.updated_at > limit


def _is_busy(attempt: AttemptProgress, now: float) -> bool:
    return attempt.state in _BUSY_SECONDS and not is_silent(attempt, now)
