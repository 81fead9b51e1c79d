"""The state of a campaign, derived from its counts and from what its attempts last reported: pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.model import AttemptState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_sms.monitoring.counts import Counts
    from airflow_provider_sms.monitoring.models import Attempt

SENDING = "sending"
CREDIT = "waiting for credit"
HOURS = "waiting for hours"
PAUSED = "paused"
COMPLETE = "complete"
ATTENTION = "needs attention"

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


def is_silent(state: str, updated_at: float, now: float) -> bool:
    """Return whether a busy attempt has reported nothing for so long that its process has probably ended."""
    return state in _BUSY_SECONDS and now - updated_at > _BUSY_SECONDS[state]


def current_attempts(reported: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts that count, newest first: for each task its last run, for each mapped copy its last attempt.

    An earlier run that is still at work counts as well: two runs may send one campaign at the same time.
    """
    runs: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, str, int]] = set()
    current: list[Attempt] = []
    for each in sorted(reported, key=lambda each: -each.id):
        last_run = runs.setdefault((each.dag_id, each.task_id), each.run_id)
        copy = (each.dag_id, each.task_id, each.run_id, each.map_index)
        if copy not in seen and (each.run_id == last_run or _is_busy(each)):
            current.append(each)
        seen.add(copy)
    return current


def campaign_state(attempts: Sequence[Attempt], counts: Counts, *, paused: bool) -> str:
    """Return the state of a campaign.

    :param attempts: the current ones, at least one.
    :param paused: whether a person has paused the campaign.
    """
    waits = {_WAITS[each.state] for each in attempts if each.state in _WAITS}
    failed = any(each.state == AttemptState.FAILED or each.silent for each in attempts)
    states = (
        (PAUSED, paused),
        (SENDING, counts.under_way > 0 or any(map(_is_busy, attempts))),
        # Before the waits that end without a person: nobody would notice a failed copy beside them.
        (ATTENTION, failed),
        (CREDIT, CREDIT in waits),
        (HOURS, HOURS in waits),
        (ATTENTION, counts.unknown + counts.freed > 0 or any(each.not_sent for each in attempts)),
    )
    return next((state for state, applies in states if applies), COMPLETE)


def _is_busy(attempt: Attempt) -> bool:
    return attempt.state in _BUSY_SECONDS and not attempt.silent
