"""Defects of what a later attempt must find: its ledger, its campaign, and what was texted before."""

from __future__ import annotations

from support.faults.mutation import Mutation

CHANGED = "tests/operators/test_changed_texts.py"
EARLIER = "tests/sending/test_earlier.py"
PURGE = "tests/sending/test_purge.py"
TRACE = "tests/operators/test_trace.py"

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
    Mutation(
        "a campaign of which an attempt waits is purged",
        "cli/deciding.py",
        "    waiting = [] if include_waiting else [old for old in others if old.waiting]\n",
        "    waiting: list[OldCampaign] = []\n",
        ("tests/cli/test_deciding.py",),
    ),
    Mutation(
        "what a leg waits for is not seen",
        "sending/purge.py",
        "    waits.update((number, state)",
        "    dict((number, state)",
        (PURGE,),
    ),
    Mutation(
        "a leg after a wait takes any ledger in a first try",
        "operators/trace.py",
        "    return NOT_KNOWN if resumed or who.try_number > 1 else None\n",
        "    return NOT_KNOWN if who.try_number > 1 else None\n",
        (TRACE,),
    ),
    Mutation(
        "a leg after a wait takes the trace of another try",
        "operators/trace.py",
        "has_trace(store, who, of_attempt=resumed)",
        "has_trace(store, who)",
        (TRACE,),
    ),
    Mutation(
        "a ledger that went back is taken",
        "operators/trace.py",
        "if was is not None and held.is_below(was) and",
        "if was is not None and not held and",
        (TRACE,),
    ),
    Mutation(
        "other requests make up for those that were lost",
        "sending/high_water.py",
        "return self.highest < other.highest or self.requests < other.requests",
        "return self.highest < other.highest and self.requests < other.requests",
        (TRACE,),
    ),
    Mutation(
        "an adoption holds for ever",
        "operators/trace.py",
        "(adopted_at(store, who) or 0.0) <= marker.noted_at:",
        "adopted_at(store, who) is None:",
        (TRACE,),
    ),
    Mutation(
        "nobody can answer for a ledger that went back",
        "operators/trace.py",
        " and (adopted_at(store, who) or 0.0) <= marker.noted_at:",
        ":",
        (TRACE,),
    ),
    Mutation(
        "how far the ledger is goes unnoted while it sends",
        "operators/trace.py",
        "            if self._raise():\n",
        "            if False:\n",
        (TRACE,),
    ),
    Mutation(
        "an attempt that waits leaves no XCom",
        "operators/entry.py",
        "                mark.park()\n",
        "                pass\n",
        (TRACE,),
    ),
    Mutation(
        "a note that a clear may discard proves something",
        "operators/trace.py",
        "version < DISCARDS_ON_CLEAR and",
        "",
        (TRACE,),
    ),
)
