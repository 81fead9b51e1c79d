"""Defects of what is asked before the first text, of what ends a send early, and of going on after a wait."""

from __future__ import annotations

from support.faults.mutation import BRAKES, CLEARANCE, SCHEDULES, SENDER, Mutation

ALIVE = "tests/operators/test_alive.py"
APPROVAL = "tests/operators/test_approval.py"
APPROVALS = "tests/sending/test_approvals.py"
PARKED = "tests/sending/test_parked.py"
PLAN = "tests/operators/test_plan.py"

BRAKE_MUTATIONS = (
    Mutation(
        "a claim does not look at the hours",
        "sending/departures.py",
        "        late = self._brakes.too_late(batch.messages)\n",
        "        late = []\n",
        (BRAKES, CLEARANCE),
        first="test_nothing_is_claimed_outside_of_the_hours",
    ),
    Mutation(
        "whom it is too late to text is counted, and texted",
        "sending/departures.py",
        "if outgoing.key not in kept_back]",
        "if kept_back]",
        (BRAKES, CLEARANCE),
        first="test_each_recipient_has_hours_of_their_own",
    ),
    Mutation(
        "what is under way costs nothing",
        "sending/brakes.py",
        "        if self.balance - sum(self._under_way.values()) < cost:\n",
        "        if self.balance < cost:\n",
        (BRAKES, CLEARANCE),
        first="test_several_requests_at_once_spend_the_same_credit",
    ),
    Mutation(
        "a sender that has halted goes on claiming",
        "sending/sender.py",
        " and self.brakes.halt is None\n",
        "\n",
        (BRAKES,),
        first="test_a_send_that_has_halted_claims_nothing_more",
    ),
    Mutation(
        "a sender that has halted does not wait for what is under way",
        "sending/sender.py",
        "                    while self._flying or (",
        "                    while (self._flying and self.brakes.halt is None) or (",
        (BRAKES,),
        first="test_what_is_under_way_when_a_send_halts_is_recorded",
    ),
    Mutation(
        "bad answers are counted and never too many",
        "sending/brakes.py",
        "        if seen >= FIRST_JUDGED and errors > limit * seen:\n",
        "        if seen < FIRST_JUDGED and errors > seen:\n",
        (BRAKES, PLAN),
        first="test_too_many_bad_answers_stop_the_send",
    ),
    Mutation(
        "suppressed numbers are texted",
        "sending/table.py",
        "        sendable = prepared if suppressed is None else ",
        "        sendable = prepared if True else ",
        (PLAN,),
        first="test_an_earlier_report_suppresses",
    ),
    Mutation(
        "suppressed rows are in no count",
        "sending/backlog.py",
        "        self._tally.suppressed += self._block.suppressed\n",
        "",
        (PLAN,),
        first="test_an_earlier_report_suppresses",
    ),
    Mutation(
        "what a try sent before it waited counts as sent by another",
        "sending/backlog.py",
        "        elif holder.state == ACCEPTED and holder.request_id in self._tally.replayed_requests:\n"
        "            self._tally.met += 1\n",
        "",
        (CLEARANCE,),
        first="test_the_counts_are_of_the_whole_try",
    ),
    Mutation(
        "what an earlier part sends beside its successor counts as repeated",
        "sending/backlog.py",
        "        elif holder.state == ACCEPTED and holder.request_id in self._tally.replayed_requests:\n",
        "        elif holder.state == ACCEPTED and holder.parked:\n",
        (PARKED, SCHEDULES),
        first="test_what_an_earlier_part_sends_beside_its_successor_is_no_repeat",
    ),
    Mutation(
        "what an earlier part loses beside its successor is not said",
        "sending/backlog.py",
        "            self._tally.met_lost += holder.request_id in self._tally.lost_requests\n",
        "            self._tally.met_lost += holder.parked\n",
        (PARKED, SCHEDULES),
        first="test_what_an_earlier_part_sends_beside_its_successor_is_no_repeat",
    ),
    Mutation(
        "what a try sent before it waited is not counted again",
        "operators/bulk_try.py",
        "            replay(ledger, self._tally)\n",
        "            pass\n",
        (CLEARANCE,),
        first="test_the_counts_are_of_the_whole_try",
    ),
    Mutation(
        "who approved one plan has approved any",
        "operators/clearance.py",
        "            if meant == plan.id and plan.to_send <= shown:\n",
        "            if verdict.send:\n",
        (APPROVAL,),
        first="test_a_source_that_has_changed_is_asked_about_again",
    ),
    Mutation(
        "who approved some messages has approved more",
        "operators/clearance.py",
        "            if meant == plan.id and plan.to_send <= shown:\n",
        "            if meant == plan.id:\n",
        (APPROVAL,),
        first="test_an_approval_is_of_no_more_people_than_were_shown",
    ),
    Mutation(
        "an approval holds for more messages, too",
        "sending/approvals.py",
        " and messages <= (self.messages or 0)\n",
        "\n",
        (APPROVALS,),
        first="test_an_approval_is_of_one_plan_and_no_more_messages",
    ),
    Mutation(
        "an approval holds for any plan",
        "sending/approvals.py",
        " and self.plan_id == plan_id",
        "",
        (APPROVALS,),
        first="test_an_approval_is_of_one_plan_and_no_more_messages",
    ),
    Mutation(
        "what a pause keeps back is forgotten",
        "sending/sender.py",
        "        if batches and self.brakes.pulled(self._ledger.paused):\n            self._put_off(batches)\n",
        "        if batches and self.brakes.pulled(self._ledger.paused):\n",
        (BRAKES,),
        first="test_a_paused_campaign_claims_nothing_until_it_is_resumed",
    ),
    Mutation(
        "whoever is capped is claimed again and again",
        "sending/flights.py",
        " | {every[position].key for position in capped}\n",
        "\n",
        (SENDER,),
        first="test_whoever_is_capped_is_counted_once_and_left_alone",
    ),
    Mutation(
        "whoever is capped is in no count",
        "sending/sender.py",
        "                self.tally.add_capped(outgoing.row)\n",
        "                pass\n",
        (SENDER,),
        first="test_whoever_is_capped_is_counted_once_and_left_alone",
    ),
    Mutation(
        "a task does not look whether it is still to run",
        "operators/delivery.py",
        "            alive.beat()\n",
        "",
        (ALIVE,),
        first="test_a_task_that_was_taken_away_claims_nothing_more",
    ),
    Mutation(
        "a task waits before it has told what it sent",
        "operators/delivery.py",
        "        self.finish(ledger, sender.error)\n",
        "",
        (CLEARANCE,),
        also=(
            "        self._conclude(ledger.campaign_name, sender)\n",
            "        self._conclude(ledger.campaign_name, sender)\n        self.finish(ledger, sender.error)\n",
        ),
        first="test_while_it_waits_in_the_middle_the_summary_tells_what_was_sent",
    ),
)
