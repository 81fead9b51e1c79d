"""Real processes, killed by SIGKILL at random instants."""

from __future__ import annotations

import itertools
import random
import time
from itertools import takewhile
from typing import TYPE_CHECKING

from support.faults.lives import PATIENCE
from support.faults.plans import people
from support.faults.processes import Order, started
from support.faults.sendings import Clock, Sending
from support.faults.stage import play_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.stage import Stage
    from support.faults.verdict import Figures

FULL = 200
QUICK = 5
LONGEST = 0.15
"""Seconds after which a process is killed at the latest: about the duration of the whole send."""


def play(stage: Stage, seed: int) -> tuple[Figures, int]:
    """Kill one or two processes while they send, send the rest, and judge; return how many were killed in mid-send."""
    chance = random.Random(seed)
    campaign = stage.new_campaign(f"kill {seed}")
    late = {"kind": "delay", "seconds": chance.uniform(0.001, 0.01), "persistent": True}
    stage.sandbox.state.set_faults([late])
    rows = people(chance.randint(20, 100))
    options = {"chunk_size": chance.randint(2, 8), "concurrency": chance.randint(1, 4)}
    ahead, killed = 0.0, 0
    for number in range(chance.randint(1, 2)):
        order = Order(
            stage.sandbox.base_url,
            stage.url,
            campaign,
            number,
            rows=chance.sample(rows, len(rows)),
            ahead=ahead,
            tick=1.0,
            **options,
        )
        killed += _killed(stage, order, chance)
        ahead += chance.choice((0.0, 1000.0))
    stage.sandbox.state.set_faults([])
    clock = Clock(ahead + 10_000.0)
    last = Sending(stage.sandbox.base_url, stage.reader, campaign, 9, clock=clock, **options)
    last.run(rows)
    return stage.judge(campaign, rows, last), killed


def _killed(stage: Stage, order: Order, chance: random.Random) -> bool:
    """Kill a process after a number of requests or a time; return whether it was still sending."""
    by_requests = chance.random() < 0.5
    requests = chance.randint(0, len(order.rows) // order.chunk_size) if by_requests else 0
    moment = chance.uniform(0.0, 0.005 if by_requests else LONGEST)
    until = time.monotonic() + PATIENCE
    with started([order]) as (process,):
        process.go()
        while not process.ended and len(stage.sandbox.state.requests) < requests:
            if time.monotonic() > until:
                raise TimeoutError("the process neither sends nor ends")
            time.sleep(0.0005)
        time.sleep(moment)
        return not process.ended


def run(
    open_store: Callable[[], LedgerBackend],
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    count: int | None = None,
) -> Figures:
    """Kill processes at random instants, until enough of them were killed in mid-send.

    :param open_store: function that opens the shared ledger, like one more process.
    :param count: number of such cases; None means 5 in a quick run, else 200.
    """
    wanted = count if count is not None else QUICK if quick else FULL
    killed = []

    def play_and_count(stage: Stage, seed: int) -> Figures:
        figures, middle = play(stage, seed)
        if middle:
            killed.append(seed)
        return figures

    seeds = takewhile(lambda _: len(killed) < wanted, itertools.count())
    return play_all(open_store, play_and_count, seeds, lambda _, seed: f"the kill of seed {seed}")
