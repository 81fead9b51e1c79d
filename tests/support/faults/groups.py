"""Two campaigns of one group at once, with people in common, random schedules and occasional pauses.

Whatever fails, nobody is texted by both; each person whom one campaign leaves out is held by the other; and once a
pause has returned, nothing more is claimed until it ends.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.pauses import pause, resume
from support.faults.lives import FREE_POINTS, PATIENCE, Wire
from support.faults.plans import FIRST_NUMBER, OPTED_OUT, STEPS_A_REQUEST, Mishap, plan_of
from support.faults.schedules import MOST_TRIES, Game
from support.faults.sendings import Clock, outgoing, text_of
from support.faults.stage import play_all
from support.faults.verdict import Figures, judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.plans import Plan
    from support.faults.sendings import Sending
    from support.faults.stage import Stage

FULL = 1_000
QUICK = 8
CAMPAIGNS = 2
POOL = 90
"""People from whom both tables are drawn: about as many as the largest table, so that most are in both."""
WEEK = 7 * 24 * 3600.0
PAUSE_SECONDS = 0.02

_CLAIMS = text(
    "SELECT count(*), max(r.id) FROM sms_campaign c JOIN sms_request r ON r.campaign_id = c.id WHERE c.name = :name"
)


class Pauser:
    """Pauses campaigns, ends each pause soon after, and counts the claims in between."""

    def __init__(self, store: LedgerBackend) -> None:
        self.claimed = 0
        self.pauses = 0
        self._store = store
        self._lock = threading.Lock()
        self._timers: list[threading.Timer] = []

    def __call__(self, campaign: str) -> None:
        """Pause a campaign, unless no attempt has entered it yet or it is already paused."""
        with self._lock, suppress(InputError):
            if not pause(self._store, campaign, "ann").was_paused:
                self.pauses += 1
                timer = threading.Timer(PAUSE_SECONDS, self._resume, [campaign, self._claims(campaign)])
                self._timers.append(timer)
                timer.start()

    def _claims(self, campaign: str) -> tuple[int, int]:
        with self._store._engine.connect() as connection:
            count, last = connection.execute(_CLAIMS, {"name": campaign}).one()
            return count, last or 0

    def _resume(self, campaign: str, before: tuple[int, int]) -> None:
        with self._lock:
            self.claimed += self._claims(campaign) != before
            resume(self._store, campaign, "bob")

    def end(self) -> None:
        """Wait until no campaign is paused any more.

        :raises TimeoutError: when a campaign is still paused.
        """
        for timer in self._timers:
            timer.join(PATIENCE)
            if timer.is_alive():
                raise TimeoutError("a pause does not end")


def plans_of(seed: int) -> list[Plan]:
    """Return the schedules of the campaigns: tables with people in common but without duplicates, and pauses."""
    chance = random.Random(seed)
    made: list[Plan] = []
    for number in range(CAMPAIGNS):
        plan = plan_of(CAMPAIGNS * seed + number)
        rows = tuple(str(FIRST_NUMBER + n) for n in chance.sample(range(POOL), len(plan.rows)))
        longest = STEPS_A_REQUEST * (1 + len(rows) // plan.chunk_size)
        tries = [replace(each, mishaps=each.mishaps + _pauses(chance, longest)) for each in plan.tries]
        made.append(replace(plan, rows=rows, tries=tuple(tries)))
    return made


def _pauses(chance: random.Random, longest: int) -> tuple[Mishap, ...]:
    """Let every second leg pause the campaign, at a point where it holds no lock that the pause waits for."""
    if chance.random() < 0.5:
        return ()
    return (Mishap("pause", chance.choice(FREE_POINTS), chance.randint(1, longest)),)


def play(stage: Stage, stores: list[LedgerBackend], wires: list[list[Wire]], seed: int) -> Figures:
    """Let both campaigns send at once, then each the rest that it may send, and judge."""
    plans, clock, pauser = plans_of(seed), Clock(), Pauser(stores[0])
    cap = FrequencyCap(f"group {stage.new_campaign('of')}", WEEK)
    games = [Game(stage, its, plan, clock=clock, cap=cap, pause=pauser) for its, plan in zip(wires, plans, strict=True)]
    faults = zip(*(plan.faults for plan in plans), strict=False)
    stage.sandbox.state.set_faults(list(itertools.chain.from_iterable(faults)))
    errors: list[BaseException] = []

    def send(game: Game) -> None:
        try:
            game.send()
        except BaseException as error:  # noqa: BLE001  # it is raised below
            errors.append(error)

    threads = [threading.Thread(target=send, args=[game], daemon=True) for game in games]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MOST_TRIES * PATIENCE)
    if errors or any(thread.is_alive() for thread in threads):
        raise errors[0] if errors else TimeoutError("a campaign does not end")
    pauser.end()
    ended = [game.send_rest() for game in games]
    wrong = pauser.claimed + sum(game.miscounted for game in games)
    return _judged(stage, games, ended) + Figures(lost=wrong)


def _judged(stage: Stage, games: list[Game], ended: list[Sending]) -> Figures:
    """Judge each campaign by the people whom it holds; all others are capped, and must be held by the other one."""
    held = [stage.states_of(game.campaign) for game in games]
    people = [{m.key: (str(m.destination), m.content) for m in outgoing(g.campaign, g.plan.rows)} for g in games]
    texted: Counter[str] = Counter()
    total = Figures(cases=1)
    for place, (game, last) in enumerate(zip(games, ended, strict=True)):
        witness = stage.witnessed(text_of(game.campaign))
        mine = {key: sent for key, sent in people[place].items() if key in held[place]}
        capped = {sent[0] for key, sent in people[place].items() if key not in held[place]}
        other = {people[1 - place][key][0] for key in held[1 - place] if key in people[1 - place]}
        seen = {sent: count for sent, count in witness.items() if sent[0] not in capped}
        total += replace(judge(seen, held[place], mine, left_out=OPTED_OUT), cases=0)
        for (destination, _), count in witness.items():
            texted[destination] += min(count, 1)
        tally = last.sender.counts
        # An opted-out person who was alone in a request is free: the service accepted nothing of it.
        miscounted = last.miscounted + abs(tally.capped + tally.none_taken - len(capped))
        miscounted += abs(tally.not_sent - tally.partial - tally.none_taken)
        total += Figures(
            lost=len(capped - other - set(OPTED_OUT)) + miscounted + (last.sender.error is not None),
            wrongly_not_sent=len(capped & {destination for destination, _ in witness}),
        )
    return total + Figures(duplicates=sum(count - 1 for count in texted.values()))


def run(
    open_store: Callable[[], LedgerBackend],
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    first: int = 0,
    count: int | None = None,
) -> Figures:
    """Run pairs of campaigns on one kind of ledger, and print the trials that broke the promise.

    :param open_store: function that opens the shared ledger, like one more process.
    :param first: the first seed.
    :param count: number of trials; None means 20 in a quick run, else 1,000.
    """
    stores: list[LedgerBackend] = []
    wires: list[list[Wire]] = []

    def play_with_stores(stage: Stage, seed: int) -> Figures:
        if not wires:
            stores.append(stage.open_store())
            wires.extend([Wire(stage.open_store()) for _ in range(MOST_TRIES + 1)] for _ in range(CAMPAIGNS))
        return play(stage, stores, wires, seed)

    seeds = range(first, first + (count if count is not None else QUICK if quick else FULL))
    return play_all(open_store, play_with_stores, seeds, lambda _, seed: f"the groups of seed {seed}")
