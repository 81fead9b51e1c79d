"""What an account's balance tells of requests whose response was lost: pure functions over what the ledger recorded.

A pre-paid account is charged for a request once, when the service takes it, and each balance that is read later shows
it. A *quiet* reading is a balance that was read while no request of the account was open: from its claim to its
response or, without one, until it is settled. Between two quiet readings in a row, the *residual* is what the balance
fell by beyond the costs that responses stated: the lost requests of that window explain it, or somebody else spent it.
So each request is weighed in one window alone.

It is wrong without a sign of it where somebody else spends what a lost request costs, and where a charge comes after
its request is settled.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED, KeptEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_sms.ledger.account import BilledRequest, Reading

NOISE: Final = Decimal("0.0001")
"""Credits; sums that differ by no more are equal: services compute in binary."""
LEAST_SHARE: Final = Decimal("0.5")
"""The least share of its cost that counts as a request's charge, for people whom the service left out."""
NEARBY_SECONDS: Final = 3600.0
"""Whoever spent what a request costs, or charged for it late, may do so again for that long."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the balance tells of a lost request.

    :param outcome: ``charged``, ``not_charged`` or ``undecided``.
    :param words: why, for people, in a sentence without anybody's number.
    :param amount: credits charged for it; None where its own sum is not known.
    :param settles_at: when it is settled, where a later balance may still decide it; None where none will.
    """

    outcome: str
    words: str
    amount: Decimal | None = None
    settles_at: float | None = None

    def kept(self, read_at: float) -> KeptEvidence:
        """Return it as the ledger keeps it.

        :param read_at: when the balance was read, seconds since the epoch.
        """
        return KeptEvidence(self.outcome, self.words, read_at, None if self.amount is None else _credits(self.amount))


@dataclass(frozen=True, slots=True)
class Window:
    """Two quiet readings in a row, and what lies between them.

    :param lost: the requests without a response.
    :param residual: the credits by which the balance fell beyond what responses stated.
    """

    before: Reading
    after: Reading
    lost: Sequence[BilledRequest]
    residual: Decimal

    @property
    def possible(self) -> list[BilledRequest]:
        """The lost requests for whose charge the residual is enough."""
        return [each for each in self.lost if enough(each) <= self.residual + NOISE]

    @property
    def is_explained(self) -> bool:
        """Whether the lost requests can have cost the residual."""
        return -NOISE <= self.residual <= sum((each.most for each in self.possible), NOISE)

    @property
    def all_taken(self) -> bool:
        """Whether all lost requests were taken in whole: then nothing is still to come."""
        whole = sum((each.least for each in self.lost), Decimal(0)) <= self.residual + NOISE
        return whole and self.is_explained and all(map(self.needs, self.lost))

    def needs(self, request: BilledRequest) -> bool:
        """Return whether the others, taken in whole, leave enough of the residual to be this request's charge.

        Of any of them the service may have taken a part, which costs what another one costs in whole.
        """
        others = sum((each.most for each in self.lost if each is not request), Decimal(0))
        return request in self.possible and self.residual - others >= enough(request) - NOISE

    def verdict(self, request: BilledRequest) -> Verdict:
        """Return what the residual tells of one of the lost requests."""
        fell = f"From {_credits(self.before.amount)} to {_credits(self.after.amount)}, the balance fell by"
        more = f"{fell} {_credits(self.residual)} more than the responses account for"
        if self.residual < -NOISE:
            rose = f"The balance rose by {_credits(-self.residual)} beyond what the responses account for"
            return Verdict(UNDECIDED, f"{rose}, which may hide what request {request.id} cost.")
        if not self.is_explained:
            return Verdict(UNDECIDED, f"{more}, and somebody else spent at least a part of it.")
        if self.needs(request):
            whole = self.residual >= sum((each.most for each in self.lost), -NOISE)
            amount = self.residual if self.lost == [request] else request.most if whole else None
            part = ", and perhaps left some people out" if amount is not None and amount < request.least - NOISE else ""
            explained = f"which nothing explains without request {request.id}: the service took it{part}."
            return Verdict(CHARGED, f"{more}, {explained}", amount)
        if self.residual <= NOISE < request.least:
            none = f"{fell} just what the responses account for"
            return Verdict(NOT_CHARGED, f"{none}: the service did not take request {request.id}.")
        return Verdict(UNDECIDED, f"{more}, which does not tell whether the service took request {request.id}.")


