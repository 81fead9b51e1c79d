"""Lost requests that the balance closes: ``python -m support.faults.reconcile``.

Each row is one way in which responses are lost while somebody may spend from the account, and says whether that keeps
to what the balance assumes. Where it does, nothing may be closed wrongly. Where it does not, what was closed wrongly is
counted apart, as *misled*: the documentation names these cases.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from airflow_provider_sms.ledger.model import ACCEPTED
from support.faults import kills
from support.faults.arena import Arena
from support.faults.points import IN_TRANSACTION, POINTS, SETTLE_POINTS
from support.faults.tries import SETTLE_SECONDS, Ended, attempt
from support.faults.verdict import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from support.faults.tries import Campaign, Ledgers

PEOPLE = 4
"""In a request, which costs as many credits."""
MOST_TRIES = 4
"""Attempts of a task: an outage of two requests ends one."""
ANSWERED, TAKEN, NOT_TAKEN = ".", "t", "n"
FATES: Mapping[str, Mapping[str, Any]] = {
    ANSWERED: {"kind": "none"},
    TAKEN: {"kind": "drop_after"},
    NOT_TAKEN: {"kind": "drop_before"},
}
"""What the sandbox is asked for: a response; or none, to a request that it has taken, or has not."""
LOST = ("drop_after", "drop_before")
MIXTURES = tuple("".join(fates) for fates in itertools.product(FATES, repeat=5))
OTHER_SUMS = (0.37, 1000.0, -0.37, -1000.0)
"""Credits that somebody else spends, which no lost request can have cost; a negative amount is a top-up."""
LIKE_SUMS = (4.0, 2.0, -4.0, -2.0)
"""Credits that a lost request costs, or a part of it."""
FEW = (f"..{TAKEN}..", f"..{NOT_TAKEN}..", ".tt..", ".tn..", ".nt..", ".nn..")
"""What befalls requests while somebody else spends."""
LATE_POINTS = ("before the post", "before connecting", "connected", "headers sent", "half sent")
"""Where a process has looked at its deadline for the last time, and the service may still take its request."""
OTHER_POINTS = [point for point in POINTS if point not in LATE_POINTS and point not in IN_TRANSACTION]
THREE_OF_TEN = "3 of 10 responses lost, at random"


@dataclass(frozen=True, slots=True)
class Spent:
    """What somebody else spends.

    :param amount: credits; a negative amount is a top-up.
    :param on: the requests that it is close to: ``send`` or ``balance``.
    :param nth: which of them, from 1.
    :param when: ``before`` or ``after``; of a ``send`` always before it.
    """

    amount: float
    on: str
    nth: int
    when: str = "before"


@dataclass(frozen=True, slots=True)
class Case:
    """One campaign.

    :param fates: what befalls its first requests, a letter each, see :data:`FATES`.
    :param bold: whether requests go at once from the beginning; else as an operator sends them that reconciles.
    :param charged_after: seconds after which a request is charged for whose response is lost.
    :param answered_late: whether others are charged for so late, too.
    :param tasks: how many send at once, each a campaign of its own, from one account.
    :param killed: where a process is killed that settles the first lost request; None kills none.
    :param stopped: where a process stops, the third time, until its deadline is past and another one has sent the rest;
        then it goes on. None stops none.
    """

    fates: str
    concurrency: int = 1
    bold: bool = False
    spent: Spent | None = None
    charged_after: float = 0.0
    answered_late: bool = False
    tasks: int = 1
    killed: str | None = None
    stopped: str | None = None

    @property
    def faults(self) -> list[dict[str, Any]]:
        """What the sandbox is asked for."""
        faults = [dict(FATES[fate]) for fate in self.fates]
        for fault in faults:
            if fault["kind"] == "drop_after" or (self.answered_late and fault["kind"] == "none"):
                fault["charge_after"] = self.charged_after
        if self.spent is not None and self.spent.on == "balance":
            spent = {"kind": "spend", "on": "balance", "amount": self.spent.amount, "when": self.spent.when}
            faults += [{"kind": "none", "on": "balance"}] * (self.spent.nth - 1) + [spent]
        return faults


@dataclass(frozen=True, slots=True)
class Row:
    """Cases of one kind.

    :param cases: gives them, few or all.
    :param assumed: whether they keep to what the balance assumes of the account.
    :param decided: whether nothing may be left unknown.
    :param by_chance: whether the order in which requests end tells how much is decided: a few cases may decide nothing.
    """

    name: str
    cases: Callable[[bool], Sequence[Case]]
    assumed: bool = True
    decided: bool = False
    by_chance: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What became of the lost requests of a row.

    :param lost: requests whose response was lost.
    :param wrong: requests that were closed wrongly.
    """

    lost: int
    wrong: int
    figures: Figures

    @property
    def right(self) -> int:
        """Requests that were closed rightly."""
        return self.figures.reconciled // PEOPLE - self.wrong

    @property
    def unknown(self) -> int:
        """Requests that the balance left unknown."""
        return self.figures.unknown // PEOPLE


