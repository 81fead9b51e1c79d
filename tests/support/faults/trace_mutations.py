"""Defects of what a later attempt must find: its ledger, its campaign, and what was texted before."""

from __future__ import annotations

from support.faults.mutation import Mutation

CHANGED = "tests/operators/test_changed_texts.py"
EARLIER = "tests/sending/test_earlier.py"

TRACE_MUTATIONS = (
    Mutation(
        "another campaign's claims are forgotten",
        "sending/earlier.py",
        "gone.add(held.destinations[~(held.is_here & are_in(table, held.halves))])",
        "gone.add(held.destinations[held.is_here & ~are_in(table, held.halves)])",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "what other mapped copies texted is forgotten",
        "sending/earlier.py",
        "        return self._copies if changed else self._moved\n",
        "        return []\n",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "copies may not text one person different things",
        "sending/earlier.py",
        "        return self._copies if changed else self._moved\n",
        "        return self._copies\n",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "a table that was refused once is taken the next time",
        "sending/earlier.py",
        "if each.claimant_id in have_claimed] or planned[:1]",
        "if each.claimant_id in have_claimed] or planned[:1]\n    before = planned or before",
        (EARLIER,),
    ),
)
