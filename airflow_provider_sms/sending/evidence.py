"""What the sums of an account tell of requests whose response was lost: pure functions over what was observed.

On a pre-paid account each request that the service takes is charged for, each response says what its request cost and
what remained, and the balance can be read at any time. Any fall of the balance beyond what the responses account for
was charged for requests without a response. Two assumptions carry each verdict:

1. The account charges for a request when it takes it: a sum between the least and the most that the request is said to
   cost. Each balance that is read from then on, at the latest from ``settled``, shows the charge. The balance in a
   response is the one right after the charge of its own request.
2. Nobody else spends from the account or tops it up meanwhile.

Where the numbers contradict the assumptions, everything that this may concern stays undecided. Two rules guard against
what somebody else spends: a fall that no request explains, and that is as large as a request's charge may be, also
leaves undecided everything near it in time (:data:`NEARBY_SECONDS`); and less than half of what all of a request costs
is not taken for its charge (:data:`LEAST_SHARE`). Nothing is noticed where somebody else spends between that half and
what a request could have cost, just while it could have been charged for; nor where a top-up makes up for a charge
exactly, a charge comes after ``settled``, or several responses that overlap tell balances of later moments while more
than one request is open.

A request counts as charged for where the numbers leave no way to explain the balance without it, and as not charged for
where they leave none with it. For this, a request may have been charged for in several sums, one after the other. That
is more than services do, but turns the question into one of sums. Once a request counts as charged for, nothing more is
charged for it: its sum is within the falls seen so far, and later ones belong to later requests.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sms.ledger.account import AccountHistory, Observation, OpenRequest

NOISE: Final = Decimal("0.0001")
"""Credits; sums that differ by no more are the same: services compute in binary, and round prices."""

MAX_NAMED: Final = 10
"""Requests that a sentence names; of more it gives the number."""

LEAST_SHARE: Final = Decimal("0.5")
"""The least share of what all of a request costs that is taken for the request's charge. A service leaves out a few
people of a request; a far smaller sum may as well be what somebody else spent, such as on a single message."""

NEARBY_SECONDS: Final = 3600.0
"""Seconds before and after an unexplained fall in which nothing is decided: whatever else spends from the account, such
as other software, is likely to do so again, and then perhaps just what a request costs."""

_ZERO: Final = Decimal(0)
_WITHOUT_END: Final = Decimal("Infinity")
_SHOWN: Final = Decimal("0.000001")
_EARLIEST, _LATEST = float("-inf"), float("inf")


def judge(history: AccountHistory) -> dict[int, Evidence]:
    """Return what the balance tells of each request for which a verdict is wanted, by its id."""
    movements = _movements(_chain(history.observations))
    contradictions = _contradictions(movements, _components(history.open_requests, movements))
    movements = _doubted(movements, contradictions, min(map(_enough, history.open_requests), default=_ZERO))
    return {
        case.request.request_id: _evidence(case, component)
        for component in _components(history.open_requests, movements)
        for case in component.cases
        if case.request.is_asked
    }


# Chain: the observations in the order in which they were made.


def _chain(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations in the order in which they were made.

    A balance that only falls has one order, that of its values, apart from equal ones. Where it rises in between, times
    tell the order as far as they can: no observation comes after one that was surely made later.
    """
    later = sorted(observations, key=lambda each: each.begin, reverse=True)
    next_ones: list[Observation] = []  # before each of these, none of the others surely ended
    chain: list[Observation] = []
    while later or next_ones:
        while later and (not next_ones or later[-1].begin <= min(each.end for each in next_ones)):
            next_ones.append(later.pop())
        value = chain[-1].amount if chain else _WITHOUT_END
        fitting = [each for each in next_ones if _before(each) <= value + NOISE] or next_ones
        highest = max(_before(each) for each in fitting)
        # Of a reading and a response that both begin at the highest value, the reading came first.
        chosen = max((each for each in fitting if _before(each) >= highest - NOISE), key=lambda each: each.amount)
        next_ones.remove(chosen)
        chain.append(chosen)
    return chain


def _before(observation: Observation) -> Decimal:
    """Return the balance just before an observation and the charge of its own request."""
    return observation.amount + observation.charged


# Movements: what the balance did between two observations that follow each other.


@dataclass(frozen=True, slots=True)
class _Movement:
    """What the balance did between two observations, beyond what the second one's own request cost.

    :param index: its place among the movements.
    :param begin: the movement came after this moment, seconds since the epoch.
    :param end: it came before this moment.
    :param is_quiet: whether all observations before it had surely ended when the first one after it began, so that
        times alone tell their order.
    :param fall: credits by which it fell. None where nothing tells how much was charged: before the first observation,
        after the last, and where the numbers contradict the assumptions.
    :param before: the balance before; None before the first observation.
    :param after: the balance after; None after the last observation.
    :param doubt: what contradicts the assumptions, a sentence for people; empty if nothing does.
    """

    index: int
    begin: float
    end: float
    is_quiet: bool
    fall: Decimal | None
    before: Decimal | None
    after: Decimal | None
    doubt: str = ""


