"""A try in several parts: it waits for its hours and for credit, and each part after a wait is a process of its own.

Each operation of all parts breaks; each part dies, hangs or errs at every point, in its wait, too; and a part that
goes on is started twice.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

from airflow_provider_sms.sending import scheduler
from support.faults import kills
from support.faults.arena import LATER, Arena
from support.faults.halts import NEVER, Halts
from support.faults.points import POINTS, RAISING, WAIT_POINTS
from support.faults.saboteur import MANNERS
from support.faults.sendings import POLL_SECONDS
from support.faults.steps import sweep
from support.faults.tries import Ended, attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faults.tries import Campaign, Ledgers
    from support.faults.verdict import Figures

PARTS = (Halts(requests=3), Halts(balance=10), Halts(balance=10, foreseen=False), NEVER)
"""Of ten requests of four: three until the hours end, two until the credit does, two until the service says so."""

STRIDE, QUICK_STRIDE = 3, 400
"""Every so many operations one breaks; where it begins differs from sweep to sweep."""

REQUESTS = (1, 4, 7)
"""Which of the seven requests after the first wait a part dies at."""

QUICK = (
    ("killed in its wait", "parked", 1),
    ("hung", "sent", 1),
    *(("error", point, 2) for point in ("replayed", "parked")),
    *(("interrupt", point, 5) for point in RAISING[::7]),
)


def run(ledgers: Ledgers, quick: bool) -> Figures:  # noqa: FBT001  # every part is called so
    """Break tries that wait three times: their operations, and their processes before, at and after a wait.

    :param ledgers: opens the ledger.
    :param quick: only some of it.
    """
    stride = QUICK_STRIDE if quick else STRIDE
    with Arena(ledgers, keep_alive=kills.PATIENCE) as arena, patch.object(scheduler, "DEFER_SECONDS", POLL_SECONDS):
        whole = Whole(arena)
        for number, (manner, lasting) in enumerate(itertools.product(MANNERS, (False, True))):
            steps = range(number * 37 % stride, 10**6, stride)
            sweep(arena, manner, steps, lasting=lasting, concurrency=1 + number % 2, play=whole)
        for way, point, nth in QUICK if quick else cases():
            one(arena, whole, way, point, nth)
    return arena.figures


def cases() -> Iterator[tuple[str, str, int]]:
    """Give the ways, points and requests."""
    yield from itertools.product(("killed", "killed, started twice", "hung"), POINTS, REQUESTS)
    yield from itertools.product(("killed in its wait", "killed in its wait, started twice"), WAIT_POINTS, (1,))
    yield from itertools.product(("error", "interrupt"), WAIT_POINTS, (1, 2, 3))
    yield from itertools.product(("error", "interrupt"), RAISING, (3, 5, 8))


class Whole:
    """Makes a try of several parts, whose last summary is to be of all of them."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def __call__(self, campaign: Campaign, *, concurrency: int = 1) -> Ended:
        """Go on after each wait, until one ends otherwise."""
        for place, halts in enumerate(PARTS):
            ended = self.part(campaign, halts, resumed=place > 0, concurrency=concurrency)
            if not ended.halted or ended.error is not None:
                break
        return replace(ended, whole=ended.error is None)

    def part(self, campaign: Campaign, halts: Halts, *, resumed: bool, concurrency: int = 1) -> Ended:
        """Make one part, with the credit that it has."""
        state = self._arena.sandbox.state
        state.set_post_paid(halts.balance is None)
        halts.begin(state)
        try:
            return attempt(campaign, 1, concurrency=concurrency, resumed=resumed, halts=halts)
        finally:
            state.set_post_paid(True)


def one(arena: Arena, whole: Whole, way: str, point: str, nth: int) -> None:
    """Play one case: what befalls a part after the first wait, or in a wait; then a copy of it, or the next try.

    :raises AssertionError: when the point was never passed.
    """
    campaign = arena.campaign()
    ended: Ended | None = None
    if way in ("error", "interrupt"):
        ended = kills.failed(campaign, way, point, nth, whole)
    else:
        whole.part(campaign, PARTS[0], resumed=False)
        if way == "hung":
            ended = kills.hung(arena, campaign, point, nth, resumed=True)
        else:
            halts = Halts(requests=3) if "wait" in way else NEVER
            kills.killed(arena, campaign, point, nth, resumed=True, halts=halts)
    arena.look(campaign, ended)
    if "twice" in way:
        copy = attempt(campaign, 1, concurrency=2, ahead=lambda: LATER, resumed=True)
        arena.look(campaign, replace(copy, whole=True))
    arena.resume(f"after a wait, {way} at {point!r} of request {nth}", campaign)
