"""Schedules of faults, each derived from its seed alone, which replays it."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_sms.sandbox.faults import AUTHORS
from support.faults.halts import NEVER, Halts

FIRST_NUMBER = 27_820_000_000
NUMBERS = 200
OPTED_OUT = frozenset(str(FIRST_NUMBER + n) for n in range(0, NUMBERS, 9))
"""Made-up people who have opted out: the service leaves them out of accepted requests."""

SHORT_TIMEOUT = 0.1
"""Timeout, in seconds, of a client whose service is late on purpose."""

STEPS_A_REQUEST = 10
"""Approximate points of an attempt per request: statements, commits, and the post."""

MISHAPS = (
    ("fail", "any"),
    ("fail", "statement"),
    ("fail", "commit"),
    ("fail", "committed"),
    ("die", "any"),
    ("die", "any"),
    ("die", "commit"),
    ("die", "committed"),
    ("die", "post"),
    ("die", "posted"),
    ("hang", "committed"),
    ("hang", "post"),
    ("hang", "posted"),
    ("jump", "any"),
    ("stop", "any"),
)


@dataclass(frozen=True, slots=True)
class Mishap:
    """A failure of an attempt.

    :param what: ``fail`` (the ledger's database raises), ``die``, ``hang``, ``jump`` (the clock, forward), ``back``
        (the clock), ``stop``, or ``wake`` (hanging attempts resume).
    :param at: the kind of point, or ``any``.
    :param step: minimum number of points that the attempt has passed by then.
    :param times: consecutive points that fail.
    """

    what: str
    at: str
    step: int
    times: int = 1


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt of the campaign, or one of its legs after a wait.

    :param order: positions of the table's rows, in the order in which the attempt reads them.
    :param overlaps: whether it starts while the attempt before it still runs.
    :param later: seconds by which the clock advances before it starts.
    :param resumed: whether it is the next leg of the same attempt, in a new process; otherwise it is the next attempt.
        The leg before it may have died in its wait, or may still live.
    :param halts: the point at which it ends early to wait.
    """

    order: tuple[int, ...]
    overlaps: bool
    later: float
    mishaps: tuple[Mishap, ...]
    resumed: bool = False
    halts: Halts = NEVER


@dataclass(frozen=True, slots=True)
class Plan:
    """A table of people, the attempts that send it, and their failures.

    :param rows: destination of each row; repetitions are duplicates.
    :param timeout: the client's timeout in seconds.
    :param tick: seconds by which the clock advances each time that an attempt checks the claims of others.
    :param faults: faults of the service, for one request each.
    :param last_resumed: whether the last one, without faults, is a leg of the attempt before it.
    """

    seed: int
    rows: tuple[str, ...]
    chunk_size: int
    concurrency: int
    timeout: float
    tick: float
    faults: tuple[dict[str, Any], ...]
    tries: tuple[Try, ...]
    last: tuple[int, ...]
    last_resumed: bool


def people(count: int) -> list[str]:
    """Return the numbers of people who take every message."""
    return [str(FIRST_NUMBER + NUMBERS + n) for n in range(count)]


def plan_of(seed: int) -> Plan:
    """Return the schedule of a seed."""
    chance = random.Random(seed)
    rows = _rows(chance)
    chunk_size = chance.randint(max(1, len(rows) // 12), max(2, len(rows) // 2))
    concurrency = chance.randint(1, 4)
    requests = -(-len(rows) // chunk_size)
    tries = [_try(chance, len(rows), requests, first=n == 0) for n in range(chance.randint(1, 4))]
    faults = _faults(chance, 2 * requests * len(tries))
    plan = Plan(
        seed=seed,
        rows=rows,
        chunk_size=chunk_size,
        concurrency=concurrency,
        timeout=SHORT_TIMEOUT if any(f.get("seconds", 0) > SHORT_TIMEOUT for f in faults) else 5.0,
        tick=chance.choice((0.2, 1.0, 5.0)),
        faults=faults,
        tries=tuple(tries),
        last=_order(chance, len(rows)),
        last_resumed=chance.random() < 0.5,
    )
    # Drawn last, so that the rest of a seed's schedule does not depend on it.
    return replace(plan, tries=tuple(_set_back(chance, each, requests) for each in tries))


def _rows(chance: random.Random) -> tuple[str, ...]:
    """Return a table; half of the tables may have opted-out people, and half have duplicates."""
    numbers = [str(FIRST_NUMBER + n) for n in range(NUMBERS)]
    if chance.random() < 0.5:
        numbers = [number for number in numbers if number not in OPTED_OUT]
    people = chance.sample(numbers, chance.randint(1, 60))
    repeats = chance.choices(people, k=chance.randint(1, 10)) if chance.random() < 0.5 else []
    rows = people + repeats
    chance.shuffle(rows)
    return tuple(rows)


def _order(chance: random.Random, rows: int) -> tuple[int, ...]:
    return tuple(chance.sample(range(rows), rows))


def _try(chance: random.Random, rows: int, requests: int, *, first: bool) -> Try:
    longest = STEPS_A_REQUEST * (requests + 1)
    mishaps = [
        Mishap(what, at, chance.randint(1, longest), chance.choice((1, 1, 1, 2, 5, 20)))
        for what, at in chance.choices(MISHAPS, k=chance.choice((0, 1, 1, 2, 3)))
    ]
    if not first:
        mishaps.append(Mishap("wake", "any", chance.randint(1, longest)))
    return Try(
        order=_order(chance, rows),
        overlaps=not first and chance.random() < 0.3,
        later=chance.choice((0.0, 5.0, 1000.0)),
        mishaps=tuple(mishaps),
        resumed=not first and chance.random() < 0.5,
        halts=_halts(chance, rows, requests),
    )


def _set_back(chance: random.Random, planned: Try, requests: int) -> Try:
    """Set the clock back during some attempts."""
    if chance.random() < 0.7:
        return planned
    step = chance.randint(1, STEPS_A_REQUEST * (requests + 1))
    return replace(planned, mishaps=(*planned.mishaps, Mishap("back", "any", step)))


def _halts(chance: random.Random, rows: int, requests: int) -> Halts:
    """Let every second leg end early."""
    if chance.random() < 0.5:
        return NEVER
    if chance.random() < 0.5:
        return Halts(requests=chance.randint(0, requests))
    return Halts(balance=chance.randint(0, rows))


def _faults(chance: random.Random, requests: int) -> tuple[dict[str, Any], ...]:
    """Return the service's fault for each request, most often none."""
    share = chance.choice((0.0, 0.1, 0.3, 0.6))
    faults = [_fault(chance) if chance.random() < share else {"kind": "none"} for _ in range(requests)]
    late = [fault for fault in faults if fault.get("seconds", 0) > SHORT_TIMEOUT]
    # Only waiting for late responses takes real time here.
    for fault in late[2:]:
        fault["seconds"] = 0.01
    return tuple(faults)


def _fault(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(("drop_before", "drop_after", "delay", "slow", "status", "status", "truncated", "page"))
    if kind.startswith("drop"):
        return {"kind": kind, "reset": chance.random() < 0.5}
    if kind == "delay":
        return {"kind": "delay", "seconds": 2 * SHORT_TIMEOUT}
    if kind == "slow":
        return {"kind": "delay", "seconds": chance.uniform(0.0, 0.02)}
    if kind == "status":
        status = chance.choice((429, 429, 503, 503, 408, 499, 500, 502, 504, 403, 200))
        fault = {"kind": "status", "status": status, "by": chance.choice(AUTHORS)}
        if status in (429, 503):
            fault["retry_after"] = "0" if fault["by"] == "gateway" else chance.choice((None, "0"))
        if status in (408, 499, 500, 502, 504) or (status, fault["by"]) == (503, "gateway"):
            fault["accepted"] = chance.random() < 0.5
        return fault
    if kind == "page":
        return {"kind": "status", "status": 200, "by": "gateway", "accepted": True}
    return {"kind": kind}
