"""Plays orders of a case, all of them or one that is drawn, and judges each by what the service took."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerLostError
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.reporting.summary import COUNTS
from support.orders.world import World, patched

if TYPE_CHECKING:
    from collections.abc import Sequence


class SeenError(Exception):
    """A run has come to a state that another one was in before."""


@dataclass
class Explored:
    """What came of a case.

    :param orders: runs that were played to their end.
    :param states: different states in which there was a choice.
    :param broken: what was wrong, with the steps that led there, of the first runs that were wrong.
    """

    orders: int = 0
    states: int = 0
    broken: list[tuple[Sequence[str], Sequence[str]]] = field(default_factory=list)


class EveryOrder:
    """Chooses one branch after the other, and none below a state that was seen before."""

    def __init__(self):
        self.seen = set()
        self._path = []
        """The option that was taken at each choice, and how many there were."""
        self._turns = 0

    def choose(self, count, state):
        """Return which option is taken.

        :raises SeenError: the state was seen before.
        """
        self._turns += 1
        if self._turns <= len(self._path):
            taken, was = self._path[self._turns - 1]
            assert count == was, "a run is not the same when it is played again"
            return taken
        if (digest := state()) in self.seen:
            raise SeenError
        self.seen.add(digest)
        self._path.append((0, count))
        return 0

    def advance(self):
        """Go on to the next branch, and return whether there is one."""
        self._turns = 0
        while self._path:
            taken, count = self._path.pop()
            if taken + 1 < count:
                self._path.append((taken + 1, count))
                return True
        return False


def explore(case, ledger, most=None):
    """Play the orders of a case.

    :param most: how many at most; None means all.
    """
    explored, every = Explored(), EveryOrder()
    ends = {}
    while True:
        world = World(case, ledger, every.choose)
        with closing(world), patched(world):
            try:
                world.play()
            except SeenError:
                pass
            else:
                explored.orders += 1
                if (end := repr(world.end())) not in ends:
                    ends[end] = judge(world)
                if ends[end]:
                    explored.broken.append((ends[end], list(world.schedule.log)))
        if (most is not None and explored.orders >= most) or len(explored.broken) >= 3 or not every.advance():
            explored.states = len(every.seen)
            return explored


CLAIMED_AFTER = (
    "SELECT 1 FROM sms_superseded s JOIN sms_request a ON a.id = s.request_id AND a.state = 'accepted' "
    "JOIN sms_message m ON m.message_key = s.message_key JOIN sms_request b ON b.id = m.request_id "
    "WHERE b.claimed_at > a.finished_at"
)
"""Messages that were claimed though the ledger knew that they had been accepted."""


def judge(world):
    """Send the rest after a run, and return what is wrong."""
    if world.is_undone and any(isinstance(each.error, LedgerLostError) for each in world.ended):
        # It has forgotten people: nobody may send until a person has looked.
        return [*_of_counts(world), *(["texted twice"] if max(_takes(world).values(), default=0) > 1 else [])]
    for (state,) in world.ledger.rows("SELECT state FROM sms_request WHERE decided_by = 'balance'"):
        world.rare.add(f"the balance closed a request as {state}")
    world.finish()
    wrong = _of_counts(world)
    for each in world.people:
        wrong += _of_person(world, bytes(each.key))
    (last,) = world.ended[-1:]
    if last.error is None and last.summary["not_sent"]:
        wrong.append("the last attempt left somebody out")
    if world.ledger.rows("SELECT 1 FROM sms_request WHERE state = 'claimed'"):
        wrong.append("a claim is open for ever")
    if world.ledger.rows(CLAIMED_AFTER):
        wrong.append("claimed after it was accepted")
    return wrong


def _of_person(world, key):
    """Return what is wrong with what became of a message."""
    wrong = []
    takes, (holders, former) = _takes(world)[key], _holders(world)
    request, state = holders.get(key, (0, NOT_SENT))
    posts = [count for (posted, _), count in world.posted.items() if posted == key]
    freed = world.forgotten + sum(outcome == NOT_SENT for _, outcome in world.decided)
    # A balance may show each time that nothing was taken.
    if world.case.on_unknown != "reconcile" and max(posts, default=0) > 1 + freed + (world.case.on_unknown == "resend"):
        wrong.append("posted again and again by one process")
    if takes > 1:
        if world.case.on_unknown != "resend" and all(outcome != NOT_SENT for _, outcome in world.decided):
            wrong.append("texted twice")
        elif former[key] < takes - 1:
            wrong.append("texted twice, and nothing says so")
        else:
            world.rare.add("somebody was texted twice, and it is said")
    # What gives a claim back may fail, too.
    failed = world.case.commits - world.left["commits"] > 1
    has_died = world.is_undone or failed or world.left["crashes"] < world.case.crashes
    if state == UNKNOWN and not posts and not has_died:
        wrong.append("called unknown, and nobody posted it or died")
    if state not in (ACCEPTED, UNKNOWN):
        wrong.append(f"lost: {state}")
    if state == ACCEPTED and not takes and (request, ACCEPTED) not in world.decided:
        wrong.append("wrongly accepted")
    return wrong


def _takes(world):
    """Return how often each message was taken, as far as nobody had it forgotten."""
    return Counter(key for key, _ in world.taken[world.forgotten :])


def _holders(world):
    """Return the request of each message with its state, and by how many earlier ones each may have been taken."""
    held = "SELECT m.message_key, r.id, r.state FROM sms_message m JOIN sms_request r ON r.id = m.request_id"
    former = Counter(bytes(key) for (key,) in world.ledger.rows("SELECT message_key FROM sms_superseded"))
    return {bytes(key): (request, state) for key, request, state in world.ledger.rows(held)}, former


def _of_counts(world):
    """Return what is wrong with the summaries."""
    wrong = []
    lied = any(outcome == ACCEPTED for _, outcome in world.decided)
    for ended in world.ended:
        counts = {name: ended.summary[name] for name in COUNTS}
        if ended.summary["rows"] != sum(counts.values()) or min(counts.values()) < 0:
            wrong.append(f"counts do not add up: {counts}")
        if counts["accepted"] + counts["already_sent"] > ended.taken and not lied:
            wrong.append(f"calls more sent than were taken: {counts}")
    return wrong
