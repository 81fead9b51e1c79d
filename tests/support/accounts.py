"""Accounts whose truth is known: what was sent with them, what was taken, and what a ledger would have seen of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from hypothesis import strategies as st

from airflow_provider_sms.ledger.account import AccountHistory, Observation, OpenRequest

OPENING = 10_000.0
PRICES = ((1.0, 1.0), (0.35, 0.35), (1.0, 2.5), (0.1, 0.3), (1 / 3, 1 / 3))
ANSWERED, LOST, KNOWN = "answered", "lost", "known to have been charged for"


@dataclass(frozen=True)
class Sent:
    """A request: claimed at ``begin``, charged at ``charged_at``, its response there at ``end``.

    :param taken: SMS parts that the service took, all at the least price but the ``dear`` ones at the most.
    :param is_group: nobody knows its size.
    :param is_late: its response tells the balance of the end.
    """

    begin: int
    charged_at: int
    end: int
    settled: int
    parts: int
    taken: int
    fate: str = ANSWERED
    dear: int = 0
    is_group: bool = False
    is_late: bool = False
    prices: tuple[float, float] = (1.0, 1.0)

    @property
    def cost(self):
        least, most = self.prices
        dear = min(self.dear, self.taken)
        return least * (self.taken - dear) + most * dear


def exact(amount):
    """Return an amount as the client reads it from JSON."""
    return Decimal(repr(amount))


def is_open(sent, now):
    """Return whether at a moment no response tells what a request cost."""
    return sent.fate != ANSWERED or sent.end > now


def observed(sent, readings, now, spendings=()):
    """Return what a ledger knows of an account at a moment; a request's id is its place.

    :param readings: when each balance was asked for, read and there.
    :param spendings: (moment, credits) of others; a top-up is less than 0.
    """
    steps = [(moment, lambda amount=amount: amount, None) for moment, amount in spendings]
    for request_id, each in enumerate(sent):
        seen = (each, request_id) if each.fate == ANSWERED and each.end <= now else None
        if each.is_late:
            steps += [(each.charged_at, lambda cost=each.cost: cost, None), (each.end, lambda: 0.0, seen)]
        else:
            steps.append((each.charged_at, lambda cost=each.cost: cost, seen))
    steps += [
        (read_at, lambda: 0.0, (reading, None)) for reading in readings for _, read_at, end in [reading] if end <= now
    ]
    balance, observations = OPENING, []
    for moment, spent, seen in sorted(steps, key=lambda step: step[0]):
        if moment > now:
            break
        balance -= spent()
        if seen is None:
            continue
        if seen[1] is None:
            (begin, _, end), _ = seen
            observations.append(Observation(exact(balance), Decimal(0), begin, end))
        else:
            each, request_id = seen
            observations.append(Observation(exact(balance), exact(each.cost), each.begin, each.end, request_id))
    return AccountHistory(
        observations,
        [
            _open(request_id, each, now)
            for request_id, each in enumerate(sent)
            if is_open(each, now) and each.begin <= now
        ],
    )


def _open(request_id, sent, now):
    least, most = map(exact, sent.prices)
    known = OpenRequest(
        request_id,
        Decimal(0) if sent.is_group else least,
        None if sent.is_group else most * sent.parts,
        None if sent.is_group else least * sent.parts,
        sent.begin,
        sent.settled,
        in_flight=sent.end > now,
    )
    if sent.fate != KNOWN or sent.end > now:
        return known
    return replace(known, least=exact(sent.cost), most=exact(sent.cost), is_asked=False, is_charged=True)


_soon = st.integers(0, 4)


@st.composite
def lanes(draw, *, fates=(ANSWERED, ANSWERED, LOST, LOST, KNOWN), late=False, groups=True):
    """Draw what tasks send, one to five requests at a time.

    :param late: whether responses may tell the balance of when they end.
    :param groups: whether requests of unknown size may be among those without a response.
    """
    prices, sent = draw(st.sampled_from(PRICES)), []
    shape = st.tuples(_soon, _soon, _soon, _soon, st.integers(1, 4), st.integers(0, 4), st.integers(0, 9))
    for lane in draw(st.lists(st.lists(st.tuples(shape, st.sampled_from(fates)), max_size=4), min_size=1, max_size=5)):
        now = 5
        for (pause, before, after, settling, parts, missing, odd), fate in lane:
            begin = now + pause
            charged_at = begin + before
            end = charged_at + after
            taken = max(parts - missing, 0) if missing < 4 else parts
            sent.append(
                Sent(
                    begin,
                    charged_at,
                    end,
                    end + settling,
                    parts,
                    max(taken, 1) if fate == KNOWN else taken,
                    fate,
                    dear=odd % 3,
                    is_group=groups and fate == LOST and odd == 9,
                    is_late=late and odd % 2 == 0,
                    prices=prices,
                )
            )
            now = end
    return sent


@st.composite
def readings(draw):
    """Draw up to four readings of the balance at any moments."""
    drawn = draw(st.lists(st.tuples(st.integers(0, 40), _soon, _soon), max_size=4))
    return [(begin, begin + before, begin + before + after) for begin, before, after in drawn]


moments = st.integers(5, 60)
