"""Defects that a careless change could introduce, and that a tool for mutants cannot write.

These are in SQL, in expressions of a module, in two places, or the wrong idea as a whole. ``mutmut`` writes the others.
"""

from __future__ import annotations

from dataclasses import dataclass

SENDER = "tests/sending/test_sender.py"
LEDGER = "tests/ledger/test_claims.py"
PAUSES = "tests/ledger/test_pauses.py"
SQLITE = "tests/ledger/test_sqlite.py"
TRANSITIONS = "tests/ledger/test_transitions.py"
ORDERS = "tests/faults/test_orders.py"
CLIENT = "tests/service"
HOLDERS = "tests/ledger/test_holders.py"
SETTLE = "tests/sending/test_settle.py"
EVIDENCE = "tests/sending/test_evidence.py"
COUNTS = "tests/reporting/test_row_counts.py"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One defect.

    :param file: path below the package.
    :param old: current text, which must occur exactly once.
    :param new: defective text.
    :param tests: tests to run, in this order, until one fails.
    :param first: test in one of these files that holds the rule; it runs before all others.
    :param also: a second replacement in the same file.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = (LEDGER, SENDER, ORDERS)
    also: tuple[str, str] | None = None
    first: str | None = None

    @property
    def rounds(self):
        """The tests of each pytest run, in order."""
        return (self.tests,) if self.first is None else (("-k", self.first, *self.tests), self.tests)

    def apply(self, package):
        """Change a copy of the package.

        :raises ValueError: when the text does not occur exactly once: adapt the mutation to the changed file.
        """
        path = package / self.file
        text = path.read_text()
        for old, new in [(self.old, self.new)] + ([self.also] if self.also else []):
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: a text occurs {text.count(old)} times in {self.file}, not once")
            text = text.replace(old, new)
        path.write_text(text)


