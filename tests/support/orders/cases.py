"""The cases whose orders are played, and the defects of the engine that each of them finds."""

from __future__ import annotations

from support.orders.world import HOURS, OWN_HOURS, Case

ALONE = ((1, "a"),)
RETRY, TWINS, TASKS = ((1, "a"), (2, "a")), ((1, "a"), (1, "a")), ((1, "a"), (1, "b"))

LATE = (
    *("a1.0: reads", "a1.0: writes", "a1.0 request 1: begin", "a1.0 request 1: posts taken", "jumps: passes"),
    *("a2.1: enters", "decisions: decides not_sent", "a2.1: reads", "a2.1: writes"),
    *("a1.0 request 1: is answered", "a1.0: collects", "a1.0: writes"),
)
"""A person calls a request not sent, a retry claims its message, and then the response comes."""
SHARED = (
    *("a1.0: reads", "a1.1: enters", "a1.0: writes", "a1.0 request 1: begin", "a1.0 request 1: posts is stopped"),
    *("a1.0 request 1: is answered", "a1.0: collects", "a1.0: writes"),
)
"""A copy of a task is stopped after its first request, before the other one has begun."""

SMALL = {
    "a response is lost, the process dies, time passes, a person decides": Case(
        ALONE, lost=1, crashes=1, jumps=1, decisions=1
    ),
    "two requests at once, a commit fails": Case(ALONE, messages=2, concurrency=2, commits=1),
    "two requests at once, one is refused, one is lost": Case(ALONE, messages=2, concurrency=2, refused=1, lost=1),
    "two copies of a task": Case(TWINS),
    "a retry, and a response that is lost": Case(RETRY, lost=1),
    "a request is refused": Case(ALONE, refused=2, crashes=1),
    "sent again after a loss, by the same attempt": Case(ALONE, on_unknown="resend", lost=2, jumps=1),
    "sent again after a loss, and a stop": Case(ALONE, on_unknown="resend", lost=1, stops=1),
    "the balance decides, and a person, too": Case(ALONE, on_unknown="reconcile", lost=1, late=1, decisions=1),
    "two requests, one is lost, and the balance decides": Case(
        ALONE, messages=2, on_unknown="reconcile", lost=1, late=1
    ),
    "two requests, and the second has the response of the first": Case(ALONE, messages=2, concurrency=2, doubled=1),
    "a stop, and a loss": Case(ALONE, messages=2, concurrency=2, stops=1, lost=1),
    "a pause, and somebody resumes": Case(ALONE, messages=2, concurrency=2, pauses=1),
    "time passes, and a purge": Case(ALONE, lost=1, jumps=1, purges=1),
    "two requests, and a commit that the server undoes": Case(ALONE, messages=3, concurrency=2, undone=1),
    "the hours end, and a commit fails": Case(ALONE, messages=2, window=HOURS, jumps=1, commits=1),
    "the hours of each recipient end": Case(ALONE, messages=2, concurrency=2, window=OWN_HOURS, jumps=1),
    "the credit runs out, and a loss": Case(ALONE, messages=2, concurrency=2, poor=1, lost=1),
    "a request is taken in part, and one is lost": Case(
        ALONE, messages=4, chunk_size=2, concurrency=2, partly=1, lost=1
    ),
    "an error that nobody foresaw": Case(ALONE, messages=2, concurrency=2, strange=1),
    "a commit that waits too long, twice": Case(ALONE, messages=2, concurrency=2, busy=2),
    "a read fails, and a loss": Case(ALONE, messages=2, concurrency=2, reads=1, lost=1),
    "a read fails, and the balance decides": Case(ALONE, messages=2, on_unknown="reconcile", reads=1, lost=1),
    "the balance is not told, and a loss": Case(ALONE, messages=2, on_unknown="reconcile", unread=2, lost=1),
    "the balance is not told for long, and a loss": Case(ALONE, on_unknown="reconcile", unread=4, lost=1),
    "somebody else spends, and the balance decides": Case(ALONE, on_unknown="reconcile", spends=1, lost=1),
    "two losses in a row": Case(ALONE, messages=3, lost=2),
    "a late response while a retry has it": Case(RETRY, lost=1, refused=1, jumps=1, decisions=1, first=LATE),
    "two copies of a task share a table, and are stopped": Case(TWINS, messages=2, stops=2, first=SHARED),
    "so many requests per second, and a loss": Case(ALONE, messages=2, rate=0.5, lost=2, crashes=1),
    "so many requests per second, and a refusal": Case(ALONE, messages=2, concurrency=2, rate=0.5, lost=1, refused=1),
}
"""Played with every change, in two minutes of two cores."""

