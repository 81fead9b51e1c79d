"""Defects of the ledger: what it keeps, who may claim, what becomes of a claim."""

from __future__ import annotations

from support.faults.mutation import CONTACTS, LEDGER, PAIRS, PAUSES, RESPONSES, SCHEDULES, SENDER, SQLITE, Mutation

LEDGER_FIRST = (LEDGER, SENDER, SCHEDULES, PAIRS)

LEDGER_MUTATIONS = (
    Mutation(
        "nothing is durable: every transaction is rolled back",
        "ledger/backend.py",
        "                yield writing\n",
        "                yield writing\n                writing.exec_driver_sql('ROLLBACK')\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "claims and outcomes are not durable: their transaction is rolled back",
        "ledger/claims.py",
        "                claims = self._claim(connection, chunks, self.clock() + claim_seconds)\n",
        "                claims = self._claim(connection, chunks, self.clock() + claim_seconds)\n"
        "            connection.exec_driver_sql('ROLLBACK')\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "a claim that was left behind counts as not sent",
        "ledger/transitions.py",
        "    connection.execute(update(request).where(which, lapsed(now)).values(state=UNKNOWN, reason=LAPSED))\n",
        "    for (request_id,) in connection.execute(select(request.c.id).where(which, lapsed(now))).all():\n"
        "        connection.execute(update(request).where(request.c.id == request_id).values(state=NOT_SENT))\n"
        "        release(connection, request_id, ())\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "SQLite: a claim takes the row that is there",
        "ledger/sqlite.py",
        'AS new WHERE true "\n    "ON CONFLICT DO NOTHING"\n',
        'AS new WHERE true "\n'
        '    "ON CONFLICT (campaign_id, message_key) DO UPDATE SET request_id = excluded.request_id"\n',
        LEDGER_FIRST,
    ),
    Mutation(
        "SQLite: a claim replaces the row that is there",
        "ledger/sqlite.py",
        '"INSERT INTO sms_message (campaign_id, message_key, destination, request_id) "\n    "SELECT ?',
        '"INSERT OR REPLACE INTO sms_message (campaign_id, message_key, destination, request_id) "\n    "SELECT ?',
        LEDGER_FIRST,
        also=('    "ON CONFLICT DO NOTHING"\n', '    ""\n'),
    ),
    Mutation(
        "PostgreSQL: a claim takes the row that is there",
        "ledger/postgres.py",
        '    "ON CONFLICT DO NOTHING"\n',
        '    "ON CONFLICT (campaign_id, message_key) DO UPDATE SET request_id = excluded.request_id"\n',
        LEDGER_FIRST,
    ),
    Mutation(
        "an unknown outcome releases its messages",
        "ledger/transitions.py",
        "    if outcome.state == NOT_SENT and recorded.rowcount == 1:",
        "    if outcome.state in (NOT_SENT, UNKNOWN) and recorded.rowcount == 1:",
        LEDGER_FIRST,
    ),
    Mutation(
        "what was taken over is released, too",
        "ledger/transitions.py",
        "        if not states:\n",
        "        if True:\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "claims have no deadline in the future",
        "ledger/claims.py",
        "chunks, self.clock() + claim_seconds)\n",
        "chunks, self.clock() - claim_seconds)\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "claims lapse at once, whatever their deadline",
        "ledger/transitions.py",
        "    return (state == CLAIMED) & (deadline < now)\n",
        "    return state == CLAIMED\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "claims never lapse",
        "ledger/claims.py",
        "                current_state(state, deadline, now),\n",
        "                state,\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "SQLite does not wait for the disk",
        "ledger/sqlite.py",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=OFF",
        (SQLITE,),
    ),
    Mutation(
        "SQLite does not check references",
        "ledger/sqlite.py",
        "PRAGMA foreign_keys=ON",
        "PRAGMA foreign_keys=OFF",
        (SQLITE, LEDGER),
    ),
    Mutation(
        "PostgreSQL does not wait for the disk",
        "ledger/postgres.py",
        "set_config('synchronous_commit', 'on', true)",
        "set_config('synchronous_commit', 'off', true)",
        ("tests/ledger/test_postgres.py",),
    ),
    Mutation(
        "SQLite writes in a deferred transaction",
        "ledger/sqlite.py",
        '"BEGIN IMMEDIATE" if write else "BEGIN"',
        '"BEGIN"',
        (SQLITE, LEDGER, SENDER, PAIRS),
    ),
    Mutation(
        "PostgreSQL takes no lock on the campaign",
        "ledger/postgres.py",
        "pg_advisory_xact_lock(:lock)",
        "CAST(:lock AS bigint)",
        ("tests/ledger/test_postgres.py", PAIRS),
    ),
    Mutation(
        "a late answer does not correct an unknown",
        "ledger/transitions.py",
        '_IS_OPEN = or_(request.c.state == bindparam("claimed"), request.c.state == bindparam("unknown"))\n',
        '_IS_OPEN = and_(request.c.state == bindparam("claimed"), bindparam("unknown") == UNKNOWN)\n',
        LEDGER_FIRST,
    ),
    Mutation(
        "a late failure overrules what a person said",
        "ledger/transitions.py",
        "_RECORD = _recording(_IS_OPEN)\n",
        "_RECORD = _recording(or_(_IS_OPEN, ~_IS_OPEN))\n",
        LEDGER_FIRST,
    ),
    Mutation(
        "claims whose commit raised are not given back",
        "ledger/claims.py",
        "[*known, *given_back]",
        "known",
        LEDGER_FIRST,
    ),
    Mutation(
        "the end gives back every claim that is open",
        "ledger/claims.py",
        " for each in self._in_doubt if states.get(each) == CLAIMED]\n",
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
        "a ledger that lost what was committed is used on",
        "ledger/claims.py",
        "            self._require_whole(states, outcomes)\n            twice",
        "            outcomes = [outcome for outcome in outcomes if outcome.request_id in states]\n            twice",
        (SENDER,),
        first="test_a_ledger_that_loses_what_is_in_flight_ends_the_send",
    ),
    Mutation(
        "the last claim is not looked for before the next",
        "ledger/claims.py",
        "        if self._last_claimed is not None:\n            wanted.add(self._last_claimed)\n",
        "",
        (SENDER,),
        first="test_a_ledger_that_lost_the_last_claim_is_given_no_other",
    ),
    Mutation(
        "SQLite: another try's request is taken for one's own",
        "ledger/sqlite.py",
        ' WHERE r.claimant_id = ?"\n',
        ' WHERE ? > 0"\n',
        (SENDER,),
        first="test_a_number_that_another_try_was_given_since_is_not_taken_for_ones_own",
    ),
    Mutation(
        "an answer after a person's not sent leaves its messages free",
        "ledger/claims.py",
        "        self._store.insert_messages(connection, self._campaign_id, [outcome.request_id], [chunk])\n",
        "",
        (SENDER,),
        first="test_an_answer_after_not_sent_takes_its_messages_again",
    ),
    Mutation(
        "a message that was taken over twice forgets its first request",
        "ledger/transitions.py",
        "        if others:\n            rows",
        "        if False:\n            rows",
        (SENDER,),
        first="test_a_message_that_was_taken_over_twice_is_free_only_when_nobody_may_have_sent_it",
    ),
    Mutation(
        "a request that a person calls accepted does not get its messages back",
        "ledger/decisions.py",
        "        take_back(connection, request_id)\n",
        "        pass\n",
        (SENDER,),
        first="test_what_a_person_calls_accepted_is_never_sent_again_whoever_took_it_over",
    ),
    Mutation(
        "an answer that comes late leaves its messages with an unknown request",
        "ledger/claims.py",
        "                if state != ACCEPTED:\n",
        "                if False:\n",
        (SENDER,),
        first="test_an_answer_that_comes_late_takes_its_messages_from_an_unknown_request",
    ),
    Mutation(
        "people who were texted twice pass in silence",
        "ledger/claims.py",
        "        yield from twice\n",
        "        yield from ()\n",
        (SENDER,),
        first="test_an_answer_after_not_sent_that_comes_too_late_says_who_was_texted_twice",
    ),
    Mutation(
        "an event id that came before is an answer",
        "ledger/claims.py",
        "            return found.first() is not None\n",
        "            return found.first() is not None and False\n",
        (SENDER,),
        first="test_an_event_id_that_came_before_is_no_answer",
    ),
    Mutation(
        "a cost is stored however long it is",
        "ledger/transitions.py",
        "    return cost if len(cost) <= _MAX_COST_LENGTH else str(_ROUNDED.create_decimal(cost))\n",
        "    return cost\n",
        (SENDER,),
        first="test_a_cost_that_no_column_holds_ends_no_send",
    ),
    Mutation(
        "tasks that are mapped see each other's answers",
        "ledger/attempts.py",
        "        claimant.c.map_index == who.map_index,\n",
        "",
        (RESPONSES,),
    ),
    Mutation(
        "a claim does not look whether its campaign is paused",
        "ledger/claims.py",
        "            self.paused = open_pause(connection, self._campaign_id)\n",
        "",
        (PAUSES,),
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
        "a pause does not wait for claims of its campaign",
        "ledger/pauses.py",
        "    with store.write(campaign_lock(campaign_name)) as connection:\n        campaign_id, now",
        "    with store.write(7) as connection:\n        campaign_id, now",
        (PAUSES,),
    ),
    Mutation(
        "the cap is decided before the claim's transaction",
        "ledger/claims.py",
        "        claims: list[Claim] = []\n",
        "        claims: list[Claim] = []\n"
        "        young = self.capped([number for chunk in chunks for number in chunk.destinations if number])\n"
        "        self._late = 0.0 if young else 1e9\n",
        (CONTACTS,),
        also=("apply(connection, chunks, claims, now)", "apply(connection, chunks, claims, now + self._late)"),
    ),
    Mutation(
        "whoever is capped is posted to",
        "ledger/frequency_cap.py",
        "        if granted == len(wanted) == sum(len(claim.won) for claim in claims):\n",
        "        if granted <= len(wanted):\n",
        (CONTACTS,),
    ),
    Mutation(
        "a person who is twice in a commit is texted twice",
        "ledger/frequency_cap.py",
        "        if granted == len(wanted) == sum(len(claim.won) for claim in claims):\n",
        "        if granted == len(wanted):\n",
        (CONTACTS,),
    ),
    Mutation(
        "a message that an unknown request held is free when it is capped",
        "ledger/transitions.py",
        "    _free(connection, and_(message.c.campaign_id == campaign_id, of_requests))\n",
        "    connection.execute(delete(message).where(message.c.campaign_id == campaign_id, of_requests))\n",
        (CONTACTS,),
    ),
    Mutation(
        "what was not sent counts as texted",
        "ledger/transitions.py",
        "        give_back_contacts(connection, request_id, groups)\n",
        "        pass\n",
        (CONTACTS,),
    ),
    Mutation(
        "what was not sent leaves nobody texted, whoever was before",
        "ledger/frequency_cap.py",
        "    if given_back:\n",
        "    if False:\n",
        (CONTACTS,),
    ),
    Mutation(
        "PostgreSQL takes no lock on a group",
        "ledger/postgres.py",
        "            connection.exec_driver_sql(_LOCK_GROUP, (group_id,))\n",
        "            pass\n",
        (CONTACTS,),
    ),
)
