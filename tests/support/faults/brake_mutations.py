"""Defects of what is asked before the first text, of what ends a send early, and of going on after a wait."""

from __future__ import annotations

from support.faults.mutation import BRAKES, SENDER, Mutation

PLAN = "tests/execution/test_planning.py"

BRAKE_MUTATIONS = (
    Mutation(
        "an approval holds for the same texts under another key",
        "messages/keys.py",
        "blake2b(bytes(keys[start : start + KEY_BYTES]) + text.encode(), ",
        "blake2b(text.encode(), ",
        ("tests/planning/test_plan.py",),
        first="test_the_plan_is_named_by_its_messages",
    ),
    Mutation(
        "a sender that has halted goes on claiming",
        "sending/sender.py",
        " and self.stop_conditions.stop_reason is None\n",
        "\n",
        (BRAKES,),
        first="test_a_send_that_has_halted_claims_nothing_more",
    ),
    Mutation(
        "bad answers are counted and never too many",
        "sending/stop_conditions.py",
        "        if seen >= FIRST_JUDGED and errors > limit * seen:\n",
        "        if seen < FIRST_JUDGED and errors > seen:\n",
        (BRAKES, PLAN),
        first="test_too_many_bad_answers_stop_the_send",
    ),
    Mutation(
        "suppressed numbers are texted",
        "planning/check.py",
        "        if suppressed is not None:\n",
        "        if suppressed is not None and False:\n",
        (PLAN,),
        first="test_an_earlier_report_suppresses",
    ),
    Mutation(
        "what a pause keeps back is forgotten",
        "sending/sender.py",
        "note_pause(self._ledger.paused):\n            self._defer(batches)\n",
        "note_pause(self._ledger.paused):\n",
        (BRAKES,),
        first="test_a_paused_campaign_claims_nothing_until_it_is_resumed",
    ),
    Mutation(
        "an outage does not slow a send down",
        "sending/stop_conditions.py",
        "        self.on = self.asks = True\n",
        "        self.asks = True\n",
        (BRAKES,),
        first="test_an_outage_costs_a_handful_of_requests",
    ),
    Mutation(
        "a 503 is posted again as often as a 429",
        "sending/outcomes.py",
        "            and batch.unavailable < MAX_UNAVAILABLE\n",
        "",
        (SENDER,),
        first="test_a_503_of_the_service_is_posted_three_times_at_most",
    ),
    Mutation(
        "a request of which nobody was taken counts as accepted",
        "sending/outcomes.py",
        "        state=NOT_SENT if none_taken else ACCEPTED,\n",
        "        state=ACCEPTED,\n",
        (SENDER,),
        first="test_a_request_of_which_nobody_was_taken_is_not_sent",
    ),
)