def _movements(chain: Sequence[Observation]) -> list[_Movement]:
    """Return the movements before, between and after the observations of a chain."""
    begins = list(accumulate((each.begin for each in chain), max, initial=_EARLIEST))
    ends = list(accumulate((each.end for each in reversed(chain)), min, initial=_LATEST))[::-1]
    last_ends = list(accumulate((each.end for each in chain), max, initial=_EARLIEST))
    next_begins = list(accumulate((each.begin for each in reversed(chain)), min, initial=_LATEST))[::-1]
    movements = []
    for index, (one, other) in enumerate(pairwise([None, *chain, None])):
        fall = None if one is None or other is None else one.amount - _before(other)
        rise = -fall if fall is not None and fall < -NOISE else None
        movements.append(
            _Movement(
                index,
                begins[index],
                ends[index],
                last_ends[index] < next_begins[index],
                None if fall is None or rise else fall if fall > NOISE else _ZERO,
                None if one is None else one.amount,
                None if other is None else other.amount,
                f"The balance also rose by {_credits(rise)}, which may hide a charge." if rise else "",
            )
        )
    return movements


def _during(movements: Sequence[_Movement], begin: float, end: float) -> Sequence[_Movement]:
    """Return the movements, in order, that may have come between two moments."""
    first = bisect_left(movements, begin, key=lambda each: each.end)
    stop = bisect_right(movements, end, key=lambda each: each.begin)
    return movements[first:stop]


def _contradictions(movements: Iterable[_Movement], components: Iterable[_Component]) -> dict[int, str]:
    """Return what contradicts the assumptions, a sentence for people each, by the index of the movement."""
    found = {each.index: each.doubt or _unexplained(each.fall) for each in movements if each.doubt or each.fall}
    for component in components:
        contradiction = component.contradiction
        if contradiction:
            due = [each.index for case in component.due for each in case.movements]
            found |= dict.fromkeys([*component.falls, *due], contradiction)
        else:
            for index in component.falls:
                del found[index]
    return found


def _doubted(movements: Sequence[_Movement], contradictions: Mapping[int, str], enough: Decimal) -> list[_Movement]:
    """Return the movements, without the falls of those that are in doubt.

    Between two quiet movements, the order rests on the sums, and these on responses that tell the balance right after
    their own charge. One contradiction there makes everything from the one to the other doubtful.

    A fall that no request explains makes everything near it in time doubtful: whoever spends from an account may do so
    again, and a response that tells the balance late shows a later charge too early, where nothing explains it. A fall
    that is too small for any request, such as for a single message to the people on call, does not.

    :param enough: the fewest credits that are taken for the charge of a request.
    """
    unexplained = [each for each in movements if each.index in contradictions]
    falls = [each for each in unexplained if each.fall and each.fall >= enough - NOISE]
    doubts = dict(contradictions)
    for first, last in pairwise(each.index for each in movements if each.is_quiet):
        inside = [contradictions[index] for index in range(first + 1, last) if index in contradictions]
        if inside:
            doubts |= dict.fromkeys(range(first, last + 1), inside[0])
    for each in movements:
        near = (fall for fall in falls if _is_near(fall, each))
        if (fall := next(near, None)) is not None:
            doubts.setdefault(each.index, f"{contradictions[fall.index]} That was less than an hour before or after.")
    return [replace(each, fall=None, doubt=doubts[each.index]) if each.index in doubts else each for each in movements]


def _is_near(fall: _Movement, other: _Movement) -> bool:
    """Return whether a fall surely lies within the hour before or after another movement.

    A fall somewhere between yesterday's last balance and today's first one does not.
    """
    return fall.begin >= other.begin - NEARBY_SECONDS and fall.end <= other.end + NEARBY_SECONDS


