"""What the actors of a run share: a ledger, a service in memory that witnesses, and a clock that is set."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from greenlet import getcurrent

from airflow_provider_sms.exceptions import (
    InputError,
    LedgerError,
    LedgerLostError,
    NotSentError,
    OutageError,
    RefusedError,
    ServiceError,
    ThrottledError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.attempts import adopt, has_trace, note_progress, register
from airflow_provider_sms.ledger.campaigns import find_campaign, pause, resume
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import require_unknown, resolve
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, AttemptState
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.ledger.purge import old_campaigns, purge
from airflow_provider_sms.ledger.requests import named_requests
from airflow_provider_sms.ledger.transitions import texted_twice
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending import sender as sender_module
from airflow_provider_sms.sending import stop_conditions as conditions_module
from airflow_provider_sms.sending import workers as workers_module
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Reconciliation, Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution, StopConditions
from airflow_provider_sms.sending.workers import WorkerPool, run_uninterrupted
from airflow_provider_sms.service.responses import Balance
from airflow_provider_sms.stop_flag import StopFlag
from support.engine import Table
from support.orders.schedule import Schedule, see
from support.sending import KEY, answer, claimant, people

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.orders.ledgers import Ledger

CAMPAIGN = read_name(" spring ")
POST_SECONDS = 15.0
LATER = 10_000.0
"""Seconds after which every claim has lapsed, and nobody may record its outcome any more."""
ENDED_BY = 1_000_000.0 + 3 * LATER
JUMP = 60.0
"""Seconds after which a claim has lapsed, while its process may still record its outcome."""
IDLE = 30.0
"""Seconds after which a purge forgets a campaign."""
CHARGED_LATE = 10.0
"""Seconds after which a late charge comes: before the claim's deadline."""
STATE = (
    "SELECT message_key, request_id FROM sms_message ORDER BY 1, 2",
    "SELECT message_key, request_id FROM sms_superseded ORDER BY 1, 2",
    "SELECT id, state, event_id, attempt_id, deadline, decision FROM sms_request ORDER BY 1",
    "SELECT read_at, amount FROM sms_balance ORDER BY 1, 2",
    "SELECT paused_at, resumed_at FROM sms_campaign",
    "SELECT id FROM sms_attempt ORDER BY 1",
)
HELD = "SELECT m.message_key, r.state, r.attempt_id FROM sms_message m JOIN sms_request r ON r.id = m.request_id"
ATTEMPTS = "SELECT id, task_id, try_number, host FROM sms_attempt"
CLAIMS = (
    "SELECT m.message_key, r.id, a.host, r.deadline FROM sms_message m JOIN sms_request r ON r.id = m.request_id "
    "JOIN sms_attempt a ON a.id = r.attempt_id WHERE r.state = 'claimed'"
)
AGAIN = (
    "SELECT s.message_key FROM sms_superseded s JOIN sms_request r ON r.id = s.request_id WHERE r.state = 'superseded'"
)
PRICE = Decimal("1.5")
PRICES = Prices(PRICE)
ACCOUNT = Account(KEY, PRICES.total)
OF_OTHERS = Decimal(7)
"""Credits that somebody else spends: more than any request costs."""
HOURS = SendWindow("09:00", "13:47", timezone="UTC")
"""They end within the first jump of the clock, at this time."""
HOURS_END = 1_000_020.0
OWN_HOURS = SendWindow("09:00", "15:47", timezone="UTC", recipient_time_zone=True)
"""The same in South Africa."""
REFUSALS = {
    "credit is out": partial(RefusedError, "refused", status=403, code="InsufficientCredits"),
    "refused": partial(ThrottledError, "refused", status=429),
    "refused for a second": partial(ThrottledError, "refused", status=429, retry_after=1.0),
}


