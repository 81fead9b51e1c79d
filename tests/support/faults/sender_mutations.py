"""Defects of what sends: the order of claim and POST, what an outcome means, what is sent again, what is counted."""

from __future__ import annotations

from support.faults.mutation import CLIENT, COUNTS, KEYS, LAPSE, SCHEDULES, SENDER, SETTLE, Mutation

SENDER_MUTATIONS = (
    Mutation(
        "the claim is made after the POST",
        "sending/sender.py",
        "        try:\n            chunks = [batch.messages for batch in batches]\n",
        "        self.early = {}\n"
        "        for batch in batches:\n"
        "            try:\n"
        "                self.early[id(batch)] = self._post(batch.messages)\n"
        "            except BaseException as error:\n"
        "                self.early[id(batch)] = error\n"
        "        try:\n            chunks = [batch.messages for batch in batches]\n",
        also=(
            "            result = self._post(request.batch.messages)\n",
            (
                "            result = self.early[id(request.batch)]\n"
                "            if isinstance(result, BaseException):\n"
                "                raise result\n"
            ),
        ),
        first="test_a_message_is_posted_only_after_its_claim_is_durable",
    ),
    Mutation(
        "hours that end during a claim do not count",
        "sending/sender.py",
        "            if self.stop_conditions.have_ended(request.batch.messages):\n",
        "            if False:\n",
        ("tests/sending/test_stop_conditions.py",),
        first="test_hours_that_end_while_the_ledger_is_busy_end_for_what_it_claims",
    ),
    Mutation(
        "a read timeout is posted again",
        "service/transport.py",
        "            if exchange.written:\n",
        "            if exchange.written and not isinstance(error, TimeoutError):\n",
        (CLIENT, SCHEDULES),
    ),
    Mutation(
        "a request is written again on another connection",
        "service/connections.py",
        "        connection = self._idle_connection(exchange) or self._open(exchange)\n",
        "        connection = self._idle_connection(exchange) or self._open(exchange)\n"
        "        write(connection.sock, request, exchange, self._timeout)\n"
        "        connection = self._open(exchange)\n",
        (CLIENT, SCHEDULES),
    ),
    Mutation(
        "a message is keyed by its row's number",
        "messages/keys.py",
        "        key.update(each)\n",
        "        key.update(str(len(keys)).encode())\n",
        (KEYS, SCHEDULES),
    ),
    Mutation(
        "all of a batch is posted, not what was won",
        "sending/request_batch.py",
        "        self.messages = every.at(won)\n        kept = set(self.messages.keys)\n",
        "        kept = set(every.at(won).keys)\n",
        first="test_what_somebody_else_claimed_meanwhile_is_not_posted",
    ),
    Mutation(
        "an unknown outcome is recorded as not sent",
        "sending/outcomes.py",
        "    state = NOT_SENT if surely_not_sent(result) else UNKNOWN\n",
        "    state = NOT_SENT\n",
        first="test_a_lost_answer_is_unknown_and_not_sent_again",
    ),
    Mutation(
        "a post does not look at its claim's deadline",
        "sending/sender.py",
        "            if left < self._post_seconds:\n",
        "            if False:\n",
        first="test_a_post_that_comes_too_late_for_its_claim_is_claimed_anew",
    ),
    Mutation(
        "the last outcomes are recorded in one attempt only",
        "ledger/backend.py",
        "        if self._monotonic() + RETRY_SECONDS > until:\n",
        "        if True:\n",
        first="test_outcomes_are_recorded_once_the_ledger_answers_again",
    ),
    Mutation(
        "a request whose response cannot be read is given back",
        "sending/sender.py",
        "error, failed(request.request_id, UNKNOWN, error)\n",
        "error, failed(request.request_id, NOT_SENT, error)\n",
        first="test_an_error_of_our_own_never_gives_back_what_was_posted",
        also=("import ACCEPTED, UNKNOWN\n", "import ACCEPTED, NOT_SENT, UNKNOWN\n"),
    ),
    Mutation(
        "what others hold is counted as not sent",
        "ledger/holders.py",
        "    return Status.AGAIN if resends and holder.state == UNKNOWN else Status.UNKNOWN\n",
        "    return Status.UNKNOWN if holder.mine else Status.FREE\n",
        (COUNTS,),
        first="test_each_row_is_counted_by_who_holds_it_in_the_end",
    ),
    Mutation(
        "what others hold is not waited for",
        "sending/settle.py",
        "while any(each.state == CLAIMED for each in found.values()) and not self._is_over(ends_at):\n",
        "while False:\n",
        (SETTLE,),
        first="test_a_claim_of_another_process_is_waited_for",
    ),
    Mutation(
        "what was sent again is superseded again by the same attempt",
        "sending/settle.py",
        " or each in resent)",
        ")",
        (SENDER,),
        first="test_an_answer_lost_twice_is_left_to_the_next_try",
    ),
    Mutation(
        "what may still be recorded is superseded",
        "sending/settle.py",
        "standing.awaited or ",
        "",
        (SETTLE,),
        first="test_a_lapsed_claim_is_superseded_once_its_process_has_given_up",
    ),
    Mutation(
        "what others hold counts as sent",
        "ledger/holders.py",
        "    if holder.state == ACCEPTED:\n        return",
        "    if holder.state == ACCEPTED or not holder.mine:\n        return",
        (COUNTS,),
        first="test_each_row_is_counted_by_who_holds_it_in_the_end",
    ),
    Mutation(
        "what was unknown in the check is counted so in the end",
        "reporting/row_counts.py",
        "    if sent == to_send and not statuses[Status.UNKNOWN]:\n",
        "    if sent == to_send:\n",
        (COUNTS,),
        first="test_what_was_unknown_when_it_was_checked_is_counted_by_its_holder",
    ),
    Mutation(
        "what was superseded and not sent again counts as not sent",
        "ledger/holders.py",
        "np.where(self.again, Status.AGAIN, ",
        "np.where(self.again, Status.FREE, ",
        (COUNTS,),
        first="test_a_free_row_that_a_superseded_request_had_is_unknown",
    ),
    Mutation(
        "without a ledger messages count as not sent",
        "reporting/row_counts.py",
        "        return replace(self, unknown=self.unknown + self.not_sent, not_sent=0)\n",
        "        return self\n",
        (COUNTS,),
        first="test_without_the_ledger_no_row_is_called_unsent",
    ),
    Mutation(
        "a 500 counts as not sent",
        "service/errors.py",
        "<= status < HTTPStatus.INTERNAL_SERVER_ERROR",
        "<= status <= HTTPStatus.INTERNAL_SERVER_ERROR",
        (CLIENT, SCHEDULES),
    ),
    Mutation(
        "a 502 counts as throttled",
        "service/errors.py",
        "status == HTTPStatus.TOO_MANY_REQUESTS or",
        "status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY) or",
        (CLIENT, SCHEDULES),
    ),
    Mutation(
        "a request that was taken in part is posted again",
        "sending/sender.py",
        "        self._unrecorded.append(outcome)\n",
        "        if isinstance(result, SendResponse) and result.messages < len(request.batch.messages):\n"
        "            outcome = failed(request.request_id, NOT_SENT, None)\n"
        "            self._schedule.retry(request.batch, 0.0)\n"
        "        self._unrecorded.append(outcome)\n",
        first="test_fewer_messages_than_submitted_are_counted",
    ),
    Mutation(
        "an error that nobody foresaw counts as not sent",
        "sending/outcomes.py",
        "isinstance(error, SmsError) and not error.may_have_been_sent",
        "not getattr(error, 'may_have_been_sent', False)",
        first="test_an_error_that_nobody_foresaw_is_unknown_and_ends_the_send",
    ),
    Mutation(
        "a try does not write down the claims that lapsed before it",
        "execution/enter.py",
        "            ledger.lapse()\n",
        "",
        (LAPSE,),
    ),
    Mutation(
        "one request that is turned away holds no other back",
        "sending/schedule.py",
        "        self._limiter.hold(at)\n",
        "",
        (SENDER,),
        first="test_one_request_that_is_turned_away_holds_the_others_back",
    ),
    Mutation(
        "a slot is free before its outcome is recorded",
        "sending/schedule.py",
        "return self._limit - in_flight - len(self.waiting)",
        "return self._limit - len(self.waiting)",
        (SENDER,),
        first="test_at_most_concurrency_requests_are_open",
    ),
    Mutation(
        "a request that waits to be posted again keeps its claim",
        "sending/sender.py",
        "        self._unrecorded.append(outcome)\n",
        "        if outcome.state != NOT_SENT or isinstance(result, SendResponse):\n"
        "            self._unrecorded.append(outcome)\n",
        first="test_a_crash_while_waiting_to_post_again_makes_nothing_unknown",
    ),
    Mutation(
        "an outcome is kept for the record only once it is judged",
        "sending/sender.py",
        "        self._unrecorded.append(outcome)\n",
        "",
        also=(
            "        step = self._outcomes.next_step(request, result, claiming=self.goes_on)\n",
            (
                "        step = self._outcomes.next_step(request, result, claiming=self.goes_on)\n"
                "        self._unrecorded.append(outcome)\n"
            ),
        ),
        first="test_an_error_after_a_response_does_not_cost_the_record_of_its_request",
    ),
    Mutation(
        "what somebody else claimed first is forgotten",
        "sending/sender.py",
        "            self.noted.update(each.request_id for each in holders if each.state != ACCEPTED)\n",
        "            self.noted.update(())\n",
        first="test_what_somebody_else_claimed_meanwhile_and_gave_back_is_sent",
    ),
    Mutation(
        "told to stop, a sender goes on claiming",
        "sending/sender.py",
        "        return self.error is None and not self._stop.is_set() and self.stop_conditions.stop_reason is None\n",
        "        return self.error is None and self.stop_conditions.stop_reason is None\n",
        first="test_stopping_claims_nothing_more_and_records_what_is_in_flight",
    ),
    Mutation(
        "a stopped send posts what it has claimed",
        "sending/sender.py",
        "            if self._stop.is_set():\n                raise NotSentError(",
        "            if False:\n                raise NotSentError(",
        (SENDER,),
        first="test_a_request_that_has_not_begun_when_the_send_is_told_to_stop_is_given_back",
    ),
    Mutation(
        "a stopped send tries to record for as long as any",
        "ledger/backend.py",
        "        if self._stop.is_set():\n            until = min(",
        "        if False:\n            until = min(",
        ("tests/sending/test_flush.py",),
        first="test_a_send_that_is_told_to_stop_leaves_soon",
    ),
)