def _some(cases: Sequence[Case], quick: bool, count: int = 4) -> Sequence[Case]:  # noqa: FBT001  # from the section
    """Return all cases, or a few of them from all over."""
    return random.Random(len(cases)).sample(cases, min(count, len(cases))) if quick else cases


def _one_at_a_time(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    return _some([Case(fates) for fates in MIXTURES], quick, 6)


def _at_once(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    return _some([Case(fates, concurrency, bold=True) for fates in MIXTURES for concurrency in (2, 4)], quick)


def _three_of_ten(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    return at_random(3, 10, 6 if quick else 300)


def at_random(lost: int, requests: int, count: int, seed: int = 0) -> list[Case]:
    """Return campaigns in which some responses are lost, at random places, to requests that were taken or not.

    :param lost: how many responses, of so many requests.
    :param count: number of campaigns.
    """
    cases = []
    for number in range(seed, seed + count):
        chance = random.Random(number)
        places = chance.sample(range(requests), lost)
        fates = [chance.choice((TAKEN, NOT_TAKEN)) if place in places else ANSWERED for place in range(requests)]
        cases.append(Case("".join(fates), concurrency=4))
    return cases


def _once_calm(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    """Return campaigns that lose responses after so many were received that requests go at once."""
    cases = [Case("." * 22 + fates, 4) for fates in MIXTURES if ANSWERED not in fates]
    return _some(cases, quick, 1)


def _spent(amounts: Sequence[float]) -> Callable[[bool], Sequence[Case]]:
    points = [("send", nth, "before") for nth in range(1, 7)]
    points += [("balance", nth, when) for nth in range(1, 5) for when in ("before", "after")]
    every = [Case(fates, spent=Spent(amount, *point)) for fates in FEW for amount in amounts for point in points]
    return lambda quick: _some(every, quick)


def _spent_at_once(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    fates = [mixture for mixture in MIXTURES if mixture.startswith("..") and TAKEN in mixture]
    spent = [Spent(amount, "send", nth) for amount in (1000.0, -1000.0) for nth in range(2, 6)]
    return _some([Case(each, 4, bold=True, spent=some) for each in fates for some in spent], quick)


def _late(*seconds: float, answered: bool = False) -> Callable[[bool], Sequence[Case]]:
    fates = [mixture for mixture in MIXTURES if mixture.startswith("..") and TAKEN in mixture]
    every = [
        Case(each, concurrency, bold=concurrency > 1, charged_after=late * SETTLE_SECONDS, answered_late=answered)
        for each in fates
        for concurrency in (1, 4)
        for late in seconds
    ]
    return lambda quick: _some(every, quick)


def _killed(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    fates = (f".{TAKEN}..", f".{NOT_TAKEN}..")
    return _some([Case(each, killed=point) for point in SETTLE_POINTS for each in fates], quick, 3)


def _stopped(points: Collection[str]) -> Callable[[bool], Sequence[Case]]:
    every = [Case(ANSWERED * 4, stopped=point) for point in points]
    return lambda quick: _some(every, quick, 2)


def _two_tasks(quick: bool) -> Sequence[Case]:  # noqa: FBT001
    every = [
        Case("".join(random.Random(seed).choices(list(FATES), (5, 2, 1), k=12)), concurrency, tasks=2)
        for seed in range(60)
        for concurrency in (1, 4)
    ]
    return _some(every, quick)


ROWS = (
    Row("responses lost, one request at a time", _one_at_a_time, decided=True),
    Row(THREE_OF_TEN, _three_of_ten, decided=True),
    Row("responses lost, 2 and 4 requests at once", _at_once),
    Row("responses lost after 22, 4 requests at once", _once_calm),
    Row("charged for late, but before it is settled", _late(0.3, 0.6)),
    Row("process killed while it settles", _killed),
    Row("process stops past its deadline, then goes on", _stopped(OTHER_POINTS)),
    Row("two tasks on the account, both lose responses", _two_tasks),
    Row("others spend or top up sums that no request costs", _spent(OTHER_SUMS)),
    Row("the same, 4 requests at once", _spent_at_once, by_chance=True),
    Row("others spend or top up just what a request costs", _spent(LIKE_SUMS), assumed=False),
    Row("charged for after it counts as settled", _late(3.0, 1000.0), assumed=False),
    Row("charged for late though answered", _late(0.6, 3.0, answered=True), assumed=False),
    Row("process stops past its deadline right before or in its request", _stopped(LATE_POINTS), assumed=False),
)


def run(ledgers: Ledgers, quick: bool) -> Figures:  # noqa: FBT001  # the common signature of all sections
    """Run all rows, and return the figures; what was closed wrongly against the assumptions counts as misled alone.

    :param ledgers: function that opens the ledger.
    :param quick: True selects some of the cases.
    """
    figures = Figures()
    for row in ROWS:
        figures += of_section(row, play(ledgers, row, row.cases(quick)))
    return figures


def of_section(row: Row, told: Told) -> Figures:
    """Return the figures of a row as those of the section.

    :raises AssertionError: when a response is unknown that the balance tells of.
    """
    found = told.figures
    if row.decided and found.unknown:
        raise AssertionError(f"{row.name}: {told.unknown} requests are unknown")
    if row.assumed:
        return found
    return Figures(cases=found.cases, unknown=found.unknown, reconciled=found.reconciled, misled=told.wrong * PEOPLE)


def play(ledgers: Ledgers, row: Row, cases: Sequence[Case]) -> Told:
    """Run cases of a row, and return what became of their lost requests."""
    with Arena(ledgers, keep_alive=kills.PATIENCE, reconciles=True, loud=row.assumed) as arena:
        lost, wrong = map(sum, zip(*(one(arena, case) for case in cases), strict=True))
    return Told(lost, wrong, arena.figures)


def one(arena: Arena, case: Case) -> tuple[int, int]:
    """Run one case, and return how many requests lost their response, and how many were closed wrongly."""
    service = arena.sandbox.state
    service.reset()
    service.set_faults(case.faults)
    campaigns = [arena.campaign(PEOPLE * len(case.fates) // case.tasks, PEOPLE) for _ in range(case.tasks)]
    campaigns = [replace(campaign, account=campaigns[0].name) for campaign in campaigns]
    spend = _spender(case, service)
    if case.stopped is not None:
        arena.look(campaigns[0], kills.hung(arena, campaigns[0], case.stopped, 3))
    if case.killed is not None:
        kills.killed(arena, campaigns[0], case.killed, 1)
    with ThreadPoolExecutor(case.tasks) as pool:
        every = list(pool.map(lambda campaign: list(_attempts(campaign, case, spend)), campaigns))
    for campaign, attempts in zip(campaigns, every, strict=True):
        for ended in attempts:
            arena.look(campaign, ended)
    service.set_faults([])
    for campaign in campaigns:
        arena.resume(str(case), campaign)
    lost = sum(request.operation == "bulk" and request.fault in LOST for request in service.requests)
    return lost + (case.stopped is not None), sum(_wrong(arena, campaign) for campaign in campaigns) // PEOPLE


def _wrong(arena: Arena, campaign: Campaign) -> int:
    """Return how many people are accepted who were not texted, or were texted again."""
    witness, states = arena.witnessed(), arena.states(campaign)
    texted = {key: witness[sent] for key, sent in campaign.expected.items()}
    return sum(times > 1 or (states.get(key) == ACCEPTED and not times) for key, times in texted.items())


def _attempts(campaign: Campaign, case: Case, spend: Callable[[], None]) -> Iterator[Ended]:
    """Send as a task does that Airflow starts again after a failure."""
    if case.stopped is not None:
        return
    first = 1 if case.killed is None else 2
    for number in range(first, first + MOST_TRIES):
        ended = attempt(campaign, number, concurrency=case.concurrency, before_post=spend, bold=case.bold)
        yield ended
        if ended.error is None:
            break


def _spender(case: Case, service: Any) -> Callable[[], None]:
    """Return a function to be called before each request, which lets somebody else spend before one of them."""
    posts, lock = itertools.count(1), threading.Lock()

    def spend() -> None:
        with lock:
            spent = case.spent
            if spent is not None and spent.on == "send" and next(posts) == spent.nth:
                (service.spend if spent.amount > 0 else service.top_up)(abs(spent.amount))

    return spend


def table_of(found: Mapping[str, Told]) -> Table:
    """Return the results of rows as a table."""
    columns = ("campaigns", "lost responses", "closed rightly", "unknown", "closed wrongly", "texted twice", "lost")
    table = Table("what befell the requests", title="Lost responses that the balance explains, in requests")
    for column in columns:
        table.add_column(column, justify="right")
    for assumed in (True, False):
        for row in ROWS:
            if row.name in found and row.assumed == assumed:
                told = found[row.name]
                twice, lost = told.figures.duplicates // PEOPLE, told.figures.lost
                cells = (told.figures.cases, told.lost, told.right, told.unknown, told.wrong, twice, lost)
                name = row.name if assumed else f"not assumed: {row.name}"
                table.add_row(name, *(f"{cell:,}" for cell in cells))
        table.add_section()
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what became of the lost requests of each row; return 1 if the promise was broken, else 0."""
    from support.faults.stores import STORES, a_ledger
    from support.faults.table import quiet

    parser = argparse.ArgumentParser(prog="python -m support.faults.reconcile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only some of the cases")
    parser.add_argument("--store", choices=STORES, default=STORES[0])
    parser.add_argument("--only", default="", help="a part of the names of the rows to run")
    given = parser.parse_args(arguments)
    found: dict[str, Told] = {}
    broken = 0
    for row in ROWS:
        if given.only in row.name:
            with a_ledger(given.store) as ledgers, quiet():
                found[row.name] = told = play(ledgers, row, row.cases(given.quick))
            broken += row.assumed and told.figures.broken + row.decided * told.figures.unknown
            sys.stderr.write(f"{row.name}: {told}\n")
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table_of(found))
    if (told := found.get(THREE_OF_TEN)) is not None:
        figures = told.figures
        console.print(
            f"With 3 of 10 responses lost, in {figures.cases:,} campaigns at random: {told.lost:,} requests lost, "
            f"{told.unknown:,} unknown, {told.wrong:,} closed wrongly, {figures.duplicates:,} people texted twice, "
            f"{figures.lost:,} lost.",
            soft_wrap=True,
        )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