@dataclass(frozen=True)
class Case:
    """What may happen, in every order.

    :param attempts: the try number and the task of each attempt.
    :param messages: people in the table of each attempt.
    :param chunk_size, concurrency: how many of them a request has at most, and requests in flight an attempt.
    :param on_unknown: as the operator's.
    :param lost: how many responses may be lost, before or after the service took the request.
    :param refused, poor: how many requests it may turn away, unprocessed; and how many for want of credit.
    :param partly: of how many it may take one message less.
    :param strange: how many POSTs may end in an error that nobody foresaw, or in a response that contradicts itself.
    :param doubled, late: how many may get the response of another one, or be charged late.
    :param crashes, stops: how many processes may die, and attempts be told to stop.
    :param commits: how many commits may fail, or be reported as failed.
    :param busy, undone: how many others may keep waiting for too long, and how many the server may undo.
    :param reads, unread: how many reads of the ledger may fail, and of the balance.
    :param spends: how often somebody else may spend, or pay in.
    :param jumps: how often time may pass until every claim has lapsed.
    :param decisions: how many unknown requests a person decides, either way.
    :param pauses, purges: how often a person may pause the campaign and resume it, and purge old ones.
    :param window: the hours in which to send; None means any.
    :param rate: requests per second; None means no limit.
    :param first: the steps of a history with which each order begins.
    """

    attempts: tuple[tuple[int, str], ...] = ((1, "a"), (1, "a"))
    messages: int = 1
    chunk_size: int = 1
    concurrency: int = 1
    on_unknown: str = "fail"
    lost: int = 0
    refused: int = 0
    poor: int = 0
    partly: int = 0
    strange: int = 0
    doubled: int = 0
    late: int = 0
    crashes: int = 0
    stops: int = 0
    commits: int = 0
    busy: int = 0
    reads: int = 0
    unread: int = 0
    spends: int = 0
    undone: int = 0
    jumps: int = 0
    decisions: int = 0
    pauses: int = 0
    purges: int = 0
    window: SendWindow | None = None
    rate: float | None = None
    first: tuple[str, ...] = ()


BUDGETS = [each.name for each in fields(Case) if each.default == 0]
"""What may happen so many times."""


@dataclass(frozen=True)
class Ended:
    """The end of an attempt: its summary, what had been taken by then, and its error."""

    summary: dict[str, Any]
    taken: int
    error: Exception | None
    ledger: CampaignLedger
    reconciliation: Reconciliation
    unsettled: frozenset[int]


class Mail(list[Any]):
    """The queue between a process and its requests in flight, which one reads when it is its turn."""

    def __init__(self, world):
        self._world = world

    put = list.append

    def get(self, timeout):
        """Wait for something; time passes only where nothing is in flight."""
        schedule = self._world.schedule
        if not (self._world.is_free or schedule.is_last()):
            schedule.step("collects", lambda: ("",) if self else ())
        if not self:
            self._world.now += timeout
            self._world.await_resumption()
        return self.get_nowait()

    def get_nowait(self):
        """Return what is there already."""
        if not self:
            raise queue.Empty
        see(self.told()[0])
        return self.pop(0)

    def told(self):
        """Return what is there, as a value that identifies it."""
        return [(request.request_id, repr(result)) for request, result in self]


class Pool(WorkerPool):
    """The threads of a process. An idle one takes no step, so one with a queue of its own begins with each request."""

    def __init__(self, world, *given):
        self._world = world
        super().__init__(*given)

    def submit(self, request):
        """Let a request be in flight."""
        thread, world = copy(self), self._world
        thread._given = queue.SimpleQueue()
        super(Pool, thread).submit(request)
        thread._given.put(None)
        if world.is_free:
            thread._run()
            return
        process, left = world.schedule.process(), world.left
        # Nothing else may change by then what it looks at before its post.
        is_first = lambda: not (request.asks or left["jumps"] or left["stops"] or left["doubled"])  # noqa: E731
        world.schedule.start(f"{process} request {request.request_id}", process, thread._run, is_first=is_first)


