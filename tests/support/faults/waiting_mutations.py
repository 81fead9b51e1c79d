"""Defects of how a task waits for other tasks, of what it says of their lapsed claims, and of what it counts."""

from __future__ import annotations

from support.faults.mutation import PENDING, SCHEDULES, SENDER, Mutation

OTHERS = "tests/sending/test_pending_others.py"
_TESTS = (OTHERS, PENDING, SCHEDULES)
_RULE = "    return finished_at is None and now <= max(deadline, claimed_at + seconds)\n"
_APART = "test_a_lapsed_claim_is_counted_apart_while_its_process_may_record_it"


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
        "what another task may still record is sent again",
        "sending/pending.py",
        "        elif is_planned and self._resend(outgoing.key) and not holder.awaited:\n",
        "        elif is_planned and self._resend(outgoing.key):\n",
        "test_what_its_process_may_still_record_is_not_sent_again",
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
