"""Every step fails: each operation of a send breaks once, and each breaks for good."""

from __future__ import annotations

import itertools
from collections import Counter

from support.faults.arena import Arena
from support.faults.saboteur import MANNERS, Saboteur, sabotage
from support.faults.tries import attempt

STRIDE = 37
"""In a quick run, one operation in this many breaks; the first one differs from sweep to sweep."""
RECONCILING_STRIDE = 7
"""The same of sends that reconcile, which else take the same steps."""


def run(ledgers, quick, *, reconciles=False):
    """Break each operation of ten requests, in each manner, once and for good, one and two requests at a time.

    :param ledgers: function that opens the ledger.
    :param quick: break only some of them.
    :param reconciles: whether lost requests are closed by what the balance proves; then some of them, too.
    """
    with Arena(ledgers, reconciles=reconciles) as arena:
        sweeps = itertools.product(MANNERS, (False, True), (1, 2))
        for number, (manner, lasting, concurrency) in enumerate(sweeps):
            stride = STRIDE * (1 + 2 * reconciles) if quick else RECONCILING_STRIDE if reconciles else 1
            steps = range(number % stride, 10**6, stride)
            sweep(arena, manner, steps, lasting=lasting, concurrency=concurrency)
    return arena.figures


def sweep(arena, manner, steps, *, lasting, concurrency, only=None):
    """Break one operation after the other, each in a campaign of its own, until there is none so late.

    :param steps: the operations to break.
    :param only: the only kind of operation to count; None counts all.
    :returns: how often which kind of operation was broken.
    """
    hits = Counter()
    for at in steps:
        campaign = arena.campaign()
        with sabotage(Saboteur(at, manner, only=only, lasting=lasting)) as saboteur:
            ended = attempt(campaign, concurrency=concurrency)
        length = "for good" if lasting else "once"
        name = f"operation {at} ({saboteur.hit}) {manner} {length}, {concurrency} at a time"
        arena.look(campaign, ended)
        arena.resume(name, campaign)
        if saboteur.hit is None:
            return hits
        hits[saboteur.hit] += 1
    raise AssertionError("a send has no end")
