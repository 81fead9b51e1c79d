"""Defects of what closes lost requests by the balance: when it is read, what is closed, what is counted."""

from __future__ import annotations

from support.faults.mutation import BRAKES, Mutation

RECONCILIATION = "tests/sending/test_reconciliation.py"
LOST = "tests/sending/test_lost_requests.py"
SUMMARY = "tests/reporting/test_summary.py"
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
        "the balance is not read before it is asked what it proves",
        "            balance = self.observe()\n",
        "            balance = self._read_balance()\n",
        "test_a_balance_that_is_read_is_recorded",
        tests=LOST,
    ),
    _defect(
        "a reading of the balance is not recorded",
        "            record_reading(self._store, self._key, amount, asked_at)\n",
        "            pass\n",
        "test_a_balance_that_is_read_is_recorded",
        tests=LOST,
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
        "evidence of what stays unknown is not kept",
        "        self._note({each: kept[each] for each in kept if each not in decided})\n",
        "",
        "test_what_no_sum_decides_stays_unknown_and_the_rest_is_sent",
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
        "requests that are claimed after the reading are waited for",
        "            others &= _waited_for(found)\n",
        "            others = _waited_for(found)\n",
        "test_only_those_that_were_under_way_when_the_balance_was_read_are_waited_for",
        tests=LOST,
    ),
    _defect(
        "what was not charged for is not sent again",
        "                pending.reconcile(lost.messages, turned_away=True)\n",
        "                pass\n",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
    ),
    _defect(
        "what was closed counts as unknown, too",
        "                self._counts.remove_unknown(request_id, len(lost.messages), is_charged=is_taken)\n",
        "                pass\n",
        "test_a_request_that_was_charged_for_is_accepted",
    ),
    _defect(
        "a request that was given back counts as one",
        "        self.requests -= not is_charged\n",
        "",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
        "sending/counts.py",
    ),
    _defect(
        "what the balance closed is not counted",
        "                self._counts.reconciled += len(lost.messages)\n",
        "                pass\n",
        "test_a_request_that_was_charged_for_is_accepted",
    ),
    _defect(
        "what an earlier attempt sent counts as this one's",
        "        if not is_mine:\n            self.already_sent += messages\n            return\n",
        "",
        "test_a_request_of_a_killed_attempt_is_closed_once_it_has_lapsed",
        "sending/counts.py",
    ),
    _defect(
        "what a charged request cost is not counted",
        "        self.cost += cost or 0\n",
        "",
        "test_costs_and_parts_of_a_charged_request_are_counted",
        "sending/counts.py",
    ),
    _defect(
        "a request that was taken counts towards an outage",
        "                self._caution.took_a_lost_one()\n",
        "",
        "test_lost_responses_of_a_service_that_takes_requests_are_no_outage",
    ),
    _defect(
        "a request that was not taken does not count towards an outage",
        "            if evidence is not None and is_charged:\n                self._caution",
        "            self._caution.took_a_lost_one()\n            if evidence is not None and is_charged:\n"
        "                self._caution",
        "test_an_outage_still_ends_the_send",
    ),
    _defect(
        "an outage does not end a send that reconciles",
        "            self._fail(outage)\n",
        "            pass\n",
        "test_an_outage_still_ends_the_send",
        "sending/sender.py",
    ),
    _defect(
        "an unknown request of an earlier attempt is not looked at",
        "        return self._reconciliation is not None and request_id not in self._undecided\n",
        "        return False\n",
        "test_a_request_of_a_killed_attempt_is_closed_once_it_has_lapsed",
    ),
    _defect(
        "an unreadable balance is asked for without an end",
        "        if self._unreadable >= MAX_UNREADABLE:\n",
        "        if False:\n",
        "test_a_balance_that_cannot_be_read_is_asked_for_a_few_times",
        tests=LOST,
    ),
    _defect(
        "an unreadable balance holds back the rest",
        "        return bool(self._lost) and not self._unreadable\n",
        "        return bool(self._lost)\n",
        "test_a_balance_that_cannot_be_read_is_asked_for_a_few_times",
        tests=LOST,
    ),
    _defect(
        "a lost request is not kept for the balance",
        "            self._lost.add(request)\n",
        "            pass\n",
        "test_a_request_that_was_charged_for_is_accepted",
        "sending/sender.py",
    ),
    _defect(
        "requests go at once after the first response",
        "            self.on = self._answered_alone < self._calm\n",
        "            self.on = False\n",
        "test_requests_go_one_at_a_time_until_enough_were_answered",
        "sending/stop_conditions.py",
        BRAKES,
    ),
    _defect(
        "a lost response does not begin the calm anew",
        "        self._answered_alone = 0\n        self.lost_alone += alone\n",
        "        self.lost_alone += alone\n",
        "test_requests_go_one_at_a_time_until_enough_were_answered",
        "sending/stop_conditions.py",
        BRAKES,
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
    _defect(
        "a send that fails leaves unknown what the balance tells",
        "            self._settle_last(pending)\n",
        "",
        "test_a_send_that_fails_closes_what_was_lost_before_it_ends",
        "sending/sender.py",
    ),
    _defect(
        "a send that is stopped waits for a verdict",
        "            while self._lost.any and not (self._stop.is_set() or self._ledger_failed):\n",
        "            while self._lost.any and not self._ledger_failed:\n",
        "test_a_send_that_is_stopped_waits_for_no_verdict",
        "sending/sender.py",
    ),
    _defect(
        "what the balance told a request cost is forgotten after a wait",
        "response, parts=request.parts, cost=cost)\n",
        "response)\n",
        "test_what_the_balance_tells_of_a_request_is_counted_after_a_wait",
        "reporting/summary.py",
        SUMMARY,
    ),
    _defect(
        "a request of an earlier leg that was not charged counts as one of the attempt",
        "                self._counts.requests -= 1\n",
        "                pass\n",
        "test_a_request_of_an_earlier_leg_that_was_not_charged_counts_no_more",
        tests=LOST,
    ),
    _defect(
        "what an earlier leg lost counts as not sent where the check fails",
        "    lost = 0 if counts.seen.until else min(counts.lost, max(0, unreached))\n",
        "    lost = 0\n",
        "test_what_may_have_been_sent_is_unknown_before_any_row_is_looked_up",
        "reporting/summary.py",
        SUMMARY,
    ),
)
