"""Error statuses in place of a response, for accepted requests and for others, by the service and by a gateway.

Cases that no client can survive are left out: a service that accepts a request, and then responds in the form which
means that it did not process it. :func:`is_a_lie` lists these; the documentation states the assumption.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.faults.arena import Arena
from support.faults.tries import attempt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.faults.tries import Ended, Ledgers
    from support.faults.verdict import Figures

REQUESTS = 3
PEOPLE = 4
"""In a request."""

NAMED = (303, 408, 425, 429, 499, 500, 502, 503, 504)
"""Statuses that gateways and services are known to return, for accepted requests and for others."""
STATUSES = (201, 204, 301, 302, 307, 400, 401, 403, 404, 409, 413, 421, *NAMED, 501, 520, 599)

BODIES: Mapping[str, Mapping[str, Any]] = {
    "the service": {"by": "service"},
    "a gateway": {"by": "gateway"},
    "nobody": {"body": ""},
}
"""The fault's fields for each possible author of the body."""


@dataclass(frozen=True, slots=True)
class Case:
    """One status.

    :param author: author of the body, from :data:`BODIES`.
    :param taken: whether the request was processed.
    :param lasting: whether all following requests meet the status, too.
    """

    status: int
    author: str
    taken: bool
    lasting: bool = False

    @property
    def fault(self) -> dict[str, Any]:
        """What the sandbox is asked for; without the time that a gateway asks to wait."""
        return {
            "kind": "status",
            "status": self.status,
            "accepted": self.taken,
            "persistent": self.lasting,
            "retry_after": "0",
            **BODIES[self.author],
        }


def is_a_lie(case: Case) -> bool:
    """Return whether a case is a service that accepts a request and denies it by its own error."""
    if not case.taken:
        return False
    if case.status == 503:
        return case.author == "the service"
    return 300 <= case.status < 500 and case.status not in (303, 408, 499)


def run(
    ledgers: Ledgers,
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    reconciles: bool = False,
) -> Figures:
    """Let the second of three requests meet each status, alone and with all following ones, one and two at a time.

    :param ledgers: function that opens the ledger.
    :param quick: True selects the known statuses, once, one request at a time.
    :param reconciles: whether lost requests are closed by what the balance proves; then it selects these, too.
    """
    with Arena(ledgers, reconciles=reconciles) as arena:
        few = quick or reconciles
        chosen = list(itertools.product(cases(quick=few), (1,) if few else (1, 2)))
        for case, concurrency in chosen[::6] if quick and reconciles else chosen:
            one(arena, case, concurrency)
    return arena.figures


def cases(*, quick: bool) -> Iterator[Case]:
    """Yield all cases except lies."""
    every = itertools.product(
        NAMED if quick else STATUSES,
        list(BODIES)[: 2 if quick else None],
        (False, True),
        (False,) if quick else (False, True),
    )
    return itertools.filterfalse(is_a_lie, itertools.starmap(Case, every))


def one(arena: Arena, case: Case, concurrency: int = 1) -> Ended:
    """Run one case."""
    campaign = arena.campaign(PEOPLE * REQUESTS, PEOPLE)
    arena.sandbox.state.set_faults([{"kind": "none"}, case.fault])
    ended = attempt(campaign, concurrency=concurrency)
    arena.sandbox.state.set_faults([])
    arena.look(campaign, ended)
    arena.resume(f"{case}, {concurrency} at a time", campaign)
    return ended
