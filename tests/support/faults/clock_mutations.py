"""Defects of time: what a deadline is compared with, and what becomes of a claim that its clock makes late or early."""

from __future__ import annotations

from support.faults.mutation import ELAPSED, SENDER, Mutation

E2E = "test_a_clock_that_is_set_while_requests_are_under_way_texts_nobody_twice"

CLOCK_MUTATIONS = (
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
)
