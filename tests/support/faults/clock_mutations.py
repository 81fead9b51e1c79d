"""Defects of time: what a deadline is compared with, and what becomes of a claim that its clock makes late or early."""

from __future__ import annotations

from support.faults.mutation import CLOCKS, ELAPSED, READER, SENDER, Mutation

E2E = "test_a_clock_that_is_set_while_requests_are_under_way_texts_nobody_twice"

CLOCK_MUTATIONS = (
    Mutation(
        "PostgreSQL: between transactions the machine's clock goes on",
        "ledger/postgres_engine.py",
        "        return elapsed() + self._ahead\n",
        "        return time.time() - time.time() % 60.0\n",
        (CLOCKS,),
        first="test_between_transactions_time_elapses_by_a_clock_that_nobody_sets",
    ),
    Mutation(
        "PostgreSQL: the time is that of the wait for the lock",
        "ledger/postgres.py",
        "SELECT extract(epoch FROM clock_timestamp()) FROM bounded",
        "SELECT extract(epoch FROM statement_timestamp()) FROM bounded",
        (CLOCKS,),
        first="test_a_servers_time_is_that_of_when_the_lock_was_had",
    ),
    Mutation(
        "PostgreSQL: the server is asked once",
        "ledger/postgres.py",
        "                self._server_clock.read(connection, _LOCK_SHARED if shared else _LOCK, values)\n",
        "                connection.execute(_LOCK_SHARED if shared else _LOCK, values)\n",
        (CLOCKS,),
        first="test_a_servers_time_is_that_of_when_the_lock_was_had",
    ),
    Mutation(
        "a claim that lapsed is one again when the time is set back",
        "sending/sender.py",
        "            left = min(request.deadline - self._ledger.clock(), request.lapses_at - began)\n",
        "            left = request.deadline - self._ledger.clock()\n",
        (CLOCKS,),
        first="test_a_process_that_was_stopped_posts_nothing_although_the_time_is_set_back",
    ),
    Mutation(
        "a page goes by the machine's clock",
        "ledger/reader.py",
        "        clock.read(connection)\n",
        "        clock._ahead = __import__('time').time() - elapsed()\n",
        (READER,),
        first="test_a_page_shows_the_ledgers_time",
    ),
    Mutation(
        "a post is not told when its claim ends",
        "sending/sender.py",
        "            with ending_by(began + min(left, self._post_seconds + MARGIN_SECONDS)):\n",
        "            with ending_by(float('inf')):\n",
        (SENDER,),
        first="test_a_post_is_told_when_its_claim_ends",
    ),
    Mutation(
        "a request begins although it might outlast its claim",
        "service/transport.py",
        "        if exchange.deadline > latest_end():\n",
        "        if False:\n",
        (ELAPSED,),
        first="test_a_machine_that_slept_while_a_token_was_fetched_posts_nothing",
    ),
    Mutation(
        "a sleep of the machine does not count",
        "service/elapsed.py",
        '_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)\n',
        "_CLOCK: int = time.CLOCK_MONOTONIC\n",
        (CLOCKS,),
        first="test_time_elapses_while_the_machine_sleeps",
    ),
)
