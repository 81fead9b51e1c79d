"""Defects of what the balance tells: the order of what was seen, what it fell by, and what explains that."""

from __future__ import annotations

from support.faults.mutation import EVIDENCE, Mutation

FILE = "sending/evidence.py"

EVIDENCE_MUTATIONS = (
    Mutation(
        "every movement is quiet",
        FILE,
        "last_ends[index] < next_begins[index],",
        "True,",
        (EVIDENCE,),
        first="test_a_top_up_between_responses_that_overlap",
    ),
    Mutation(
        "a contradiction is no doubt",
        FILE,
        "        if contradiction:\n",
        "        if False:\n",
        (EVIDENCE,),
        first="test_somebody_else_spends_more_than_a_request_costs",
    ),
    Mutation(
        "a doubt does not spread",
        FILE,
        "        if inside:\n",
        "        if False:\n",
        (EVIDENCE,),
        first="test_a_top_up_between_responses_that_overlap",
    ),
    Mutation(
        "no balance before or after is needed",
        FILE,
        "any(each.fall is None for each in self.movements)",
        "False",
        (EVIDENCE,),
        first="test_no_balance_before",
    ),
    Mutation(
        "a balance from before is not needed",
        FILE,
        "any(each.fall is None for each in self.movements)",
        "any(each.fall is None for each in self.movements[1:])",
        (EVIDENCE,),
        first="test_no_balance_before",
    ),
    Mutation(
        "a balance from after is not needed",
        FILE,
        "any(each.fall is None for each in self.movements)",
        "any(each.fall is None for each in self.movements[:1])",
        (EVIDENCE,),
        first="test_no_balance_after",
    ),
    Mutation(
        "noise may be a charge",
        FILE,
        "(most > NOISE and",
        "(most >= NOISE and",
        (EVIDENCE,),
        first="test_what_is_needed_is_more_than_noise",
    ),
    Mutation(
        "what is not settled may not be charged for",
        FILE,
        "return case.is_open_ended or (",
        "return (",
        (EVIDENCE,),
        first="test_no_balance_after",
    ),
    Mutation(
        "a request explains each fall in full",
        FILE,
        "                    left[position] -= share\n",
        "",
        (EVIDENCE,),
        first="test_two_falls_need_two_requests",
    ),
    Mutation(
        "what may be free was not taken",
        FILE,
        "case not in component.possible and not case.may_be_free",
        "case not in component.possible",
        (EVIDENCE,),
        first="test_a_request_that_may_cost_nothing",
    ),
    Mutation(
        "what may have been charged for was taken",
        FILE,
        "    if case in component.needed and component.least(case) >=",
        "    if case in component.possible and component.falls and component.total >=",
        (EVIDENCE,),
        first="test_some_of_a_burst",
    ),
    Mutation(
        "any charge is enough",
        FILE,
        "return max(request.least, (request.whole or _ZERO) * LEAST_SHARE)",
        "return _ZERO",
        (EVIDENCE,),
        first="test_less_than_half_of_a_request",
    ),
)
