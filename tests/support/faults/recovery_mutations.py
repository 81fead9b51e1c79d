"""Defects of what is kept where the ledger does not take it, and of recording that later."""

from __future__ import annotations

from support.faults.mutation import Mutation

FLUSH = "tests/sending/test_flush.py"
RECOVERY = "tests/ledger/test_recovery.py"
KEPT = "tests/sending/test_unrecorded.py"
ATTEMPTS = "tests/execution/test_recovery.py"

RECOVERY_MUTATIONS = (
    Mutation(
        "a file is recorded in any ledger",
        "ledger/recovery.py",
        '    if registered(store, origin.claimant["id"]) != origin.claimant:\n',
        "    if False:\n",
        (RECOVERY,),
        first="test_a_ledger_with_another_attempt_in_its_place_is_refused",
    ),
    Mutation(
        "a file is recorded though the ledger lost a request",
        "ledger/recovery.py",
        "        if missing is None and (lost := sorted(set(wanted).difference(states))):\n",
        "        if missing is None and (lost := []):\n",
        (RECOVERY,),
        first="test_a_ledger_that_lost_a_request_is_refused",
    ),
    Mutation(
        "a purged campaign is made anew for a file",
        "ledger/recovery.py",
        "            if find_campaign(connection, origin.campaign) is None:\n",
        "            if False:\n",
        (RECOVERY,),
        first="test_a_purged_campaign_is_refused",
    ),
    Mutation(
        "a response with a known event id is believed in a file",
        "ledger/recovery.py",
        "        if event_id is not None and (event_id in seen or ledger.has_event(event_id)):\n",
        "        if event_id is not None and event_id in seen:\n",
        (RECOVERY,),
        first="test_a_response_with_the_event_id_of_another_request_proves_nothing",
    ),
    Mutation(
        "two responses of a file with one event id are believed",
        "ledger/recovery.py",
        "            seen.add(event_id)\n",
        "            pass\n",
        (RECOVERY,),
        first="test_two_responses_of_a_file_with_one_event_id_are_not_both_believed",
    ),
    Mutation(
        "a late response of a file counts for no frequency cap",
        "ledger/recovery.py",
        "        cap=origin.cap,\n",
        "        cap=None,\n",
        (RECOVERY,),
        first="test_a_late_response_counts_for_the_frequency_cap",
    ),
    Mutation(
        "a late response of a file takes no message back",
        "ledger/recovery.py",
        "        chunk = Chunk(keys, destinations)\n",
        "        pass\n",
        (RECOVERY,),
        first="test_a_late_response_takes_its_messages_back",
    ),
    Mutation(
        "claims that nobody posted stay claimed",
        "ledger/recovery.py",
        "for each in unrecorded.unposted if each in states]",
        "for each in ()]",
        (RECOVERY,),
        first="test_a_claim_that_was_surely_not_posted_is_given_back",
    ),
    Mutation(
        "a file has the numbers of every request",
        "ledger/recovery.py",
        "    if chunk is None or outcome.state != ACCEPTED:\n",
        "    if chunk is None:\n",
        (RECOVERY,),
        first="test_a_file_has_the_numbers_of_accepted_requests_alone",
    ),
    Mutation(
        "a wrong value of a file is recorded",
        "ledger/recovery.py",
        "    if state == CLAIMED:\n",
        "    if False:\n",
        (RECOVERY,),
        first="test_a_file_with_a_wrong_value_is_refused",
    ),
    Mutation(
        "what waits for the ledger is kept in no file",
        "sending/unrecorded.py",
        "self._monotonic() - oldest.at >= PATIENCE_SECONDS",
        "False",
        (KEPT,),
        first="test_a_response_that_waits_for_the_ledger_is_kept_in_a_file",
    ),
    Mutation(
        "a send that is told to stop keeps nothing at once",
        "sending/unrecorded.py",
        "        if is_due or self._stop.is_set():\n",
        "        if is_due:\n",
        (KEPT,),
        first="test_a_send_that_is_told_to_stop_keeps_at_once",
    ),
    Mutation(
        "the old file goes before the new one is there",
        "sending/unrecorded.py",
        "                before, self._path = self._path, self._write_new(self._place, kept) if kept else None\n",
        "                before, self._path = self._path, None\n"
        "                before = before and before.unlink(missing_ok=True)\n"
        "                self._path = self._write_new(self._place, kept) if kept else None\n",
        (KEPT,),
        first="test_the_old_file_goes_after_the_new_one_is_there",
    ),
    Mutation(
        "a contradiction is kept as a response",
        "sending/unrecorded.py",
        "refuse_contradiction(each.result)",
        "each.result",
        (KEPT,),
        first="test_the_file_holds_every_end_of_a_request",
    ),
    Mutation(
        "a response is kept once the sender has it",
        "sending/sender.py",
        "        self._recovery.add(request, result)\n",
        "",
        (KEPT,),
        first="test_a_response_is_kept_while_the_sender_waits_for_the_ledger",
    ),
    Mutation(
        "claims of a commit that raised are not kept",
        "sending/sender.py",
        "            self._recovery.add_unposted(self._ledger.in_doubt)\n",
        "",
        (KEPT,),
        first="test_claims_of_a_commit_that_raised_are_kept_as_unposted",
    ),
    Mutation(
        "a stopped send posts what it has claimed",
        "sending/sender.py",
        "            if self._stop.is_set():\n",
        "            if False:\n",
        (KEPT,),
        first="test_a_request_that_has_not_begun_when_the_send_is_told_to_stop_is_given_back",
    ),
    Mutation(
        "a stopped send tries to record for as long as any",
        "sending/flush.py",
        "            until, stopped = monotonic() + STOPPED_SECONDS, True\n",
        "            stopped = True\n",
        (FLUSH,),
        first="test_a_send_that_is_told_to_stop_leaves_soon",
    ),
    Mutation(
        "the next attempt records no file",
        "execution/ledger_session.py",
        "        record_files(store)\n",
        "",
        (ATTEMPTS,),
        first="test_the_next_attempt_records_what_the_last_one_left",
    ),
    Mutation(
        "a file that was not recorded is removed",
        "execution/recovery.py",
        "    recorded = record(store, unrecorded)\n    path.unlink(missing_ok=True)\n",
        "    path.unlink(missing_ok=True)\n    recorded = record(store, unrecorded)\n",
        (ATTEMPTS,),
        first="test_files_that_do_not_fit_end_no_attempt",
    ),
)
