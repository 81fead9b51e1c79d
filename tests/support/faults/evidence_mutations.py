"""Defects of what the balance tells: which readings are quiet, what explains a fall, and what casts doubt."""

from __future__ import annotations

from support.faults.mutation import EVIDENCE, Mutation

FILE = "sending/evidence.py"
READS = "ledger/balances.py"
BALANCES = "tests/ledger/test_balances.py"


def _defect(name: str, old: str, new: str, first: str, file: str = FILE, tests: str = EVIDENCE) -> Mutation:
    return Mutation(name, file, old, new, (tests,), first=first)


EVIDENCE_MUTATIONS = (
    _defect(
        "every reading is quiet",
        "if each.closed_at > reading.asked_at]",
        "if False]",
        "test_a_reading_beside_a_request_is_not_quiet",
    ),
    _defect(
        "what is not settled was not taken",
        "            if still_open and not window.all_taken:\n",
        "            if False:\n",
        "test_a_charge_is_seen_at_once_that_there_was_none_only_at_the_deadline",
    ),
    _defect(
        "a part of a charge is seen at once",
        "        return whole and self.is_explained",
        "        return self.is_explained",
        "test_a_part_of_a_charge_is_not_seen_at_once",
    ),
    _defect(
        "a balance from before is not needed",
        "each.stated is not None or before is None for each",
        "each.stated is not None for each",
        "test_a_first_balance_beside_a_lost_request_is_not_quiet",
    ),
    _defect(
        "what nobody explains is explained",
        "        if not self.is_explained:\n",
        "        if False:\n",
        "test_a_charge_is_half_of_the_least_or_more_and_at_most_the_most",
    ),
    _defect(
        "a top-up hides nothing",
        "        if self.residual < -NOISE:\n",
        "        if False:\n",
        "test_a_top_up_decides_nothing",
    ),
    _defect(
        "what nobody explains casts no doubt",
        "_doubt(window, each, strange) or window.verdict(each)",
        "window.verdict(each)",
        "test_what_nobody_explains_makes_an_hour_doubtful",
    ),
    _defect(
        "doubt has no end",
        "        nearby = follows and ",
        "        nearby = follows or ",
        "test_what_nobody_explains_makes_an_hour_doubtful",
    ),
    _defect(
        "what may have been charged for was taken",
        "        return request in self.possible and self.residual - others >=",
        "        return request in self.possible and self.residual >=",
        "test_requests_of_one_window_share_a_sum",
    ),
    _defect(
        "what may be free was not taken",
        "request not in self.possible and request.least > NOISE",
        "request not in self.possible",
        "test_a_request_that_may_be_free_is_never_called_not_taken",
    ),
    _defect(
        "any charge is enough",
        "return max(request.least * LEAST_SHARE, 2 * NOISE)",
        "return 2 * NOISE",
        "test_a_charge_is_half_of_the_least_or_more_and_at_most_the_most",
    ),
    _defect(
        "no charge is enough",
        "return max(request.least * LEAST_SHARE, 2 * NOISE)",
        "return request.least * LEAST_SHARE",
        "test_a_request_that_may_be_free_is_never_called_not_taken",
    ),
    _defect(
        "a person's decision is a response",
        "row.state == NOT_SENT and row.decided_at is None",
        "row.state == NOT_SENT",
        "test_what_has_no_response_may_have_been_charged",
        READS,
        BALANCES,
    ),
    _defect(
        "a purge leaves balances from before its charges",
        "        balances = connection.execute(delete(balance).where(balance.c.read_at < before)).rowcount\n",
        "        balances = 0\n",
        "test_what_a_purge_deletes_is_blamed_on_no_request",
        "ledger/purge.py",
        BALANCES,
    ),
)
