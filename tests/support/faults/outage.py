"""The gateway is unavailable for a while, from any request on, and requests posted meanwhile are lost.

Outages and waits between requests take a hundredth of the seconds in their names.
"""

from __future__ import annotations

import itertools
import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.sending.stop_conditions import MAX_LOST_ALONE
from support.faults.arena import Arena
from support.faults.tries import attempt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.faults.tries import Ended, Ledgers
    from support.faults.verdict import Figures

SECOND = 0.01
PEOPLE = 4
"""In a request."""
REQUESTS = 20

KINDS: Mapping[str, Mapping[str, Any]] = {
    "502": {"kind": "status", "status": 502, "by": "gateway"},
    "502 once taken": {"kind": "status", "status": 502, "by": "gateway", "accepted": True},
    "503 of a gateway, once taken": {"kind": "status", "status": 503, "by": "gateway", "accepted": True},
    "HTML": {"kind": "status", "status": 200, "body": "<html>We will be back soon</html>"},
    "resets": {"kind": "drop_before", "reset": True},
    "resets once taken": {"kind": "drop_after", "reset": True},
}
"""What the sandbox is asked for, of posts. Of the balance it is the same, with nothing to take."""


@dataclass(frozen=True, slots=True)
class Case:
    """One outage.

    :param at: number of requests with a response before the outage.
    :param balance: whether the balance is unavailable, too.
    """

    kind: str
    seconds: int
    at: int
    concurrency: int
    balance: bool = True


def run(
    ledgers: Ledgers,
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    reconciles: bool = False,
) -> Figures:
    """Run outages of 1, 3, 30 and 300 seconds of each kind, starting at several points of 20 requests.

    :param ledgers: function that opens the ledger.
    :param quick: True selects some of them.
    :param reconciles: whether lost requests are closed by what the balance proves; then it selects some, too.
    """
    with Arena(ledgers, reconciles=reconciles) as arena:
        chosen = list(cases(quick=quick))
        for case in chosen[:: 3 if quick else 11] if reconciles else chosen:
            one(arena, case)
    return arena.figures


def cases(*, quick: bool) -> Iterator[Case]:
    """Yield the outages."""
    if quick:
        every = (Case(kind, seconds, 3, 4) for kind, seconds in zip(KINDS, itertools.cycle((1, 30, 300)), strict=False))
        return itertools.chain(every, [Case("502", 300, 3, 1, balance=False)])
    every = itertools.product(KINDS, (1, 3, 30, 300), (0, 1, 7, 16, 19), (1, 2, 4), (True, False))
    return itertools.starmap(Case, every)


def one(arena: Arena, case: Case) -> Ended:
    """Run one outage: one attempt meets it, and another one follows it.

    :raises AssertionError: when it cost more requests than the documentation says.
    """
    campaign = arena.campaign(PEOPLE * REQUESTS, PEOPLE)
    service = arena.sandbox.state
    posts, lock = itertools.count(), threading.Lock()
    over = threading.Timer(case.seconds * SECOND, service.set_faults, [[]])

    def begin() -> None:
        with lock:
            if next(posts) == case.at:
                fault = dict(KINDS[case.kind])
                away = [{**fault, "persistent": True}]
                if case.balance:
                    away.append({**fault, "accepted": False, "on": "balance", "persistent": True})
                service.set_faults(away)
                over.start()

    backoff = Backoff(base=SECOND, longest=60 * SECOND, random=random.Random(case.seconds + case.at))
    ended = attempt(campaign, concurrency=case.concurrency, before_post=begin, backoff=backoff)
    over.join()
    service.set_faults([])
    arena.look(campaign, ended)
    arena.resume(str(case), campaign)
    lost = ended.summary["unknown"]
    if lost > (case.concurrency + MAX_LOST_ALONE) * PEOPLE:
        raise AssertionError(f"{case} made {lost} people unknown")
    return ended
