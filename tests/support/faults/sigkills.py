"""Real processes, killed by SIGKILL at random instants."""

from __future__ import annotations

import itertools
import random
import time

from support.faults.arena import Arena, send_alone
from support.faults.processes import started
from support.faults.rest import PATIENCE, until

FULL = 200
QUICK = 5
LONGEST = 0.15
"""Seconds after which a process is killed at the latest: about the duration of the whole send."""
LATER = 1000.0
"""Seconds after which every claim of the process before has lapsed."""


def run(ledgers, quick):
    """Kill processes at random instants, until enough of them were killed in mid-send: 5 in a quick run, else 200."""
    wanted, seeds = QUICK if quick else FULL, itertools.count()
    with Arena(ledgers) as arena:
        while wanted > 0:
            wanted -= play(arena, next(seeds)) > 0
    return arena.figures


def play(arena, seed):
    """Kill one or two processes while they send, send the rest, and return how many were killed in mid-send."""
    chance = random.Random(seed)
    late = {"kind": "delay", "seconds": chance.uniform(0.001, 0.01), "persistent": True}
    arena.sandbox.state.reset()
    arena.sandbox.state.set_faults([late])
    campaign = arena.campaign(chance.randint(20, 100), chunk_size=chance.randint(2, 8))
    concurrency = chance.randint(1, 4)
    killed = sum(
        _is_killed(arena, campaign, chance, number=number, concurrency=concurrency, ahead=number * LATER)
        for number in range(chance.randint(1, 2))
    )
    arena.sandbox.state.set_faults([])
    arena.look(campaign, None)
    arena.resume(f"the kill of seed {seed}", campaign)
    return killed


def _is_killed(arena, campaign, chance, **options):
    """Kill a process after a number of requests or a time; return whether it was still sending."""
    by_requests = chance.random() < 0.5
    requests = chance.randint(0, campaign.count // campaign.chunk_size) if by_requests else 0
    moment = chance.uniform(0.0, 0.005 if by_requests else LONGEST)
    requests += len(arena.sandbox.state.requests)

    def sent():
        return process.ended or len(arena.sandbox.state.requests) >= requests

    with started(send_alone, [(campaign, options)]) as (process,):
        until(sent, seconds=PATIENCE, what="the process sends or ends", every=0.0005)
        time.sleep(moment)
        return not process.ended
