"""An attempt in several legs: it waits for its send window and for credit, and each leg has its own process.

Each operation of all legs fails; each leg dies, hangs or fails at every point, also in its wait; and a leg that
resumes is started twice.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

from airflow_provider_sms.sending import schedule
from support.faults import kills
from support.faults.arena import LATER, Arena
from support.faults.halts import NEVER, RICH, Halts
from support.faults.points import POINTS, RAISING, WAIT_POINTS
from support.faults.saboteur import MANNERS
from support.faults.sendings import POLL_SECONDS
from support.faults.steps import sweep
from support.faults.tries import Ended, attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faults.tries import Campaign, Ledgers
    from support.faults.verdict import Figures

PARTS = (Halts(requests=3), Halts(balance=10), NEVER)
"""Ten requests of four: three until the window closes, two until the credit ends, two until the service refuses."""

STRIDE, QUICK_STRIDE = 3, 400
"""One operation in this many fails; the first one differs from sweep to sweep."""

REQUESTS = (1, 4, 7)
"""The requests, of the seven after the first wait, at which a leg dies."""

QUICK = (
    ("killed in its wait", "deferred", 1),
    ("hung", "sent", 1),
    *(("error", point, 2) for point in ("gone on", "deferred")),
    *(("interrupt", point, 5) for point in RAISING[::7]),
)


def run(
    ledgers: Ledgers,
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    reconciles: bool = False,
) -> Figures:
    """Break attempts that wait three times: their operations, and their processes before, during and after a wait.

    :param ledgers: function that opens the ledger.
    :param quick: True selects some of the cases.
    :param reconciles: whether lost requests are closed by what the balance proves; then it selects fewer.
    """
    stride = QUICK_STRIDE if quick else STRIDE * (1 + 9 * reconciles)
    chosen = list(QUICK if quick else cases())
    chosen = chosen[:: 3 if quick else 9] if reconciles else chosen
    with (
        Arena(ledgers, keep_alive=kills.PATIENCE, reconciles=reconciles) as arena,
        patch.object(schedule, "DEFER_SECONDS", POLL_SECONDS),
    ):
        whole = Whole(arena)
        for number, (manner, lasting) in enumerate(itertools.product(MANNERS, (False, True))):
            steps = range(number * 37 % stride, 10**6, stride)
            sweep(arena, manner, steps, lasting=lasting, concurrency=1 + number % 2, play=whole)
        for way, point, nth in chosen:
            one(arena, whole, way, point, nth)
    return arena.figures


def cases() -> Iterator[tuple[str, str, int]]:
    """Yield the ways, points and requests."""
    yield from itertools.product(("killed", "killed, started twice", "hung"), POINTS, REQUESTS)
    yield from itertools.product(("killed in its wait", "killed in its wait, started twice"), WAIT_POINTS, (1,))
    yield from itertools.product(("error", "interrupt"), WAIT_POINTS, (1, 2, 3))
    yield from itertools.product(("error", "interrupt"), RAISING, (3, 5, 8))


class Whole:
    """Runs an attempt of several legs, whose last summary must cover all of them."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def __call__(self, campaign: Campaign, *, concurrency: int = 1) -> Ended:
        """Run legs until one ends without a wait."""
        for halts in PARTS:
            ended = self.part(campaign, halts, concurrency=concurrency)
            if not ended.halted or ended.error is not None:
                break
        return replace(ended, whole=ended.error is None)

    def part(self, campaign: Campaign, halts: Halts, *, concurrency: int = 1) -> Ended:
        """Run one leg with its balance."""
        state = self._arena.sandbox.state
        state.set_post_paid(halts.balance is None and not self._arena.reconciles)
        halts.begin(state)
        try:
            return attempt(campaign, 1, concurrency=concurrency, halts=halts)
        finally:
            state.set_post_paid(not self._arena.reconciles)
            state.set_balance(RICH)


def one(arena: Arena, whole: Whole, way: str, point: str, nth: int) -> None:
    """Run one case: a failure of a leg after or during the first wait, then a copy of the leg, or the next attempt.

    :raises AssertionError: when the point was never reached.
    """
    campaign = arena.campaign()
    ended: Ended | None = None
    if way in ("error", "interrupt"):
        ended = kills.failed(campaign, way, point, nth, whole)
    else:
        whole.part(campaign, PARTS[0])
        if way == "hung":
            ended = kills.hung(arena, campaign, point, nth, again=True)
        else:
            halts = Halts(requests=3) if "wait" in way else NEVER
            kills.killed(arena, campaign, point, nth, halts=halts)
    arena.look(campaign, ended)
    if "twice" in way:
        copy = attempt(campaign, 1, concurrency=2, ahead=lambda: LATER)
        arena.look(campaign, replace(copy, whole=True))
    arena.resume(f"after a wait, {way} at {point!r} of request {nth}", campaign)