def judge(readings: Iterable[Reading], requests: Sequence[BilledRequest]) -> dict[int, Verdict]:
    """Return the verdict on each request without a response, by its id."""
    found, last = windows(readings, requests)
    strange = [each for each in found if not each.is_explained]
    verdicts = {each.id: _without_window(each, last) for each in requests if each.stated is None}
    for window in found:
        for each in window.lost:
            verdicts[each.id] = _doubt(window, each, strange) or window.verdict(each)
    return verdicts


def late_charges(readings: Iterable[Reading], requests: Sequence[BilledRequest]) -> list[str]:
    """Return, for people, the falls that nothing explains but a late charge of requests that seemed not taken."""
    found, _ = windows(readings, requests)
    told: list[str] = []
    for later in (each for each in found if not each.is_explained):
        earlier = [(window, each) for window in found[: found.index(later)] for each in window.lost]
        not_taken = [each for window, each in earlier if window.verdict(each).outcome == NOT_CHARGED]
        if fits := [each.id for each in not_taken if enough(each) - NOISE <= later.residual <= each.most + NOISE]:
            fell = (
                f"The balance fell by {_credits(later.residual)} that nothing explains, unless it was charged late for"
            )
            told.append(f"{fell} request {' or '.join(map(str, fits))}, which seemed not to be taken.")
    return told


def windows(readings: Iterable[Reading], requests: Iterable[BilledRequest]) -> tuple[Sequence[Window], Reading | None]:
    """Return the windows, and the last quiet reading; lost requests that were all taken are open no longer."""
    coming = deque(sorted(requests, key=lambda each: each.claimed_at))
    found: list[Window] = []
    before: Reading | None = None
    begun: list[BilledRequest] = []
    for reading in sorted(readings, key=lambda each: each.read_at):
        while coming and coming[0].claimed_at < reading.read_at:
            begun.append(coming.popleft())
        still_open = [each for each in begun if each.closed_at > reading.asked_at]
        if any(each.stated is not None or before is None for each in still_open):
            continue
        if before is not None:
            stated = sum((each.stated for each in begun if each.stated is not None), Decimal(0))
            lost = [each for each in begun if each.stated is None]
            window = Window(before, reading, lost, before.amount - stated - reading.amount)
            if still_open and not window.all_taken:
                continue
            found.append(window)
        before, begun = reading, []
    return found, before


def enough(request: BilledRequest) -> Decimal:
    """Return the fewest credits that count as the charge of a request."""
    return max(request.least * LEAST_SHARE, 2 * NOISE)


def _without_window(request: BilledRequest, last: Reading | None) -> Verdict:
    """Return the verdict on a request that lies in no window.

    :param last: the last quiet reading; None where there is none.
    """
    if last is None or request.claimed_at < last.read_at:
        words = f"No balance is known from before request {request.id}, with no other request open."
        return Verdict(UNDECIDED, words)
    until = datetime.fromtimestamp(request.closed_at, timezone.utc)
    words = f"Request {request.id} may be charged for until {until:%H:%M:%S} UTC: a balance that is read after that"
    return Verdict(UNDECIDED, f"{words} tells, if no other request is open then.", settles_at=request.closed_at)


def _doubt(window: Window, request: BilledRequest, strange: Iterable[Window]) -> Verdict | None:
    """Return why a verdict may be wrong: what a request costs was spent nearby, and no request explains it."""
    for other in strange:
        follows = other.before.asked_at >= window.before.asked_at - NEARBY_SECONDS
        nearby = follows and other.after.read_at <= window.after.read_at + NEARBY_SECONDS
        if nearby and other is not window and other.residual >= enough(request):
            words = f"Within an hour, the balance fell by {_credits(other.residual)} that no request explains"
            return Verdict(UNDECIDED, f"{words}, and perhaps for request {request.id}, too.")
    return None


def _credits(amount: Decimal) -> str:
    """Return credits with as many decimals as there are, up to six."""
    return f"{amount:.6f}".rstrip("0").rstrip(".")
