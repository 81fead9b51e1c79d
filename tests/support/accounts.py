"""Sends on one pre-paid account by a simulator that knows the truth.

Tasks post, lose responses, hold their claims, read the balance and die as the engine has it; what the balance told in
the end is compared with what the account was charged for.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.account import CHARGED, UNDECIDED, BilledRequest, Reading
from airflow_provider_sms.sending.evidence import judge, windows
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Sequence

DEADLINE = 45.0
"""Seconds from a claim to its deadline: as the defaults have it."""
RETRY_SECONDS = 60.0
WHOLE_DAY = 86_400.0


@dataclass(frozen=True)
class Setting:
    """What befalls the sends on an account.

    :param tasks: of each how many requests it has, and how many at a time.
    :param lost: share of requests whose response is lost.
    :param taken: share of these that the service took.
    :param silent: share of these that are noticed after 30 seconds, else at once.
    :param taken_late: share of the lost and taken that are taken after the loss was noticed, before the deadline.
    :param left_out: the largest share of a request's cost that the service leaves out.
    :param prices: ``one`` size and price; ``sizes``; ``exact``: three prices, known by number; ``bounds``: only between
        which sums a request's cost lies.
    :param deaths: share of claims within a second of which the process dies.
    :param others: seconds between the sums that others spend, on average, and the credits; less than 0: a top-up.
    """

    tasks: Sequence[tuple[int, int]] = ((60, 4),)
    lost: float = 0.3
    taken: float = 0.5
    silent: float = 0.1
    taken_late: float = 0.05
    left_out: float = 0.0
    prices: str = "one"
    deaths: float = 0.0
    others: Sequence[tuple[float, float]] = ()

    @classmethod
    def at_random(cls, seed):
        """Return a setting within the assumptions."""
        chance = random.Random(seed)
        return cls(
            tasks=[(chance.randint(5, 60), chance.randint(1, 8)) for _ in range(chance.choice((1, 1, 2, 3)))],
            lost=chance.choice((0.02, 0.1, 0.3, 0.6)),
            taken=chance.choice((0.0, 0.2, 0.5, 0.8, 1.0)),
            silent=chance.choice((0.0, 0.1, 0.9)),
            taken_late=chance.choice((0.0, 0.05, 0.5)),
            left_out=chance.choice((0.0, 0.4, 0.95)),
            prices=chance.choice(("one", "sizes", "exact", "bounds")),
            deaths=chance.choice((0.0, 0.0, 0.02)),
        )


@dataclass
class Sent:
    """A request as it was: the truth, and what the ledger has of it."""

    id: int
    at: float
    least: Decimal
    most: Decimal
    charge: Decimal
    is_lost: bool
    is_taken: bool = False
    ended: float | None = None
    stated: Decimal | None = None
    is_alone: bool = False

    def billed(self):
        """Return the request as the ledger has it now."""
        closed_at = self.at + DEADLINE if self.stated is None or self.ended is None else self.ended
        return BilledRequest(self.id, self.at, closed_at, self.least, self.most, self.stated)


@dataclass
class Task:
    """A task, over all its attempts."""

    left: int
    concurrency: int
    life: int = 0
    in_flight: set[int] = field(default_factory=set)
    is_cautious: bool = True
    calm: int = 0
    is_reading: bool = False
    reads_at: float = 0.0
    is_done: bool = False


class Account:
    """The sends on an account, from begin to end."""

    def __init__(self, setting, seed):
        self.setting = setting
        self.chance = random.Random(seed)
        self.now = 0.0
        self.balance = Decimal(3_000_000)
        self.sent = []
        self.readings = []
        self.tasks = [Task(*each) for each in setting.tasks]
        self._events = []
        self._count = 0
        for number, task in enumerate(self.tasks):
            self._at(1.0 + number / 2, self._ask, task, 0)
        for seconds, amount in setting.others:
            self._at(self.chance.expovariate(1 / seconds), self._spend, seconds, Decimal(str(amount)))
        while not all(task.is_done for task in self.tasks) and self.now < WHOLE_DAY:
            self.now, _, event, given = heapq.heappop(self._events)
            event(*given)

    def found(self):
        """Return how many requests were lost, how many of them are undecided, and how many verdicts are wrong."""
        verdicts = judge(self.readings, [each.billed() for each in self.sent])
        lost = [each for each in self.sent if each.stated is None]
        undecided = [each for each in lost if verdicts[each.id].outcome == UNDECIDED]
        wrong = [each for each in lost if each.is_taken != (verdicts[each.id].outcome == CHARGED)]
        return len(lost), len(undecided), len([each for each in wrong if each not in undecided])

    def _at(self, when, event, *given):
        self._count += 1
        heapq.heappush(self._events, (when, self._count, event, given))

    def _spend(self, seconds, amount):
        self.balance -= amount
        self._at(self.now + self.chance.expovariate(1 / seconds), self._spend, seconds, amount)

    def _take(self, sent):
        self.balance -= sent.charge
        sent.is_taken = True

    def _costs(self):
        """Return what all of the next request costs, and the least and the most that it is expected to cost."""
        chance, prices = self.chance, self.setting.prices
        if prices in ("one", "sizes"):
            cost = Decimal(100 if prices == "one" else chance.randint(1, 100))
            return cost, cost, cost
        cheap, dear = chance.randint(0, 50), chance.randint(0, 50)
        cost = Decimal("0.5") * cheap + (100 - cheap - dear) + 3 * dear
        return (cost, cost, cost) if prices == "exact" else (cost, Decimal(50), Decimal(300))

    def _step(self, task, life):
        if task.life != life or task.is_done or task.is_reading:
            return
        if (settles_at := self._in_doubt()) is not None:
            if not task.in_flight:
                # A lost one may be seen as charged at once: whoever lost it reads, and all do when it is settled.
                when = max(task.reads_at, self.now)
                task.reads_at = settles_at + 0.01 if settles_at > self.now else self.now + 1.0
                self._at(when, self._ask, task, life)
                task.is_reading = True
            return
        if not task.left and not task.in_flight:
            task.is_done = True
        while task.left and len(task.in_flight) < (1 if task.is_cautious else task.concurrency):
            self._claim(task)

    def _in_doubt(self):
        """Return when the last lost request is settled that is in no window yet; None where there is none."""
        recent = [each for each in self.sent if each.stated is None and each.at + DEADLINE > self.now - 60.0]
        ended = [each for each in recent if each.ended or self.now > each.at + DEADLINE]
        _, last = windows(self.readings, [each.billed() for each in self.sent]) if ended else (None, None)
        return max((each.at + DEADLINE for each in ended if last is not None and each.at >= last.read_at), default=None)

    def _ask(self, task, life):
        task.is_reading = True
        self._at(self.now + self.chance.uniform(0.02, 0.1), self._read, task, life, self.now)

    def _read(self, task, life, asked_at):
        self._at(self.now + self.chance.uniform(0.02, 0.1), self._record, task, life, asked_at, self.balance)

    def _record(self, task, life, asked_at, amount):
        self.readings.append(Reading(asked_at, self.now, amount))
        if task.life == life:
            task.is_reading = False
        for each in self.tasks:
            self._step(each, each.life)

    def _claim(self, task):
        chance, setting = self.chance, self.setting
        cost, least, most = self._costs()
        charge = (cost * Decimal(str(round(1 - chance.uniform(0, setting.left_out), 2)))).quantize(Decimal("0.01"))
        sent = Sent(len(self.sent), self.now, least, most, charge, is_lost=chance.random() < setting.lost)
        sent.is_alone = task.is_cautious
        self.sent.append(sent)
        task.left -= 1
        task.in_flight.add(sent.id)
        taken_at = self.now + chance.uniform(0.02, 0.3)
        ends_at = taken_at + chance.uniform(0.02, 0.3)
        if sent.is_lost:
            ends_at = self.now + chance.uniform(*((30, 35) if chance.random() < setting.silent else (0.3, 0.6)))
            if chance.random() < setting.taken_late:
                taken_at = chance.uniform(ends_at, self.now + DEADLINE - 0.01)
        if not sent.is_lost or chance.random() < setting.taken:
            self._at(taken_at, self._take, sent)
        self._at(ends_at, self._end, task, task.life, sent)
        if chance.random() < setting.deaths:
            self._at(self.now + chance.uniform(0, 1), self._die, task, task.life)

    def _end(self, task, life, sent):
        if task.life != life:
            return
        sent.ended = self.now
        task.in_flight.discard(sent.id)
        if sent.is_lost:
            task.is_cautious, task.calm, task.reads_at = True, 0, self.now
        else:
            sent.stated = sent.charge
            task.calm += sent.is_alone
            task.is_cautious = task.calm < CALM_RESPONSES
        self._step(task, life)

    def _die(self, task, life):
        if task.life != life or not task.in_flight:
            return
        task.life += 1
        task.in_flight, task.is_cautious, task.calm = set(), True, 0
        task.is_reading = True
        self._at(self.now + RETRY_SECONDS, self._ask, task, task.life)
