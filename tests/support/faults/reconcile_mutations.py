"""Defects of what closes lost requests by the balance: when it is read, what is closed, what is counted."""

from __future__ import annotations

from support.faults.mutation import Mutation

RECONCILIATION = "tests/sending/test_reconciliation.py"
LOST = "tests/sending/test_lost_requests.py"
MODULE = "sending/reconciliation.py"


def _defect(name: str, old: str, new: str, first: str, file: str = MODULE, tests: str = RECONCILIATION) -> Mutation:
    return Mutation(name, file, old, new, (tests,), first=first)


RECONCILE_MUTATIONS = (
    _defect(
        "what is not settled is left unknown",
        "                if evidence.settles_at is None:\n",
        "                if True:\n",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
    ),
    _defect(
        "a post-paid account is judged by its balance",
        "        if balance.post_paid:\n",
        "        if False:\n",
        "test_the_balance_of_a_post_paid_account_decides_nothing",
        tests=LOST,
    ),
    _defect(
        "undecided counts as not charged for",
        "            if evidence.verdict != UNDECIDED\n        }\n",
        "        }\n",
        "test_what_no_sum_decides_stays_unknown_and_the_rest_is_sent",
    ),
    _defect(
        "what was charged for is given back",
        "            each: (ACCEPTED if evidence.verdict == CHARGED else NOT_SENT, ",
        "            each: (NOT_SENT, ",
        "test_a_request_that_was_charged_for_is_accepted",
    ),
    _defect(
        "what was not charged for is accepted",
        "            each: (ACCEPTED if evidence.verdict == CHARGED else NOT_SENT, ",
        "            each: (ACCEPTED, ",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
    ),
    _defect(
        "a person who was faster is not obeyed",
        " if each in closed or each not in decided}\n",
        "}\n",
        "test_a_request_that_has_an_outcome_by_then_is_not_told_of",
        tests=LOST,
    ),
    _defect(
        "another task's request is not waited for",
        "        while wait and others and not self._stop.is_set():\n",
        "        while False:\n",
        "test_a_request_of_another_task_is_waited_for",
    ),
    _defect(
        "an unreadable balance holds back the rest",
        "        return bool(self._lost) and not self._unreadable\n",
        "        return bool(self._lost)\n",
        "test_a_balance_that_cannot_be_read_is_asked_for_a_few_times",
        tests=LOST,
    ),
    _defect(
        "a balance is read while a request is in flight",
        "            if self._claiming and not (self._in_flight or self._unrecorded):\n",
        "            if self._claiming and not self._unrecorded:\n",
        "test_the_balance_is_not_read_while_a_request_is_in_flight",
        "sending/sender.py",
    ),
    _defect(
        "requests are claimed before there is a verdict",
        "        if self._lost.waiting:\n            return batches\n",
        "",
        "test_nothing_is_posted_before_there_is_a_verdict",
        "sending/sender.py",
    ),
)
