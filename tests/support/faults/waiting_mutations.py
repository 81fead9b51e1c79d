"""Defects of how a task waits for other tasks, of what it says of their lapsed claims, and of what it counts."""

from __future__ import annotations

from support.faults.mutation import LAPSE, PENDING, SCHEDULES, SENDER, SQLITE, Mutation

OTHERS = "tests/sending/test_pending_others.py"
PREFLIGHT = "tests/execution/test_preflight.py"
POSTGRES = "tests/ledger/test_postgres.py"
FAILURES = "tests/execution/test_failures.py"
TRANSITIONS = "tests/ledger/test_transitions.py"
_TESTS = (OTHERS, PENDING, SCHEDULES)
_RULE = "    return finished_at is None and now <= max(deadline, claimed_at + seconds)\n"
_APART = "test_a_lapsed_claim_is_counted_apart_while_its_process_may_record_it"
_GIVEN_UP = "test_a_lapsed_claim_is_unknown_once_its_process_has_given_up"
_REPEAT = "test_a_repeat_of_a_message_that_an_earlier_leg_lost_is_a_repeat"


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
        "another task's outcome is expected without end",
        "ledger/transitions.py",
        _RULE,
        "    return finished_at is None\n",
        _GIVEN_UP,
    ),
    _defect(
        "patience may end before the claim",
        "ledger/transitions.py",
        _RULE,
        "    return finished_at is None and now <= claimed_at + seconds\n",
        "test_an_outcome_may_be_recorded_for_a_while_past_the_deadline",
        (TRANSITIONS,),
    ),
    _defect(
        "what is recorded as unknown may still be recorded",
        "ledger/transitions.py",
        _RULE,
        "    return now <= max(deadline, claimed_at + seconds)\n",
        "test_a_recorded_unknown_is_unknown_at_once",
    ),
    _defect(
        "a lapsed claim is unknown at once",
        "sending/pending.py",
        "        if holder.awaited:\n",
        "        if False:\n",
        _APART,
    ),
    _defect(
        "only attempts that began later may still record",
        "ledger/holders.py",
        "                claimant_id != self._claimant_id\n                and may_be_recorded",
        "                claimant_id > self._claimant_id\n                and may_be_recorded",
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
        "the balance is asked only once nobody may record",
        "sending/pending.py",
        "        elif self._adopts(holder.request_id):\n",
        "        elif self._adopts(holder.request_id) and not holder.awaited:\n",
        "test_the_balance_decides_past_the_deadline",
    ),
    _defect(
        "a task that waited in vain fails for good",
        "execution/failures.py",
        "    may_pass = counts.unrecorded and not",
        "    may_pass = False and not",
        "test_what_another_task_has_not_recorded_is_worth_a_retry",
        (FAILURES,),
    ),
    _defect(
        "the configured wait is not used",
        "execution/ledger_session.py",
        "            patience=configured_ledger_patience(),\n",
        "",
        "test_a_task_that_waited_in_vain_is_tried_again_and_then_fails_for_good",
        (LAPSE,),
    ),
    _defect(
        "PostgreSQL: an idle transaction keeps its lock",
        "ledger/postgres.py",
        "min(IDLE_SECONDS, self._wait)",
        "self._wait",
        "test_a_machine_that_vanished_keeps_others_waiting_for_seconds",
        (POSTGRES,),
    ),
    _defect(
        "PostgreSQL: whatever fails at the lock counts as busy",
        "ledger/postgres.py",
        "            if sql_state(error) != _LOCK_NOT_AVAILABLE:\n",
        "            if False:\n",
        "test_the_lock_of_a_server_that_goes_away_is_no_busy_one",
        (POSTGRES,),
    ),
    _defect(
        "SQLite: whatever fails at the lock counts as busy",
        "ledger/sqlite.py",
        '            if not (write and "locked" in str(error.orig)):\n',
        "            if not write:\n",
        "test_a_file_that_cannot_be_written_is_no_busy_one",
        (SQLITE,),
    ),
    _defect(
        "whatever fails at a commit is tried again",
        "sending/sender.py",
        "        if not isinstance(error, LedgerBusyError) or self._busy > MAX_BUSY:\n",
        "        if self._busy > MAX_BUSY:\n",
        "test_outcomes_are_recorded_once_the_ledger_answers_again",
        (SENDER,),
    ),
    _defect(
        "a lock is waited for without end",
        "sending/sender.py",
        "        if not isinstance(error, LedgerBusyError) or self._busy > MAX_BUSY:\n",
        "        if not isinstance(error, LedgerBusyError):\n",
        "test_a_lock_that_is_kept_for_minutes_ends_the_send",
        (SENDER,),
    ),
    _defect(
        "waits for a lock add up over hours",
        "sending/sender.py",
        "        self._unrecorded, self._busy = [], 0\n",
        "        self._unrecorded = []\n",
        "test_waits_for_a_lock_are_counted_in_a_row",
        (SENDER,),
    ),
    _defect(
        "outcomes are forgotten where a lock was not had",
        "sending/sender.py",
        '        log.warning("%s. Trying again, %d of %d times", error, self._busy, MAX_BUSY)\n',
        "        self._unrecorded = []\n",
        "test_a_lock_that_is_not_had_is_waited_for_again",
        (SENDER,),
    ),
    _defect(
        "what others sent counts as this attempt's",
        "ledger/preview.py",
        "if self._is_own(request_id) else (ACCEPTED, UNKNOWN)\n",
        "if True else (ACCEPTED, UNKNOWN)\n",
        "test_an_attempt_that_refuses_its_table_tells_what_earlier_ones_sent",
        (PREFLIGHT,),
    ),
    _defect(
        "what this attempt sent before it waited counts as others'",
        "ledger/preview.py",
        "if self._is_own(request_id) else (ACCEPTED, UNKNOWN)\n",
        "if False else (ACCEPTED, UNKNOWN)\n",
        "test_the_counts_are_of_the_whole_try",
        (PREFLIGHT,),
    ),
    _defect(
        "rows that repeat what this attempt sent are not counted",
        "execution/planning.py",
        "plan.duplicate + scan.own - (counts.listed or 0)",
        "plan.duplicate",
        "test_two_rows_of_an_unknown_message_are_one_message",
        (PREFLIGHT,),
    ),
    _defect(
        "people who may have been texted count as not sent where they are not texted again",
        "execution/planning.py",
        "plan.unknown + scan.again",
        "plan.unknown",
        "test_people_who_may_have_been_texted_stay_unknown_if_nothing_is_sent_again",
        ("tests/execution/test_planning.py",),
    ),
    _defect(
        "messages lost once before a wait are not sent again beside those lost twice",
        "ledger/request_queries.py",
        "            message.c.taken_from.is_not(None),\n",
        "",
        "test_what_was_lost_once_before_a_wait_is_posted_once_more",
        ("tests/execution/test_preflight.py",),
    ),
    _defect(
        "a row that repeats a lost message of before a wait counts as another one that was sent",
        "sending/reconciliation.py",
        "            if is_of_earlier_leg and outgoing.key in keys:\n",
        "            if False:\n",
        _REPEAT,
        ("tests/sending/test_lost_requests.py",),
    ),
    _defect(
        "each row of a person who has opted out since counts as a message that was sent",
        "sending/counts.py",
        "            self.accepted += len(keys)\n            self.duplicate += rows - len(keys)\n",
        "            self.accepted += rows\n",
        _REPEAT,
        ("tests/sending/test_lost_requests.py",),
    ),
    _defect(
        "what this attempt sent before it waited is forgotten where its ledger cannot be opened",
        "execution/attempt.py",
        "not (self._is_checked and self._has_replayed)",
        "not self._is_checked",
        "test_an_error_after_a_wait_in_the_middle_says_that_nothing_more_was_sent",
        ("tests/execution/test_preflight.py",),
    ),
)
"""All of them, in the order of the wait."""