# Components: requests, and the falls of the balance that they can only explain together.


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A request, and what the balance did while it may have been charged for.

    :param movements: all that the balance did then, in order.
    :param falls: indexes of the falls among them, in order.
    """

    request: OpenRequest
    movements: Sequence[_Movement]
    falls: Sequence[int]

    @property
    def is_open_ended(self) -> bool:
        """Whether it may have been charged for where nothing tells how much the balance fell."""
        return any(each.fall is None for each in self.movements)

    @property
    def most(self) -> Decimal:
        """The most credits that it cost."""
        return _WITHOUT_END if self.request.most is None else self.request.most

    @property
    def may_be_free(self) -> bool:
        """Whether it may have cost nothing, so that no balance shows it."""
        return self.request.whole is not None and self.request.least <= NOISE


def _case(request: OpenRequest, movements: Sequence[_Movement]) -> _Case:
    during = _during(movements, request.begin, request.settled)
    return _Case(request, during, [each.index for each in during if each.fall])


def _unexplained(fall: Decimal | None) -> str:
    return f"The balance also fell by {_credits(fall)} that no request explains."


class _Component:
    """Requests, and the falls of the balance that only they can explain.

    :param falls: credits, by the index of the movement; none where the balance fell by what the responses cost.
    """

    def __init__(self, cases: Sequence[_Case]) -> None:
        self.cases = cases
        self.falls = {each.index: each.fall for case in cases for each in case.movements if each.fall}
        self.total = sum(self.falls.values(), _ZERO)
        self.due = [each for each in cases if each.request.is_charged and not each.is_open_ended]
        self.possible = [each for each in cases if self._is_possible(each)]
        self.needed = [each for each in self.possible if self.least(each) > NOISE]

    @property
    def movements(self) -> list[_Movement]:
        """All that the balance did while any of the requests may have been charged for, in order."""
        during = {each.index: each for case in self.cases for each in case.movements}
        return [during[index] for index in sorted(during)]

    @property
    def contradiction(self) -> str:
        """What contradicts the assumptions, a sentence for people; empty if nothing does."""
        unexplained = self.total - self._explained((each, each.most) for each in self.possible)
        if unexplained > NOISE:
            return _unexplained(unexplained)
        if self._explained((each, each.request.least) for each in self.due) < _least(self.due) - NOISE:
            return f"The balance does not show what {_named(self.due)} surely cost."
        return ""

    def most(self, case: _Case) -> Decimal:
        """Return the most credits of these falls that a request was charged, after the least that others due cost."""
        others = [each for each in self.due if each is not case]
        return self._explained([(case, case.most), *((each, each.request.least) for each in others)]) - _least(others)

    def least(self, case: _Case) -> Decimal:
        """Return the fewest credits of these falls that a request was charged: what the others do not explain."""
        return self.total - self._explained((each, each.most) for each in self.possible if each is not case)

    def _is_possible(self, case: _Case) -> bool:
        most = self.most(case)
        return case.is_open_ended or (most > NOISE and most >= case.request.least - NOISE)

    def _explained(self, limits: Iterable[tuple[_Case, Decimal]]) -> Decimal:
        """Return how much of the falls some requests explain together at most.

        Each fall goes first to the requests that can explain the fewest later ones: no other choice explains more.

        :param limits: requests, each with the most credits that it explains.
        """
        ordered = sorted(limits, key=lambda each: max(each[0].falls, default=-1))
        left = [most for _, most in ordered]
        explained = _ZERO
        for index, fall in self.falls.items():
            rest = fall
            for position, (case, _) in enumerate(ordered):
                if index in case.falls:
                    share = min(rest, left[position])
                    rest -= share
                    left[position] -= share
            explained += fall - rest
        return explained


def _least(cases: Iterable[_Case]) -> Decimal:
    return sum((each.request.least for each in cases), _ZERO)


def _components(requests: Iterable[OpenRequest], movements: Sequence[_Movement]) -> list[_Component]:
    """Return the requests, grouped by the falls that they share."""
    cases = [_case(request, movements) for request in requests]
    groups = [[case] for case in cases if not case.falls]
    last = -1
    for case in sorted((case for case in cases if case.falls), key=lambda each: each.falls[0]):
        if case.falls[0] > last:
            groups.append([])
        groups[-1].append(case)
        last = max(last, case.falls[-1])
    return [_Component(group) for group in groups]


# Verdicts, and their words.


def _evidence(case: _Case, component: _Component) -> Evidence:
    """Return what the balance tells of a request of a component."""
    if case in component.needed and component.least(case) >= _needed(case) - NOISE:
        return _charged(case, component)
    if case not in component.possible and not case.may_be_free:
        return Evidence(NOT_CHARGED, _not_charged_words(case))
    waits_for = frozenset(
        each.request.request_id for each in component.cases if each.request.in_flight and each is not case
    )
    settles_at = None if case.movements[-1].after is not None else case.request.settled
    return Evidence(UNDECIDED, _undecided_words(case, component), waits_for=waits_for, settles_at=settles_at)


def _needed(case: _Case) -> Decimal:
    """Return the fewest credits that prove a request's charge: all that it costs, while more charges may follow.

    Otherwise nobody would learn that the service left some people out.
    """
    whole = case.request.whole
    return whole if case.is_open_ended and whole is not None else _enough(case.request)


def _enough(request: OpenRequest) -> Decimal:
    """Return the fewest credits that are taken for the charge of a request, and not for what somebody else spent."""
    return max(request.least, (request.whole or _ZERO) * LEAST_SHARE)


def _charged(case: _Case, component: _Component) -> Evidence:
    least, most = component.least(case), component.most(case)
    amount = least.quantize(_SHOWN) if most - least <= NOISE else None
    whole = case.request.whole
    in_part = whole is not None and most < whole - NOISE
    words = _fall_words(component.movements, component.total) + ", "
    if component.total >= sum(each.most for each in component.possible) - NOISE:
        one = len(component.needed) == 1
        words += f"exactly what {_named(component.needed)} {'costs: it was' if one else 'cost: they were'} taken."
    else:
        words += f"which nothing explains without {_named([case])}: it was taken."
    if in_part:
        words += f" It was charged {_between(least, most)} of at least {_credits(whole)}, so the service left "
        words += "some people out, and nobody can tell whom; or else somebody else spent that."
    elif amount is None:
        words += f" It was charged {_between(least, most)}."
    return Evidence(CHARGED, words, amount, in_part, settles_at=_charged_before(case))


def _charged_before(case: _Case) -> float | None:
    """Return the moment by which a request was charged for, so that no later fall belongs to it; None if unclear.

    Where it is still open, that is just before the last balance was asked for, unless another observation overlaps it.
    """
    last = case.movements[-1]
    if last.after is not None:
        return case.request.settled
    is_clear = len(case.movements) > 1 and case.movements[-2].begin < last.begin
    return math.nextafter(last.begin, _EARLIEST) if is_clear else None


def _not_charged_words(case: _Case) -> str:
    before, after = case.movements[0].before, case.movements[-1].after
    if case.falls:
        words = f"{_fall_words(case.movements, _fall(case))}, which other requests cost"
    elif before == after:
        words = f"The balance stayed at {_credits(before)}"
    else:
        words = f"The balance fell from {_credits(before)} to {_credits(after)}, just what the responses account for"
    return f"{words}: {_named([case])} was not charged for, so it was not taken."


def _fall_words(movements: Sequence[_Movement], fall: Decimal) -> str:
    """Return by how much the balance fell, and from where to where if the movements are known and follow each other."""
    known = [each for each in movements if each.fall is not None]
    follow = known[-1].index - known[0].index == len(known) - 1
    ends = f" from {_credits(known[0].before)} to {_credits(known[-1].after)}," if follow else ""
    return f"The balance fell{ends} by {_credits(fall)} more than the responses account for"


def _fall(case: _Case) -> Decimal:
    return sum((each.fall or _ZERO for each in case.movements), _ZERO)


def _undecided_words(case: _Case, component: _Component) -> str:
    """Return why nothing tells whether a request was taken, with all reasons that apply."""
    first, last = case.movements[0], case.movements[-1]
    if first.before is None and first.after is None:
        return f"No balance of the account is known, so nothing tells whether {_named([case])} was taken."
    reasons = list(dict.fromkeys(each.doubt for each in case.movements if each.doubt))
    if first.before is None:
        reasons.append(f"No balance is known from before {_time(case.request.begin)}, when it was posted.")
    if last.after is None:
        reasons.append(
            f"It may be charged for until {_time(case.request.settled)}, and no balance was read after that."
        )
    if case.may_be_free:
        reasons.append("It may cost nothing.")
    if case in component.needed:
        reasons.append(
            f"The balance fell by {_credits(component.least(case))} that only this request explains. All of it costs "
            f"{_credits(case.request.whole)} or more, so somebody else may have spent that."
        )
    elif component.falls:
        reasons.append(
            f"The balance fell by {_credits(component.total)} more than the responses account for, which may be what "
            f"{_named(component.possible)} cost, alone or together."
        )
    return f"The balance does not tell whether {_named([case])} was taken. {' '.join(reasons)}"


def _named(cases: Iterable[_Case]) -> str:
    """Return requests by their ids, in order."""
    ids = sorted(case.request.request_id for case in cases)
    if len(ids) == 1:
        return f"request {ids[0]}"
    last = f"{len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else str(ids.pop())
    return f"requests {', '.join(map(str, ids[:MAX_NAMED]))} and {last}"


def _between(least: Decimal, most: Decimal) -> str:
    if most - least <= NOISE:
        return _credits(least)
    return f"at least {_credits(least)}" if most == _WITHOUT_END else f"between {_credits(least)} and {_credits(most)}"


def _credits(amount: Decimal | None) -> str:
    """Return credits without exponent, with as many decimals as there are, up to six."""
    written = f"{amount or _ZERO:.6f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def _time(at: float) -> str:
    """Return the time of a moment."""
    return f"{datetime.fromtimestamp(at, timezone.utc):%H:%M:%S} UTC"
