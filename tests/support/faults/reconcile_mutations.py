"""Defects of what closes lost requests by the balance: when it is read, what is closed, what is held back."""

from __future__ import annotations

from support.faults.mutation import Mutation

SETTLE = "tests/sending/test_settle.py"
MODULE = "sending/settle.py"


def _defect(name: str, old: str, new: str, first: str, file: str = MODULE, tests: str = SETTLE) -> Mutation:
    return Mutation(name, file, old, new, (tests,), first=first)


RECONCILE_MUTATIONS = (
    _defect(
        "what is not settled is left unknown",
        "verdict.settles_at is not None and now <=",
        "False and now <=",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
    ),
    _defect(
        "a post-paid account is judged by its balance",
        "_POST_PAID if self._is_post_paid and its.words else its",
        "its",
        "test_a_post_paid_account_proves_nothing",
    ),
    _defect(
        "undecided counts as not charged for",
        "for each, verdict in found.items() if verdict.outcome != UNDECIDED}",
        "for each, verdict in found.items()}",
        "test_what_no_sum_decides_stays_unknown_and_the_rest_is_sent",
    ),
    _defect(
        "what was charged for is given back",
        "ACCEPTED if verdict.outcome == CHARGED else NOT_SENT",
        "NOT_SENT",
        "test_a_request_that_was_charged_for_is_accepted",
    ),
    _defect(
        "what was not charged for is accepted",
        "ACCEPTED if verdict.outcome == CHARGED else NOT_SENT",
        "ACCEPTED",
        "test_a_request_that_was_not_charged_for_is_sent_by_the_same_attempt",
    ),
    _defect(
        "a person who was faster is not obeyed",
        " if each in closed or each not in decided}\n",
        "}\n",
        "test_a_request_that_has_an_outcome_by_then_is_not_told_of",
    ),
    _defect(
        "what another task lost is not waited for",
        "        return self._doubt is not None\n",
        "        return False\n",
        "test_what_another_task_lost_is_waited_for",
    ),
    _defect(
        "a balance that is not quiet is waited for for ever",
        "now <= verdict.settles_at + QUIET_SECONDS:",
        "True:",
        "test_a_task_that_is_never_quiet_is_not_waited_for_for_ever",
    ),
    _defect(
        "a balance that cannot be read is read for long",
        "MAX_UNREADABLE = 4\n",
        "MAX_UNREADABLE = 9\n",
        "test_nothing_is_posted_while_the_balance_cannot_be_read",
    ),
    _defect(
        "requests are claimed before there is a verdict",
        "            return not (self.lost or self._holds())\n",
        "            return True\n",
        "test_nothing_is_posted_before_there_is_a_verdict",
        "sending/sender.py",
    ),
    _defect(
        "requests are claimed while another task's is in doubt",
        "            return not (self.lost or self._holds())\n",
        "            return not self.lost\n",
        "test_what_another_task_lost_is_waited_for",
        "sending/sender.py",
    ),
)
