"""The cases whose orders are played, and the defects of the engine that each of them finds."""

from __future__ import annotations

from support.orders.world import Case

RETRY, TWINS, TASKS = ((1, "a"), (2, "a")), ((1, "a"), (1, "a")), ((1, "a"), (1, "b"))

SMALL = {
    "a response is lost, the process dies, time passes, a person decides": Case(
        ((1, "a"),), lost=1, crashes=1, jumps=1, decisions=1
    ),
    "two requests at once, a commit fails": Case(((1, "a"),), messages=2, concurrency=2, commits=1),
    "two requests at once, one is refused, one is lost": Case(
        ((1, "a"),), messages=2, concurrency=2, refused=1, lost=1
    ),
    "two copies of a task": Case(TWINS),
    "a retry, and a response that is lost": Case(RETRY, lost=1),
    "a request is refused": Case(((1, "a"),), refused=2, crashes=1),
    "sent again after a loss, by the same attempt": Case(((1, "a"),), on_unknown="resend", lost=2, jumps=1),
}
"""Played with every change, in two minutes."""

LARGE = {
    "two tasks, and a request that is refused": Case(TASKS, refused=1),
    "two copies of a task, and one dies": Case(TWINS, crashes=1, jumps=1),
    "a retry, a loss, and time passes": Case(RETRY, lost=1, jumps=1),
    "a retry, a loss, and a person decides": Case(RETRY, lost=1, jumps=1, decisions=1),
    "a retry, and a commit that fails": Case(RETRY, commits=1),
    "two tasks, a commit that fails, and time passes": Case(TASKS, commits=1, jumps=1),
    "two tasks whose tables overlap, two messages, a loss": Case(TASKS, messages=2, lost=1),
    "a retry that sends again after a loss": Case(RETRY, on_unknown="resend", lost=1, jumps=1),
    "two copies that send again after a loss": Case(TWINS, on_unknown="resend", lost=1, jumps=1),
    "sent again, and a person decides": Case(RETRY, on_unknown="resend", lost=1, jumps=1, decisions=1),
}
"""Played by ``python -m support.orders``."""

DEFECTS = (
    "claims and outcomes are not durable: their transaction is rolled back",
    "a claim that was left behind counts as not sent",
    "SQLite: a claim takes the row that is there",
    "SQLite: a claim replaces the row that is there",
    "an unknown outcome releases its messages",
    "claims lapse at once, whatever their deadline",
    "claims never lapse",
    "a late response takes its messages back beside other claims",
    "a late answer does not correct an unknown",
    "claims whose commit raised are not given back",
    "claims whose commit raised stay unknown once they have lapsed",
    "the end gives back every claim that is open",
    "an answer after a person's not sent leaves its messages free",
    "a late response takes what another request has claimed",
    "what was superseded is forgotten",
    "a live claim is superseded",
    "the claim is made after the POST",
    "all of a batch is posted, not what was won",
    "an unknown outcome is recorded as not sent",
    "a post does not look at its claim's deadline",
    "what was sent again is superseded again by the same attempt",
    "what may still be recorded is superseded",
    "a request that waits to be posted again keeps its claim",
)
"""Mutants, by name, that the small cases or the large ones must find."""