def thread(target, name, **_):
    """Return a thread that does nothing; or that of a send, which does all at once, as the other one only waits."""
    return SimpleNamespace(start=target if name == "sms-sender" else list, join=list, ident=name)


@dataclass
class World:
    """One run of a case.

    :param choose: see :class:`Schedule`.
    """

    case: Case
    ledger: Ledger
    choose: Callable[[int, Callable[[], bytes]], int]
    now: float = 1_000_000.0
    taken: list[tuple[bytes, int]] = field(default_factory=list)
    """The key and the event of each message that the service took."""
    left_out: set[bytes] = field(default_factory=set)
    """The messages that the service left out of a request that it took in part."""
    posted: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    """How often each process posted each message, by its key, and the service may have taken it."""
    charges: list[tuple[float, Decimal]] = field(default_factory=list)
    """Since when the balance shows which sum."""
    ended: list[Ended] = field(default_factory=list)
    decided: list[tuple[int, str]] = field(default_factory=list)
    forgotten: int | None = None
    """How many of :attr:`taken` a purge has forgotten; None before one has forgotten the campaign."""
    is_undone: bool = False
    is_away: bool = False
    """Whether the ledger was away for a process after a commit."""
    is_free: bool = False
    """Whether everything goes well at once, without a choice."""
    rare: set[str] = field(default_factory=set)
    """What happened that seldom does."""
    wrong: set[str] = field(default_factory=set)
    """What was wrong before the end."""
    paid: set[int] = field(default_factory=set)
    """The requests that the service took."""
    known: set[int] = field(default_factory=set)
    """The events of the responses that were in the ledger when their attempt ended."""
    flying: dict[int, tuple[float, set[bytes]]] = field(default_factory=dict)
    """Until when others may not have the messages of a request that was posted and has not ended."""
    lies: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    """How often a person has called a message what it was not."""

    def __post_init__(self):
        self.people = people(self.case.messages)
        self.left = {name: getattr(self.case, name) for name in BUDGETS}
        self.schedule = Schedule(self.choose, self._shared, self._observed, self._idle, self.case.first)
        self.ledger.empty()
        self._noted = set()
        """The tasks of which Airflow has a note."""
        self._stops = {}
        self._mails = []
        self._answered = {}
        """The last response to each process."""
        self._told = {}
        """The events of all responses to each process."""

    def play(self):
        """Run the case."""
        for number, (try_number, task) in enumerate(self.case.attempts):
            process = f"{task}{try_number}.{number}"
            work = partial(self._enter, number, process, try_number, task)
            self.schedule.start(process, process, work, at_once=True)
        outside = {"jumps": self._pass_time, "decisions": self._decide, "pauses": self._pause, "purges": self._purge}
        outside["spends"] = self._spend
        for name, work in outside.items():
            if self.left[name]:
                self.schedule.start(name, name, work, at_once=True, is_outside=True)
        self.schedule.run()

    def finish(self):
        """Send the rest by an attempt without faults, once every claim has lapsed."""
        self.now += LATER
        self.is_free = True
        self._by_person(resume)
        self._attempt("a", *self._prepare("last", 99, "a"))

    def freely(self):
        """Take no step meanwhile."""
        return patch.object(self, "is_free", new=True)

    @contextmanager
    def ending_by(self, moment):
        """Let no request begin that might end after a moment: a process may have hung between its look and its post."""
        getcurrent().moment = moment
        try:
            yield
        finally:
            del getcurrent().moment

    # Actors

    def _enter(self, number, process, try_number, task):
        if number:
            self.schedule.step("enters")
        self._attempt(task, *self._prepare(process, try_number, task))

    def _prepare(self, process, try_number, task):
        """Register an attempt, which takes no step; a person adopts a ledger that has no trace of an earlier one."""
        store = self.ledger.open(self)
        register = partial(self._register, store, claimant(try_number, task_id=task, host=process))
        with self.freely():
            ledger = register() if self._noted else self.ledger.first(register, self)
        self._noted.add(task)
        ledger.clock = ledger.elapsed = store.clock
        for name in ("holders", "states"):
            setattr(ledger, name, partial(self._read, getattr(ledger, name)))
        self._stops[process] = stop = StopFlag()
        return store, ledger, stop

    def _register(self, store, who):
        if who.task_id in self._noted and not has_trace(store, who):
            adopt(store, who)
        claimant_id = register(store, who)
        note_progress(store, CAMPAIGN, claimant_id, AttemptState.CHECKING)
        ledger = CampaignLedger(store, CAMPAIGN, who, claimant_id=claimant_id, account=ACCOUNT)
        ledger.lapse()
        return ledger

    def _attempt(self, task, store, ledger, stop):
        # Another task has the same people in another order, so that requests overlap in part.
        table, case = Table(self.people if task == "a" else self.people[1:] + self.people[:1]), self.case
        on_unknown, forgotten = "fail" if self.is_free else case.on_unknown, self.forgotten
        reconciles = on_unknown == "reconcile"
        reconciliation = Reconciliation(store, CAMPAIGN, ACCOUNT.key, self.balance)
        settle = Settle(ledger, reconciliation, on_unknown, stop, self.sleep, monotonic=lambda: self.now)
        stop_conditions = StopConditions(
            None if self.is_free else case.window,
            PRICES if case.poor else None,
            max_error_rate=0.4 if case.partly else None,
            caution=Caution(on=reconciles, calm=CALM_RESPONSES if reconciles else 1),
            clock=lambda: self.now,
        )
        sender = error = None
        try:
            if reconciles:
                with suppress(ServiceError):
                    reconciliation.observe()
            self._mails.append(Mail(self))
            with patch.object(sender_module.queue, "Queue", partial(self._mails.__getitem__, -1)):
                sender = Sender(
                    ledger,
                    self._post,
                    post_seconds=POST_SECONDS,
                    concurrency=case.concurrency,
                    max_requests_per_second=case.rate,
                    reconciles=reconciles,
                    ask=reconciliation.observe,
                    backoff=Backoff(attempts=3, base=0.0),
                    stop=stop,
                    stop_conditions=stop_conditions,
                    holds=settle.holds,
                    monotonic=lambda: self.now,
                )
            send = partial(table.send, ledger, sender, settle, case.chunk_size)
            run_uninterrupted(send, on_interrupt=stop.set, heartbeat=lambda: None)
            error = sender.error
            self.step("counts")
            with self.freely():
                table.count(ledger)
            if not isinstance(error, LedgerError):
                self._check_end(table.counts, ledger._who, forgotten)
        except LedgerError as failure:
            error = error or failure
            table.count_without_ledger()
        if isinstance(error, (LedgerLostError, OutageError)):
            self.rare.add(f"a send ended with {type(error).__name__}")
        if (reason := sender.stop_conditions.stop_reason if sender else None) is not None:
            self.rare.add("the credit ran out" if reason.until is None else "the hours ended")
        summary = table.summary(CAMPAIGN)
        counts = {name: summary[name] for name in ("rows", "left_out", *COUNTS)}
        unsettled = frozenset(table.counts.unsettled)
        taken = len({key for key, _ in self.taken})
        self.ended.append(Ended(counts, taken, error, ledger, reconciliation, unsettled))

    def attempts_of(self, who):
        """Return the ids of a process's attempt: its own, and those before it of the same try."""
        same = {host: each for each, *its, host in self.ledger.rows(ATTEMPTS) if its == [who.task_id, who.try_number]}
        return {each for each in same.values() if each <= same.get(who.host, 0)}

    def _check_end(self, counts, who, forgotten):
        """Look whether an attempt has recorded all responses and, unless a purge forgot some, counted all right."""
        own = self.attempts_of(who)
        held = {bytes(key): (state, attempt in own) for key, state, attempt in self.ledger.rows(HELD)}
        again = {bytes(key) for (key,) in self.ledger.rows(AGAIN)}
        is_of = Counter(held.get(each.key, (UNKNOWN if each.key in again else "free", False)) for each in self.people)
        accepted, already_sent = is_of[ACCEPTED, True], is_of[ACCEPTED, False]
        unknown = sum(is_of[each] for each in is_of if each[0] in (UNKNOWN, CLAIMED))
        told = counts.accepted, counts.already_sent, counts.unknown
        if self.forgotten == forgotten and told != (accepted, already_sent, unknown):
            self.wrong.add("counts differ from who holds the messages")
        recorded = {event for _, state, event, *_ in self.ledger.rows(STATE[2]) if state == ACCEPTED}
        if not (self.is_free or self.is_undone):
            told = self._told.get(self.schedule.process(), set())
            self.known |= told
            if told - recorded:
                self.wrong.add("a response is not in the ledger")

    def _read(self, read, *args):
        self.step("reads")
        return read(*args)

    def _pass_time(self):
        while self._takes("jumps", "passes"):
            self.now += JUMP

    def _decide(self):
        store = self.ledger.open(self)
        while self.left["decisions"]:
            chosen = self.schedule.step("decides", lambda: (ACCEPTED, NOT_SENT) if any(self._undecided(store)) else ())
            found = next(self._undecided(store))
            self.left["decisions"] -= 1
            if (chosen == ACCEPTED) != (found in self.paid):
                its = (key for query in STATE[:2] for key, request in self.ledger.rows(query) if request == found)
                self.lies.update((chosen, bytes(key)) for key in its)
            with self.freely():
                resolve(store, found, chosen, "Ann")
            self.decided.append((found, chosen))

    def _pause(self):
        while self._takes("pauses", "pauses"):
            self._by_person(pause)
            self.schedule.step("resumes")
            self._by_person(resume)

    def texted_twice(self):
        """Return what the ledger says about messages that were texted twice."""
        return self.ledger.open(self).fetch(lambda each: texted_twice(each, find_campaign(each, CAMPAIGN)))

    def _by_person(self, act):
        with self.freely(), suppress(InputError):  # a purge may have forgotten the campaign
            act(self.ledger.open(self), CAMPAIGN, "Ann")

    def _purge(self):
        while self._takes("purges", "purges"):
            with self.freely():
                store, before = self.ledger.open(self), self.now - IDLE
                is_open = {bytes(key) for key, state, _ in self.ledger.rows(HELD) if state != ACCEPTED}
                if purge(store, old_campaigns(store, before), before).campaigns:
                    self.taken.sort(key=lambda each: each[0] in is_open)
                    self.forgotten = sum(key not in is_open for key, _ in self.taken)
                    # The ledger may give another request the same id.
                    kept = {each for each, *_ in self.ledger.rows(STATE[2])}
                    self.paid &= kept
                    self.known &= {event for _, _, event, *_ in self.ledger.rows(STATE[2])}
                    self.decided = [(each if each in kept else 0, outcome) for each, outcome in self.decided]
                    self.rare.add("a purge forgot the campaign")

    def _spend(self):
        while self.left["spends"]:
            chosen = self.schedule.step("spends", lambda: ("", "pays in"))
            self.left["spends"] -= 1
            self.charges.append((self.now, -OF_OTHERS if chosen else OF_OTHERS))

    def _takes(self, budget, label):
        if not self.left[budget]:
            return False
        self.schedule.step(label)
        self.left[budget] -= 1
        return True

    def _undecided(self, store):
        """Yield the requests about which a person may decide."""
        ids = [each for each, state, *_ in self.ledger.rows(STATE[2]) if state in (CLAIMED, UNKNOWN)]
        with self.freely():
            rows = named_requests(store, ids) if ids else ()
        for row in rows:
            with suppress(InputError):
                require_unknown(row)
                yield row.request_id

    def await_resumption(self):
        """Wait while the campaign is paused: a send that is held back looks again and again."""
        if self.left["pauses"] < self.case.pauses and not self.is_free and self._is_paused():
            self.rare.add("a pause held a send back")
            self.schedule.step("is held back", lambda: () if self._is_paused() else ("",))

    def _is_paused(self):
        return any(paused and not resumed for paused, resumed in self.ledger.rows(STATE[4]))

    # The service

    def _post(self, messages):
        process = "" if self.is_free else self.schedule.process()
        faults = {"lost": ("lost", "taken, then lost"), "refused": tuple(REFUSALS)[1:], "poor": tuple(REFUSALS)[:1]}
        faults["late"] = ("taken and charged late", "taken and charged late, then lost")
        faults["strange"] = ("taken, then an unforeseen error", "taken, then contradicted")
        faults["partly"] = ("taken in part",) if len(messages) > 1 else ()
        if self.left["doubled"] and process in self._answered:  # a connection may carry once more what it has carried
            see("answered")
            faults["doubled"] = ("another's response", "taken, then another's response")
        outcome = self.step("posts", ("taken",), faults)
        if self.now + POST_SECONDS > getattr(getcurrent(), "moment", self.now + POST_SECONDS):
            raise NotSentError("too little time is left")
        if outcome in REFUSALS:
            raise REFUSALS[outcome]()  # noqa: RSE102  # made here
        see(event := 1 + len({each for _, each in self.taken}))
        left_out = int(outcome == "taken in part")
        with self._in_flight(messages, process) as request:
            if outcome.startswith("taken"):
                self._take(messages, event, left_out, CHARGED_LATE if "charged late" in outcome else 0.0)
                self.paid.add(request)
            if outcome.endswith("lost"):
                raise UnknownOutcomeError("lost")
            if outcome.endswith("unforeseen error"):
                raise RuntimeError(outcome)
            if outcome.endswith("another's response"):
                return self._answered[process]
            self.step("is answered")
        self._note_lateness(messages)
        response = answer(event, len(messages) - left_out, left_out)
        if outcome.endswith("contradicted"):
            response = replace(response, messages=0)
        else:
            self._told.setdefault(process, set()).add(event)
        self._answered[process] = response
        return response

    def _take(self, messages, event, left_out, seconds):
        """Take messages but the first ones, and charge for them, whether or not the process still lives by then."""
        if left_out:
            self.rare.add("a request was taken in part")
            self.left_out.update(bytes(key) for key in messages.keys[:left_out])
        taken = messages.keys[left_out:]
        self.taken += [(bytes(key), event) for key in taken]
        self.charges.append((self.now + seconds, PRICE * len(taken)))

    @contextmanager
    def _in_flight(self, messages, process):
        """Yield the request that is posted, by the claim of its process; nobody may post its messages meanwhile."""
        keys, claims = {bytes(key) for key in messages.keys}, self.ledger.rows(CLAIMS)
        self.posted.update((key, process) for key in keys)
        live = {bytes(key): (deadline, each) for key, each, host, deadline in claims if host == process}
        found = {live.get(key, (0.0, 0)) for key in keys}
        until, request = max(found)
        if not (self.is_free or self.is_undone):
            if len(found) > 1 or until < self.now:
                self.wrong.add("posted without a claim")
            if self.case.window and self.now >= HOURS_END:
                self.wrong.add("posted when the hours had ended")
            if any(its & keys and ends >= self.now for ends, its in self.flying.values()):
                self.wrong.add("posted while another request with it was under way")
        self.flying[request] = until, keys
        try:
            yield request
        finally:
            self.flying.pop(request, None)  # two that a commit has lost are both 0

    def _note_lateness(self, messages):
        """Look what has become of a request before its response comes."""
        if self.is_free:
            return
        key = bytes(messages.keys[0])
        former = {bytes(each) for each, _ in self.ledger.rows(STATE[1])}
        states = {bytes(each): state for each, state, _ in self.ledger.rows(HELD)}
        if key in former:
            self.rare.add(f"a response came when its message was free again, and {states.get(key, 'free')}")
        elif states.get(key) != CLAIMED:
            self.rare.add(f"a response came when its request was {states.get(key)}")

    def balance(self):
        """Return the account's balance, if it can be read."""
        outcome = self.step("asks", faults={"unread": ("is not answered", "is refused")})
        if outcome:
            self.rare.add("a balance was not told")
            raise (RefusedError if outcome == "is refused" else ServiceError)(outcome)
        see(credit := Decimal(1000) - sum(amount for since, amount in self.charges if since <= self.now))
        return Balance(credit, post_paid=False)

    def step(self, label, well=("",), faults=None):
        """Take a step of a process, which may die before it; where there is no choice, do not wait for a turn."""
        if self.is_free:
            return well[0]
        budgets = {**(faults or {}), "crashes": ("dies",), "stops": ("is stopped",)}

        def outcomes():
            return (*well, *(each for name, some in budgets.items() if self.left[name] for each in some))

        chosen = self.schedule.step(label, outcomes)
        for name, some in budgets.items():
            self.left[name] -= chosen in some
        if chosen == "dies":
            self.schedule.kill(self.schedule.process())
            self.schedule.step("is dead")
        if chosen == "is stopped":
            self._stops[self.schedule.process()].set()
            return well[0]
        if chosen in ("is undone", "is called failed", "is the last one"):
            self.is_undone |= chosen == "is undone"
            self.rare.add(f"a commit {chosen}")
        return chosen

    # Time

    def sleep(self, _):
        """Wait until the ledger has changed, or until nobody else can move: then time passes."""
        if self.is_free:
            self.now += JUMP
            if self.now > ENDED_BY:
                self.wrong.add("the last attempt waits for ever")
                raise LedgerError("waits for ever")
            return
        now = self.now
        if any(each.is_dead for each in self.schedule.actors):
            self.rare.add("somebody waited when a process had died")
        self.schedule.step("waits", lambda: ("",) if self.now != now else ())

    def _idle(self):
        self.now += JUMP
        return any(each.label == "waits" and not each.is_over for each in self.schedule.actors)

    def _observed(self, process):
        # The milliseconds of commits matter where balances are weighed, and nowhere else: deadlines are seconds away.
        now = self.now if self.case.on_unknown == "reconcile" else round(self.now)
        return now, process in self._stops and self._stops[process].is_set()

    def end(self):
        """Return what the end of a run is judged by."""
        ends = tuple((tuple(each.summary.items()), each.taken, repr(each.error)) for each in self.ended)
        seen = map(sorted, (self.wrong, self.paid, self.known, self.lies.items(), self.posted.items()))
        told, rows = (*seen, self.left, self.charges), tuple(tuple(self.ledger.rows(each)) for each in STATE)
        return rows, sorted(self.taken), self.decided, ends, self.forgotten, self.is_undone, self.is_away, told

    def _shared(self):
        stopped = sorted(name for name, each in self._stops.items() if each.is_set())
        flying = sorted((each, until) for each, (until, _) in self.flying.items())
        told = sorted((name, sorted(events)) for name, events in self._told.items())
        responses = repr(self._answered), told, [each.told() for each in self._mails]
        return self.end(), self.taken, self.now, stopped, flying, sorted(self.left_out), responses


@contextmanager
def patched(world):
    """Let the processes of a run take their steps in turn."""
    with (
        patch.object(sender_module, "WorkerPool", partial(Pool, world)),
        patch.object(workers_module, "threading", SimpleNamespace(Thread=thread, Event=threading.Event)),
        patch.object(sender_module, "POLL_SECONDS", 1000.0),
        patch.object(sender_module, "ending_by", world.ending_by),
        patch.object(conditions_module, "FIRST_JUDGED", 2),
        patch.object(conditions_module, "WINDOW_MESSAGES", 2),
    ):
        yield
