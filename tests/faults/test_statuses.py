from __future__ import annotations

import pytest
from support.faults.arena import Arena
from support.faults.statuses import BODIES, PEOPLE, STATUSES, Case, cases, is_a_lie, one, run
from support.faults.verdict import Figures

from airflow_provider_sms.exceptions import ThrottledError
from airflow_provider_sms.service import errors

SAID_OF_WHAT_WAS_PASSED_ON = (303, 408, 499, 500, 502, 504)


def test_whatever_status_comes_the_promise_holds(ledgers):
    """Taken or not, whoever says it: nobody is texted twice, and unknown is only what proves nothing."""
    figures = run(ledgers, quick=True)
    # Each by the service and by a gateway, taken and not; and the 503 of a gateway.
    unknown = PEOPLE * (4 * len(SAID_OF_WHAT_WAS_PASSED_ON) + 2)
    assert figures == Figures(cases=31, unknown=unknown)


@pytest.mark.parametrize("status", [408, 499, 502, 503])
def test_a_status_that_lasts_texts_nobody_twice(ledgers, status):
    """A gateway that says so for a while, of all that it passes on, costs answers and no second texts."""
    with Arena(ledgers) as arena:
        one(arena, Case(status, "a gateway", taken=True, lasting=True), 2)
    assert arena.figures.broken == 0
    assert arena.figures.unknown > 0


def test_only_lies_are_left_out():
    """No case is passed over but a status that means that nothing was taken, of a service that has taken it."""
    every = [Case(status, author, taken) for status in STATUSES for author in BODIES for taken in (False, True)]
    lies = [case for case in every if is_a_lie(case)]
    assert {case.taken for case in lies} == {True}
    assert {case.status for case in lies if case.status in (408, 425, 429, 499, 503)} == {425, 429, 503}
    assert [case.author for case in lies if case.status == 503] == ["the service"]
    assert [case for case in cases(quick=False) if not case.lasting] == [case for case in every if case not in lies]


def test_a_service_that_lies_cannot_be_survived(ledgers):
    """Why it is an assumption: a service that takes a request and says that it did not has people texted twice."""
    with Arena(ledgers) as arena:
        one(arena, Case(503, "the service", taken=True))
    assert arena.figures.duplicates == PEOPLE


@pytest.mark.parametrize("status", [408, 503])
def test_a_client_that_believes_a_gateway_is_caught(ledgers, monkeypatch, status):
    """Whoever takes any 503, or a 408, for a request that was not processed texts people twice, and is found out."""
    kind = errors._kind
    monkeypatch.setattr(errors, "_kind", lambda seen, own: ThrottledError if seen == status else kind(seen, own=own))
    with Arena(ledgers) as arena:
        one(arena, Case(status, "a gateway", taken=True))
    assert arena.figures.duplicates == PEOPLE
