"""Plays orders of a case, all of them or one that is drawn, and judges each by what the service took."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerLostError, SmsError
from airflow_provider_sms.ledger.attempts import count_requests
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.requests import texted, unknown_requests
from airflow_provider_sms.messages.keys import key_halves
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.sending.evidence import CHARGED, UNDECIDED
from airflow_provider_sms.sending.settle import Reconciliation
from support.orders.world import ACCOUNT, CAMPAIGN, PRICE, STATE, World, patched
from support.sending import claimant

if TYPE_CHECKING:
    from collections.abc import Sequence


class SeenError(Exception):
    """A run has come to a state that another one was in before."""


@dataclass
class Explored:
    """What came of a case.

    :param orders: runs that were played to their end.
    :param states: different states.
    :param broken: what was wrong, with the steps that led there, of the first runs that were wrong.
    :param rare: what happened that seldom does.
    """

    orders: int = 0
    states: int = 0
    broken: list[tuple[Sequence[str], Sequence[str]]] = field(default_factory=list)
    rare: set[str] = field(default_factory=set)


class EveryOrder:
    """Chooses one branch after the other, and none below a state that was seen before."""

    def __init__(self):
        self.seen = set()
        self._path = []
        """The option that was taken at each choice, and how many there were."""
        self._turns = 0

    def choose(self, count, state):
        """Return which option is taken; raise where the state was seen before."""
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


def explore(case, ledger):
    """Play the orders of a case, until three of them are wrong."""
    explored, every, ends = Explored(), EveryOrder(), {}
    while True:
        world = World(case, ledger, every.choose)
        with closing(world.schedule), patched(world):
            try:
                world.play()
            except SeenError:
                pass
            except Exception as error:  # noqa: BLE001  # an order that cannot be played is wrong
                explored.broken.append(([repr(error)], list(world.schedule.log)))
            else:
                explored.orders += 1
                if (end := repr(world.end())) not in ends:
                    ends[end] = judge(world)
                    explored.rare |= world.rare
                if ends[end]:
                    explored.broken.append((ends[end], list(world.schedule.log)))
        if len(explored.broken) >= 3 or not every.advance():
            explored.states = len(every.seen)
            return explored


BY_BALANCE = "SELECT 1 FROM sms_request WHERE decided_by = 'balance' AND decision = 'not_sent'"
SENT_BY_TASK = (
    "SELECT coalesce(sum(submitted), 0) FROM sms_request WHERE state IN ('accepted', 'claimed', 'unknown') "
    "AND attempt_id IN (SELECT id FROM sms_attempt WHERE task_id = '{}')"
)
OVERWRITTEN = (
    "SELECT 1 FROM sms_request r WHERE r.state IN ('claimed', 'unknown') AND (r.decided_at IS NOT NULL OR NOT EXISTS "
    "(SELECT 1 FROM sms_message m WHERE m.request_id = r.id))"
)
"""Requests that are open though somebody has decided about them, or though they hold no message any more."""
NEVER = {
    "a claim is open for ever": "SELECT 1 FROM sms_request WHERE state = 'claimed'",
    "claimed after it was accepted": (
        "SELECT 1 FROM sms_superseded s JOIN sms_request a ON a.id = s.request_id AND a.state = 'accepted' "
        "JOIN sms_message m ON m.message_key = s.message_key JOIN sms_request b ON b.id = m.request_id "
        "WHERE b.claimed_at > a.finished_at"
    ),
    "claimed in a pause": (
        "SELECT 1 FROM sms_request r JOIN sms_campaign c ON r.claimed_at > c.paused_at "
        "WHERE c.resumed_at IS NULL OR r.claimed_at < c.resumed_at"
    ),
}
"""What no row may match in the end."""


def judge(world):
    """Send the rest after a run, and return what is wrong."""
    if world.is_undone and any(isinstance(each.error, LedgerLostError) for each in world.ended):
        # It has forgotten people: nobody may send until a person has looked.
        twice = ["texted twice"] if max(_takes(world).values(), default=0) > 1 else []
        return [*sorted(world.wrong), *_of_counts(world), *twice]
    wrong = []
    for request, state in world.ledger.rows("SELECT id, decision FROM sms_request WHERE decided_by = 'balance'"):
        world.rare.add(f"the balance closed a request as {state}")
        if (state == ACCEPTED) != (request in world.paid):
            wrong.append("the balance closed a request wrongly")
    with world.freely():
        wrong += [words for each in world.ended for words in _of_end(world, each)]
    world.finish()
    wrong += [*_of_counts(world), *sorted(world.wrong)]
    for each in world.people:
        wrong += _of_person(world, bytes(each.key))
    (last,) = world.ended[-1:]
    if last.error is not None or last.summary["not_sent"]:
        wrong.append(f"the last attempt left somebody out: {last.error!r}")
    if world.forgotten is None and any(isinstance(each.error, LedgerLostError) for each in world.ended):
        wrong.append("an attempt says that the ledger went back, and it did not")
    if not world.case.strange and not all(isinstance(each.error, SmsError | None) for each in world.ended):
        wrong.append(f"unforeseen: {[each.error for each in world.ended]}")
    return [*wrong, *_of_claims(world), *_of_record(world), *_of_answers(world)]


def _of_claims(world):
    """Return what is wrong with when requests were claimed, by the clock of the ledger."""
    yield from (words for words, query in NEVER.items() if world.ledger.rows(query))
    claimed = world.ledger.rows("SELECT attempt_id, claimed_at FROM sms_request ORDER BY 1, 2")
    gaps = (then - before for (its, before), (other, then) in pairwise(claimed) if its == other)
    if world.case.rate and any(each < 1 / world.case.rate - 0.1 for each in gaps):
        yield "claimed sooner than the rate allows"


def _of_record(world):
    """Return what is wrong with what the ledger keeps of decisions, and of people who were texted twice."""
    states = {request: state for request, state, *_ in world.ledger.rows(STATE[2])}
    is_kept = all(states.get(each) in (outcome, ACCEPTED) for each, outcome in world.decided if each)
    if not is_kept or world.ledger.rows(OVERWRITTEN):
        yield "a decision is overwritten"
    recorded = {event for _, state, event, *_ in world.ledger.rows(STATE[2]) if state == ACCEPTED}
    known = Counter(key for key, event in world.taken[world.forgotten :] if event in recorded)
    said = sum(each.messages for each in world.texted_twice() if each.is_sure)
    if not world.known <= recorded:
        yield "a response is no longer in the ledger"
    if said < sum(count - 1 for count in known.values()):
        yield "known to be texted twice, and nothing says so"
    if said > sum(count - 1 for count in _takes(world).values()) + len(_lies(world, ACCEPTED)):
        yield "said to be texted twice, and was not"


def _of_end(world, ended):
    """Return what is wrong with what an operator is told at its end; a purge may have given its id to another one."""
    if world.left["purges"] < world.case.purges:
        return
    if world.case.on_unknown == "fail" and ended.unsettled:
        ended.reconciliation.show(ended.unsettled)
    own = world.attempts_of(ended.ledger._who)
    its = [each for each, _, _, attempt, *_ in world.ledger.rows(STATE[2]) if attempt in own]
    twice = [each for each in world.texted_twice() if {each.request_id, each.other_id}.intersection(its)]
    if ended.ledger.texted_twice() != twice:
        yield "an attempt is not told of those whom it texted twice, or of others"
    ((sent,),) = world.ledger.rows(SENT_BY_TASK.format(ended.ledger._who.task_id))
    if ended.ledger.sent_after(0, resends=False) != (sent, PRICE * sent):
        yield "what the task has sent is added up wrongly"


def _of_answers(world):
    """Return what is wrong with what the ledger tells people, other tasks and later attempts."""
    with world.freely():
        store = world.ledger.open(world)
        *own, others = (CampaignReader(store, CAMPAIGN, claimant(100, task_id=task)) for task in "abc")
        takes, (holders, _) = _takes(world), _holders(world)
        got = set(key_halves(b"".join(takes))[:, 0].tolist())
        who = {bytes(each.key): sum(row.messages for row in texted(store, each.destination)) for each in world.people}
        wrong = ["the list of who was texted lacks a text"] if any(who[key] < takes[key] for key in takes) else []
        states = world.ledger.rows("SELECT id, state FROM sms_request")
        if sum(count_requests(store, claimant(1, task_id=task)) for task in "abc") != len(states):
            wrong.append("the tasks have made another number of requests")
        unknown = {each for each, state in states if state == UNKNOWN}
        if {row.request_id for row in unknown_requests(store, CAMPAIGN)} != unknown:
            wrong.append("the list of unknown requests is another one")
        if takes and not (others.is_used() and others.has_others() and got <= _halves(others.blocks_of_others())):
            wrong.append("another task does not see whom this one texted")
        if not got <= set().union(*(_halves(each.earlier()) for each in own)):
            wrong.append("an attempt does not see what an earlier one texted")
        kept = world.ledger.rows("SELECT response FROM sms_request WHERE response IS NOT NULL ORDER BY 1")
        responses = sorted(response for each in own for response in each.responses(100))
        if [(each,) for each in responses] != kept or len(kept) != sum(each.count_responses() for each in own):
            wrong.append("responses are missing")
        by_response = [key for key, (_, state) in holders.items() if state == ACCEPTED and others.response_to(key)]
        if len(set(by_response) - set(takes) - world.left_out):
            wrong.append("there is a response to what was not taken")
        reconciliation = Reconciliation(store, CAMPAIGN, ACCOUNT.key, world.balance)
        told = {each: verdict.outcome for each, verdict in reconciliation.weigh(unknown).items()}
        told = {each: outcome == CHARGED for each, outcome in told.items() if outcome != UNDECIDED}
        if not world.lies and told != {each: each in world.paid for each in told}:
            wrong.append("the balance tells what is not so")
    return wrong


def _halves(blocks):
    """Return the first halves of the keys in blocks."""
    return {half for halves, *_ in blocks for half in halves.tolist()}


def _of_person(world, key):
    """Return what is wrong with what became of a message."""
    wrong = []
    takes, (holders, former) = _takes(world)[key], _holders(world)
    request, state = holders.get(key, (0, NOT_SENT))
    posts = [count for (posted, _), count in world.posted.items() if posted == key]
    freed = (world.forgotten or 0) + sum(outcome == NOT_SENT for _, outcome in world.decided)
    freed += len(world.ledger.rows(BY_BALANCE)) + (world.case.on_unknown == "resend")
    if max(posts, default=0) > 1 + freed:
        wrong.append("posted again and again by one process")
    if takes > 1:
        if world.case.on_unknown != "resend" and takes > 1 + _lies(world, NOT_SENT)[key]:
            wrong.append("texted twice")
        elif former[key] < takes - 1:
            wrong.append("texted twice, and nothing says so")
        else:
            world.rare.add("somebody was texted twice, and it is said")
    # What gives a claim back may fail, too.
    failed = world.is_away or world.case.commits - world.left["commits"] > 1
    has_died = world.is_undone or failed or world.left["crashes"] < world.case.crashes
    if state == UNKNOWN and not posts and not has_died:
        wrong.append("called unknown, and nobody posted it or died")
    if state not in (ACCEPTED, UNKNOWN):
        wrong.append(f"lost: {state}")
    if state == ACCEPTED and not takes and key not in world.left_out and (request, ACCEPTED) not in world.decided:
        wrong.append("wrongly accepted")
    return wrong


def _lies(world, state):
    """Return how often a person has wrongly called each message that."""
    return Counter({key: count for (called, key), count in world.lies.items() if called == state})


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
    for ended in world.ended:
        counts = {name: ended.summary[name] for name in COUNTS}
        if ended.summary["rows"] != sum(counts.values()) or min(counts.values()) < 0:
            wrong.append(f"counts do not add up: {counts}")
        # Whom the service left out of a request, nobody knows: these count as accepted, and their number is told.
        left_out = ended.summary["left_out"], min(len(world.left_out), counts["already_sent"])
        most = ended.taken + sum(left_out) + len(_lies(world, ACCEPTED))
        if counts["accepted"] + counts["already_sent"] > most:
            wrong.append(f"calls more sent than were taken: {counts}")
    return wrong