MUTATIONS = (
    Mutation(
        "a try needs a trace by its number, whatever Airflow has noted",
        "execution/enter.py",
        " or (state is not None and _notes_outlive_clears())\n",
        "\n",
        ("tests/execution/test_enter.py",),
        first="test_a_try_needs_a_trace_where_an_earlier_one_may_have_texted",
    ),
    Mutation(
        "an attempt that the ledger has lost goes on under its id",
        "ledger/attempts.py",
        "or_(attempt.c.id < claimant_id, own))",
        "attempt.c.id <= claimant_id)",
        (SENDER,),
        first="test_an_attempt_that_the_ledger_has_lost_claims_nothing",
    ),
    Mutation(
        "the balance does not weigh what a person has called not sent",
        "ledger/balances.py",
        " and row.decided_at is None\n",
        "\n",
        ("tests/ledger/test_balances.py",),
    ),
    Mutation(
        "a pause does not wait for claims of its campaign",
        "ledger/campaigns.py",
        "    with store.write(campaign_lock(campaign_name)) as connection:\n"
        "        campaign_id = require_campaign(connection, campaign_name)\n"
        "        before",
        "    with store.write(7) as connection:\n"
        "        campaign_id = require_campaign(connection, campaign_name)\n"
        "        before",
        (PAUSES,),
    ),
    Mutation(
        "claims and outcomes are not durable: their transaction is rolled back",
        "ledger/claims.py",
        "                claims = self._claim(connection, chunks, self.clock() + claim_seconds)\n",
        "                claims = self._claim(connection, chunks, self.clock() + claim_seconds)\n"
        "            connection.exec_driver_sql('ROLLBACK')\n",
    ),
    Mutation(
        "a late response takes its messages back beside other claims",
        "ledger/claims.py",
        "            if shared and any(is_late(each, states[each.request_id]) for each in outcomes):\n",
        "            if False:\n",
        ("tests/ledger/test_postgres_side_by_side.py",),
    ),
    Mutation(
        "claims whose commit raised are not given back",
        "ledger/claims.py",
        "[*known, *given_back]",
        "known",
    ),
    Mutation(
        "claims whose commit raised stay unknown once they have lapsed",
        "ledger/claims.py",
        "            unposted = (CLAIMED, UNKNOWN, SUPERSEDED)\n",
        "            unposted = (CLAIMED,)\n",
        (LEDGER,),
        first="test_claims_whose_commit_raised_are_given_back_though_another_task_called_them_unknown",
    ),
    Mutation(
        "the end gives back every claim that is open",
        "ledger/claims.py",
        " for each in self._in_doubt if states.get(each) in unposted]\n",
        " for each in connection.execute(still_open).scalars()]\n",
        (SENDER, LEDGER),
        also=(
            "            given_back = ",
            (
                "            still_open = select(request.c.id).where(\n"
                "                request.c.claimant_id == self._claimant_id, request.c.state == CLAIMED\n"
                "            )\n"
                "            given_back = "
            ),
        ),
        first="test_what_was_posted_is_never_given_back_at_the_end",
    ),
    Mutation(
        "another try's request is taken for one's own",
        "ledger/claims.py",
        "_ITS = and_(request.c.attempt_id == attempt.c.id, request.c.id.in_(_IDS))\n",
        "_ITS = request.c.id.in_(_IDS)\n",
        (SENDER,),
        first="test_a_number_that_was_given_again_is_not_taken_for_ones_own",
    ),
    Mutation(
        "an attempt that was given the same id is taken for this one",
        "ledger/claims.py",
        '_THIS = and_(attempt.c.id == bindparam("this"), attempt.c.started_at == bindparam("at"))\n',
        '_THIS = and_(attempt.c.id == bindparam("this"))\n',
        (SENDER,),
        first="test_a_number_that_was_given_again_is_not_taken_for_ones_own",
    ),
    Mutation(
        "an answer after a person's not sent leaves its messages free",
        "ledger/claims.py",
        "        if any(each.state == NOT_SENT or is_late(each, states[each.request_id]) for each in outcomes):\n",
        "        if any(each.state == NOT_SENT for each in outcomes):\n",
        (TRANSITIONS, SENDER),
        first="test_a_late_response_takes_back_what_is_free",
    ),
    Mutation(
        "what is given back stays free, though an accepted request had it",
        "ledger/claims.py",
        "any(each.state == NOT_SENT or is_late(",
        "any(is_late(",
        (TRANSITIONS,),
        first="test_what_a_later_request_gives_back_returns_to_the_accepted_one",
    ),
    Mutation(
        "requests that the ledger has lost are not missed",
        "ledger/claims.py",
        "        return {request_id: state for request_id, state in rows if request_id is not None}\n",
        "        return {**dict.fromkeys(ids, CLAIMED), **{each: state for each, state in rows if each is not None}}\n",
        (SENDER,),
        first="test_a_ledger_that_lost_the_last_claim_is_given_no_other",
    ),
    Mutation(
        "a claim looks for a pause before its transaction begins",
        "ledger/claims.py",
        "        claims: list[Claim] = []\n",
        "        claims: list[Claim] = []\n"
        "        with self._store.read() as connection:\n"
        "            self.paused = open_pause(connection, self._campaign_id)\n",
        (PAUSES,),
        also=("            self.paused = open_pause(connection, self._campaign_id)\n            if", "            if"),
    ),
    Mutation(
        "a live claim may be decided",
        "ledger/decisions.py",
        "    if row.state == UNKNOWN:\n",
        "    if row.state in (UNKNOWN, CLAIMED):\n",
        ("tests/ledger/test_decisions.py",),
        first="test_only_what_is_unknown_is_up_to_somebody",
    ),
    Mutation(
        "claims never lapse",
        "ledger/holders.py",
        'state_at(bindparam("now"))',
        "request.c.state",
        (HOLDERS, SENDER, ORDERS),
    ),
    Mutation(
        "what a process has sent is counted by the try",
        "ledger/holders.py",
        "and_(request.c.attempt_id == self._claimant_id, request",
        "and_(request.c.attempt_id.in_(self.claimants), request",
        (LEDGER,),
        first="test_what_a_process_has_sent_is_counted_by_its_accepted_requests",
    ),
    Mutation(
        "PostgreSQL: a claim takes the row that is there",
        "ledger/postgres.py",
        '    "ON CONFLICT DO NOTHING"\n',
        '    "ON CONFLICT (campaign_id, message_key) DO UPDATE SET request_id = excluded.request_id"\n',
    ),
    Mutation(
        "PostgreSQL does not wait for the disk",
        "ledger/postgres.py",
        "set_config('synchronous_commit', 'on', true)",
        "set_config('synchronous_commit', 'off', true)",
        ("tests/ledger/test_postgres.py",),
    ),
    Mutation(
        "PostgreSQL takes no lock on the campaign",
        "ledger/postgres.py",
        "{function}(:lock)",
        "CAST(:lock AS bigint)",
        ("tests/ledger/test_postgres.py",),
    ),
    Mutation(
        "a purge forgets open requests",
        "ledger/purge.py",
        '"open" if is_open else "paused" if',
        '"paused" if',
        ("tests/ledger/test_purge.py",),
        first="test_a_campaign_with_an_open_request_is_to_be_kept",
    ),
    Mutation(
        "SQLite: a claim takes the row that is there",
        "ledger/sqlite.py",
        'AS new WHERE true "\n    "ON CONFLICT DO NOTHING"\n',
        'AS new WHERE true "\n'
        '    "ON CONFLICT (campaign_id, message_key) DO UPDATE SET request_id = excluded.request_id"\n',
    ),
    Mutation(
        "SQLite does not wait for the disk",
        "ledger/sqlite.py",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=OFF",
        (SQLITE,),
    ),
    Mutation(
        "SQLite writes in a deferred transaction",
        "ledger/sqlite.py",
        'exec_driver_sql("BEGIN IMMEDIATE")',
        'exec_driver_sql("BEGIN")',
        (SQLITE, LEDGER, SENDER),
    ),
    Mutation(
        "a claim that was left behind counts as not sent",
        "ledger/transitions.py",
        "    connection.execute(update(request).where(which, lapsed(now)).values(state=UNKNOWN, reason=LAPSED))\n",
        "    for (request_id,) in connection.execute(select(request.c.id).where(which, lapsed(now))).all():\n"
        "        connection.execute(update(request).where(request.c.id == request_id).values(state=NOT_SENT))\n"
        "        release(connection, request_id)\n",
    ),
    Mutation(
        "an unknown outcome releases its messages",
        "ledger/transitions.py",
        "        _RECORD_UNKNOWN.run(connection, values_of(outcome, now))\n",
        "        _RECORD_UNKNOWN.run(connection, values_of(outcome, now))\n"
        "        release(connection, outcome.request_id)\n",
    ),
    Mutation(
        "a late answer does not correct an unknown",
        "ledger/transitions.py",
        "_recording(or_(_IS_OPEN, request.c.response.is_(None)))",
        "_recording(and_(request.c.response.is_(None), request.c.state != bindparam('unknown')))",
    ),
    Mutation(
        "a response that comes after a decision is ignored",
        "ledger/transitions.py",
        "_recording(or_(_IS_OPEN, request.c.response.is_(None)))",
        "_recording(or_(_IS_OPEN, and_(request.c.response.is_(None), request.c.state == bindparam('accepted'))))",
        (TRANSITIONS,),
        first="test_a_late_response_takes_back_what_is_free",
    ),
    Mutation(
        "an unknown outcome is written over a decision",
        "ledger/transitions.py",
        '_RECORD_UNKNOWN = _recording(request.c.state == bindparam("claimed"))\n',
        '_RECORD_UNKNOWN = _recording(request.c.state != bindparam("accepted"))\n',
        (TRANSITIONS,),
        first="test_a_late_doubt_leaves_a_superseded_request_as_it_is",
    ),
    Mutation(
        "texted twice is said before it is known",
        "ledger/transitions.py",
        "holder.c.state == ACCEPTED, func.count())",
        "holder.c.state != NOT_SENT, func.count())",
        (TRANSITIONS,),
    ),
    Mutation(
        "a late response takes what another request has claimed",
        "ledger/transitions.py",
        "    connection.execute(insert(message).from_select(",
        "    their = select(back.subquery().c.message_key)\n"
        "    connection.execute(delete(message).where(message.c.message_key.in_(their)))\n"
        "    connection.execute(insert(message).from_select(",
        (TRANSITIONS,),
        also=(
            ".where(here, request.c.state == ACCEPTED, ~select(message.c.request_id).where(same).exists())",
            ".where(here, request.c.state == ACCEPTED)",
        ),
        first="test_a_late_response_takes_back_what_is_free",
    ),
    Mutation(
        "what was superseded is forgotten",
        "ledger/transitions.py",
        "    connection.execute(insert(superseded).from_select(columns, held))\n",
        "",
        (TRANSITIONS,),
        first="test_a_decision_moves_messages_and_their_poster_deletes_them",
    ),
    Mutation(
        "a live claim is superseded",
        "ledger/transitions.py",
        "        this = and_(request.c.id == request_id, request.c.state == UNKNOWN)\n",
        "        this = and_(request.c.id == request_id, request.c.state.in_((UNKNOWN, CLAIMED)))\n",
        (TRANSITIONS,),
        first="test_only_unknown_requests_are_superseded_and_once",
    ),
    Mutation(
        "what was superseded and is free counts as not sent",
        "reporting/row_counts.py",
        'Status.AGAIN: "unknown"}',
        'Status.AGAIN: "not_sent"}',
        (COUNTS,),
    ),
    Mutation(
        "what this process has not sent counts as not sent",
        "reporting/row_counts.py",
        "    if sent == to_send and not statuses[Status.UNKNOWN]:\n",
        "    if True:\n",
        (COUNTS,),
        also=("unknown=0, not_sent=0)", "not_sent=to_send - sent)"),
    ),
    Mutation(
        "the balance tells that nothing was taken before the deadline",
        "sending/evidence.py",
        "            if still_open and not window.all_taken:\n",
        "            if False:\n",
        (EVIDENCE,),
        first="test_a_charge_is_seen_at_once_that_there_was_none_only_at_the_deadline",
    ),
    Mutation(
        "a balance beside open requests is evidence",
        "sending/evidence.py",
        "any(each.stated is not None or before is None for each in still_open)",
        "before is None and still_open",
        (EVIDENCE,),
        first="test_no_verdict_is_wrong",
    ),
    Mutation(
        "an unknown outcome is recorded as not sent",
        "sending/outcomes.py",
        "    state = NOT_SENT if surely_not_sent(result) else UNKNOWN\n",
        "    state = NOT_SENT\n",
        first="test_a_lost_answer_is_unknown_and_not_sent_again",
    ),
    Mutation(
        "all of a batch is posted, not what was won",
        "sending/request_batch.py",
        "        self.messages = every.at(won)\n        kept = set(self.messages.keys)\n",
        "        kept = set(every.at(won).keys)\n",
        first="test_what_somebody_else_claimed_meanwhile_is_not_posted",
    ),
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
        "        try:\n"
        "            chunks = [batch.messages for batch in batches]\n",
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
        "a post does not look at its claim's deadline",
        "sending/sender.py",
        "            left = min(request.deadline - self._ledger.clock(), request.lapses_at - began)\n",
        "            left = self._post_seconds + MARGIN_SECONDS\n",
        first="test_a_post_that_comes_too_late_for_its_claim_is_claimed_anew",
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
        "outcomes are forgotten where a lock was not had",
        "sending/sender.py",
        '        log.warning("%s. Trying again, %d of %d times", error, self._busy, MAX_BUSY)\n',
        "        self._unrecorded = []\n",
        (SENDER,),
        first="test_a_lock_that_is_not_had_is_waited_for_again",
    ),
    Mutation(
        "an outcome is waited for, however long",
        "sending/settle.py",
        "each.state == CLAIMED for each in found.values()) and not self._is_over(ends_at)",
        "each.state in (CLAIMED, UNKNOWN) for each in found.values()) and not self._stop.is_set()",
        (ORDERS,),
    ),
    Mutation(
        "what was sent again is superseded again by the same attempt",
        "sending/settle.py",
        " or each in resent)",
        ")",
        (SETTLE,),
        first="test_a_message_is_sent_again_once_by_an_attempt",
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
        "a request is written again on another connection",
        "service/connections.py",
        "        connection = self._idle_connection(exchange) or self._open(exchange)\n",
        "        connection = self._idle_connection(exchange) or self._open(exchange)\n"
        "        write(connection.sock, request, exchange, self._timeout)\n"
        "        connection = self._open(exchange)\n",
        (CLIENT,),
    ),
    Mutation(
        "a read timeout is posted again",
        "service/transport.py",
        "            if exchange.written:\n",
        "            if exchange.written and not isinstance(error, TimeoutError):\n",
        (CLIENT,),
    ),
)
