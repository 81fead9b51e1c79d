"""Defects of what a later attempt must find: its ledger, its campaign, and what was texted before."""

from __future__ import annotations

from support.faults.mutation import Mutation

CHANGED = "tests/execution/test_changed_texts.py"
EARLIER = "tests/planning/test_changed_texts.py"
NAMES = "tests/ledger/test_campaign_names.py"
NAME_RULES = "tests/ledger/test_name_rules.py"
NAMES_IN_AIRFLOW = "tests/operators/test_campaign_names.py"
PURGE = "tests/ledger/test_purge.py"
TRACE = "tests/execution/test_ledger_session.py"

TRACE_MUTATIONS = (
    Mutation(
        "what others sent again may change",
        "ledger/attempts.py",
        "            yield select(*columns).select_from(former).where(theirs, request.c.state != NOT_SENT)\n",
        "",
        (EARLIER,),
        first="test_what_is_unknown_and_was_sent_again_by_others_may_not_change",
    ),
    Mutation(
        "the group of another account passes for this one's",
        "execution/group_attempt.py",
        "    if sender not in (None, settings.account):\n",
        "    if False:\n",
        ("tests/operators/test_group.py",),
        first="test_the_group_of_another_account_is_not_taken_for_this_one",
    ),
    Mutation(
        "another campaign's claims are forgotten",
        "planning/changed_texts.py",
        "gone.add(held.destinations[~(held.is_here & are_in(table, held.halves))])",
        "gone.add(held.destinations[held.is_here & ~are_in(table, held.halves)])",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "what other mapped copies texted is forgotten",
        "ledger/attempts.py",
        "        return self._copies if changed else self._moved\n",
        "        return []\n",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "copies may not text one person different things",
        "ledger/attempts.py",
        "        return self._copies if changed else self._moved\n",
        "        return self._copies\n",
        (EARLIER, CHANGED),
    ),
    Mutation(
        "a table that was refused once is taken the next time",
        "ledger/attempts.py",
        "if each.claimant_id in have_claimed] or planned[:1]",
        "if each.claimant_id in have_claimed] or planned[:1]\n    before = planned or before",
        (EARLIER,),
    ),
    Mutation(
        "a campaign of which an attempt waits is purged",
        "ledger/purge.py",
        "    waiting = [] if include_waiting else [old for old in others if old.waiting]\n",
        "    waiting: list[OldCampaign] = []\n",
        (PURGE, "tests/cli/test_write_commands.py"),
    ),
    Mutation(
        "what a leg waits for is not seen",
        "ledger/purge.py",
        "    return {row.campaign_id: row.state",
        "    return {} and {row.campaign_id: row.state",
        (PURGE,),
    ),
    Mutation(
        "a leg that has only begun lets go of its campaign",
        "ledger/purge.py",
        ".where(claimant.c.try_number > 0, claimant.c.id.in_(select(progress.c.claimant_id)))",
        ".where(claimant.c.try_number > 0)",
        (PURGE,),
    ),
    Mutation(
        "an attempt does not hold its campaign while it reads its source",
        "execution/attempt.py",
        "        session.hold(self._campaign, task.sms_conn_id)\n",
        "",
        (TRACE,),
    ),
    Mutation(
        "a purge that ended as the attempt began is not noticed",
        "execution/ledger_session.py",
        "        if high_water(self.store, self.who).is_below(self.held):\n",
        "        if False:\n",
        (TRACE,),
    ),
    Mutation(
        "a leg after a wait takes any ledger in a first try",
        "execution/ledger_session.py",
        "    return NOT_KNOWN if resumed or who.try_number > 1 else None\n",
        "    return NOT_KNOWN if who.try_number > 1 else None\n",
        (TRACE,),
    ),
    Mutation(
        "a leg after a wait takes the trace of another try",
        "execution/ledger_session.py",
        "has_trace(store, who, of_attempt=resumed)",
        "has_trace(store, who)",
        (TRACE,),
    ),
    Mutation(
        "a ledger that went back is taken",
        "execution/ledger_session.py",
        "if was is not None and held.is_below(was) and",
        "if was is not None and not held and",
        (TRACE,),
    ),
    Mutation(
        "other requests make up for those that were lost",
        "ledger/attempts.py",
        "return self.highest < other.highest or self.requests < other.requests",
        "return self.highest < other.highest and self.requests < other.requests",
        (TRACE,),
    ),
    Mutation(
        "an adoption holds for ever",
        "execution/ledger_session.py",
        "(adopted_at(store, who) or 0.0) <= marker.noted_at:",
        "adopted_at(store, who) is None:",
        (TRACE,),
    ),
    Mutation(
        "nobody can answer for a ledger that went back",
        "execution/ledger_session.py",
        " and (adopted_at(store, who) or 0.0) <= marker.noted_at:",
        ":",
        (TRACE,),
    ),
    Mutation(
        "how far the ledger is goes unnoted while it sends",
        "execution/ledger_session.py",
        "            if self._raise():\n",
        "            if False:\n",
        (TRACE,),
    ),
    Mutation(
        "an attempt that waits leaves no XCom",
        "execution/ledger_session.py",
        "                mark.leave_for_next_leg()\n",
        "                pass\n",
        (TRACE,),
        first="test_a_leg_after_a_wait_finds_what_the_leg_before_it_sent",
    ),
    Mutation(
        "a note that a clear may discard proves something",
        "execution/ledger_session.py",
        "version < DISCARDS_ON_CLEAR and",
        "",
        (TRACE,),
    ),
    Mutation(
        "two tasks have one campaign by default",
        "ledger/name_rules.py",
        'return f"{who.dag_id}/{who.task_id}/{who.run_id}"',
        'return f"{who.dag_id}.{who.task_id}.{who.run_id}"',
        (NAMES,),
    ),
    Mutation(
        "a campaign may be called None",
        "ledger/name_rules.py",
        'if given is None or (isinstance(given, str) and given.strip() == "None"):',
        "if given is None:",
        (NAME_RULES, NAMES_IN_AIRFLOW),
    ),
    Mutation(
        "a template that renders to None itself is no campaign's name, and the default is taken",
        "operators/base.py",
        "        return self._is_named or self.campaign is not None\n",
        "        return self.campaign is not None\n",
        (NAMES_IN_AIRFLOW,),
    ),
)
