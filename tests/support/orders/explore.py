"""Plays every order of a case, and judges each by what the service took."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.reporting.summary import COUNTS
from support.orders.schedule import SeenError, advance
from support.orders.world import Ledger, World, patched

if TYPE_CHECKING:
    from support.orders.schedule import Point
    from support.orders.world import Case


@dataclass
class Explored:
    """What came of a case.

    :param orders: runs that were played to their end.
    :param states: different states in which there was a choice.
    :param broken: what was wrong, with the steps that led there, of the first runs that were wrong.
    """

    orders: int = 0
    states: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, list[str]]] = field(default_factory=list)


def explore(case: Case, most: int | None = None) -> Explored:
    """Play the orders of a case.

    :param most: how many at most; None means all.
    """
    explored = Explored()
    path: list[Point] = []
    seen: set[bytes] = set()
    ends: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-orders-") as name, ExitStack() as stack:
        ledger = stack.enter_context(closing(Ledger(Path(name))))
        while True:
            world = World(case, ledger, path, seen)
            with closing(world), patched(world):
                try:
                    world.play()
                except SeenError:
                    pass
                else:
                    explored.orders += 1
                    end = repr(world.end())
                    if end not in ends:
                        world.finish()
                        ends[end] = judge(world)
                    wrong = ends[end]
                    explored.ways.update([", ".join(sorted(wrong)) or "right"])
                    if wrong:
                        explored.broken.append(("; ".join(wrong), list(world.schedule.log)))
            if (most is not None and explored.orders >= most) or len(explored.broken) >= 3 or not advance(path):
                explored.states = len(seen)
                return explored


def judge(world: World) -> list[str]:
    """Return what is wrong after a run."""
    wrong: list[str] = []
    takes = Counter(key for key, _ in world.taken)
    holders = {
        bytes(key): (request, state)
        for key, request, state in world.rows(
            "SELECT m.message_key, r.id, r.state FROM sms_message m JOIN sms_request r ON r.id = m.request_id"
        )
    }
    former = Counter(
        bytes(key)
        for key, _ in world.rows(
            "SELECT s.message_key, r.state FROM sms_superseded s JOIN sms_request r ON r.id = s.request_id"
        )
    )
    lied = {request for request, outcome in world.decided if outcome == ACCEPTED}
    for each in world.people:
        key = bytes(each.key)
        request, state = holders.get(key, (0, NOT_SENT))
        if takes[key] > 1 and former[key] < takes[key] - 1:
            wrong.append("texted twice, and nothing says so")
        if state not in (ACCEPTED, UNKNOWN):
            wrong.append(f"lost: {state}")
        if state == ACCEPTED and not takes[key] and request not in lied:
            wrong.append("wrongly accepted")
    for ended in world.ended:
        counts = {name: ended.summary[name] for name in COUNTS}
        if ended.summary["rows"] != sum(counts.values()) or min(counts.values()) < 0:
            wrong.append(f"counts do not add up: {counts}")
        if counts["accepted"] + counts["already_sent"] > ended.taken and not lied:
            wrong.append(f"calls more sent than were taken: {counts}")
    (last,) = world.ended[-1:]
    if last.error is None and last.summary["not_sent"]:
        wrong.append("the last attempt left somebody out")
    if world.rows("SELECT 1 FROM sms_request WHERE state = 'claimed'"):
        wrong.append("a claim is open for ever")
    return wrong
