"""Defects of how a task waits for other tasks."""

from __future__ import annotations

from support.faults.mutation import HOLDERS, SCHEDULES, SENDER, Mutation

_TESTS = (HOLDERS, SCHEDULES)
_RULE = "    return finished_at is None and now <= deadline + seconds\n"
_APART = "test_another_attempts_outcome_is_awaited_for_a_bounded_time"


def _defect(name: str, file: str, old: str, new: str, first: str, tests: tuple[str, ...] = _TESTS) -> Mutation:
    return Mutation(name, file, old, new, tests, first=first)


WAITING_MUTATIONS = (
    _defect(
        "another task's request is unknown at its deadline",
        "ledger/transitions.py",
        _RULE,
        "    return finished_at is None and now <= deadline\n",
        _APART,
    ),
    _defect(
        "outcomes are forgotten where a lock was not had",
        "sending/sender.py",
        '        log.warning("%s. Trying again, %d of %d times", error, self._busy, MAX_BUSY)\n',
        "        self._unrecorded = []\n",
        "test_a_lock_that_is_not_had_is_waited_for_again",
        (SENDER,),
    ),
)
"""All of them, in the order of the wait."""