LARGE = {
    "two tasks, whose requests overlap in part": Case(TASKS, messages=3, chunk_size=2),
    "a retry while a request is in flight, and the balance decides": Case(RETRY, on_unknown="reconcile"),
    "two tasks, and a request that is refused": Case(TASKS, refused=1),
    "two copies of a task, and one dies": Case(TWINS, crashes=1, jumps=1),
    "a retry, a loss, and time passes": Case(RETRY, lost=1, jumps=1),
    "a retry, time passes, and a person decides": Case(RETRY, jumps=1, decisions=1),
    "a retry, a loss, and a person decides": Case(RETRY, lost=1, jumps=1, decisions=1),
    "a retry, and a commit that fails": Case(RETRY, commits=1),
    "two tasks, a commit that fails, and time passes": Case(TASKS, commits=1, jumps=1),
    "two tasks whose tables overlap, two messages, a loss": Case(TASKS, messages=2, lost=1),
    "a retry that sends again after a loss": Case(RETRY, on_unknown="resend", lost=1, jumps=1),
    "two copies that send again after a loss": Case(TWINS, on_unknown="resend", lost=1, jumps=1),
    "sent again, and a person decides": Case(RETRY, on_unknown="resend", lost=1, jumps=1, decisions=1),
    "a retry, a loss, and the balance decides": Case(RETRY, on_unknown="reconcile", lost=1, late=1, crashes=1),
    "two tasks of one account, a loss, and the balance decides": Case(TASKS, on_unknown="reconcile", lost=1),
    "two losses in a row, and the balance decides": Case(ALONE, messages=3, on_unknown="reconcile", lost=2, late=1),
    "time passes, two requests, and a purge": Case(ALONE, messages=2, lost=1, jumps=1, purges=1),
    "a retry, and a purge": Case(RETRY, jumps=2, purges=1, lost=1),
    "a retry, a pause, and a stop": Case(RETRY, messages=2, pauses=1, stops=1),
    "a retry, and another's response": Case(RETRY, messages=2, doubled=1),
}
"""Played by ``python -m support.orders``."""

DEFECTS = (
    "claims and outcomes are not durable: their transaction is rolled back",
    "a claim that was left behind counts as not sent",
    "SQLite: a claim takes the row that is there",
    "an unknown outcome releases its messages",
    "a late answer does not correct an unknown",
    "claims whose commit raised are not given back",
    "the end gives back every claim that is open",
    "an answer after a person's not sent leaves its messages free",
    "what was superseded is forgotten",
    "the claim is made after the POST",
    "an unknown outcome is recorded as not sent",
    "what was sent again is superseded again by the same attempt",
    "a request that waits to be posted again keeps its claim",
    "a post does not look at its claim's deadline",
    "a response that comes after a decision is ignored",
    "the balance tells that nothing was taken before the deadline",
    "an unknown outcome is written over a decision",
    "a live claim may be decided",
    "an outcome is waited for, however long",
    "a purge forgets open requests",
    "requests that the ledger has lost are not missed",
    "what was superseded and is free counts as not sent",
    "the balance does not weigh what a person has called not sent",
    "what this process has not sent counts as not sent",
    "texted twice is said before it is known",
    "what a process has sent is counted by the try",
    "what is given back stays free, though an accepted request had it",
)
"""Mutants, by name, that the small cases must find."""

LARGER = {
    "a late response takes what another request has claimed": "a retry, time passes, and a person decides",
    "all of a batch is posted, not what was won": "two tasks, whose requests overlap in part",
    "claims whose commit raised stay unknown once they have lapsed": "two tasks, a commit that fails, and time passes",
}
"""Those that a large case must find, with the case."""
