from __future__ import annotations

import pytest
from sqlalchemy.exc import OperationalError
from support.sending import chunk_of, claimant, people
from support.told import pause_of

from airflow_provider_sms.exceptions import LedgerAwayError, LedgerLostError
from airflow_provider_sms.ledger.attempts import has_trace, processes_of_try, register
from airflow_provider_sms.ledger.backend import RETRY_SECONDS, Patience
from airflow_provider_sms.ledger.balances import lost_lately, read_histories
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.ledger.requests import named_requests, unknown_requests
from airflow_provider_sms.stop_flag import StopFlag


@pytest.fixture
def slept():
    return []


@pytest.fixture
def patient(store, slept):
    """Give the ledger a patience of seconds, whose waits take no time."""

    def patient(seconds=10.0, stop=None):
        store.patience = Patience(seconds, stop, slept.append, lambda: sum(slept))
        return store

    return patient


@pytest.fixture
def away(store, monkeypatch):
    """Let the ledger's server be away: the next connections are refused."""

    def away(times):
        connect, left = type(store._engine).connect, [None] * times

        def refused(engine):
            if left:
                left.pop()
                raise OperationalError("", {}, Exception("connection refused"))
            return connect(engine)

        monkeypatch.setattr(type(store._engine), "connect", refused)

    return away


REPEATED = {
    "holders": lambda store, ledger: ledger.holders([people(1)[0].key]),
    "sums": lambda store, ledger: [row.submitted for row in ledger.sent_requests()],
    "requests": lambda store, ledger: ledger.states([1]),
    "pause": lambda store, ledger: pause_of(store, "c"),
    "trace": lambda store, ledger: has_trace(store, claimant()),
    "events": lambda store, ledger: ledger.known_events({1: 5}),
    "earlier": lambda store, ledger: [len(halves) for halves, *_ in ledger.earlier()],
    "unknown": lambda store, ledger: unknown_requests(store, "c"),
    "named": lambda store, ledger: [row.state for row in named_requests(store, [1])],
    "lost": lambda store, ledger: lost_lately(store, "account", 0.0),
    "evidence": lambda store, ledger: list(read_histories(store, "account", [1])),
    # Whether they were committed before the error or not.
    "register": lambda store, ledger: register(store, claimant(2)) > 0,
    "enter": lambda store, ledger: bool(type(ledger)(store, "d", claimant(), claimant_id=ledger._claimant_id)),
    "lapse": lambda store, ledger: ledger.lapse(),
    "supersede": lambda store, ledger: ledger.supersede([1]),
}


@pytest.mark.parametrize("act", REPEATED)
def test_what_may_be_repeated_is_tried_again_until_the_ledger_is_back(enter, patient, away, slept, caplog, act):
    """It returns what it would have returned, and the log says once what it waited for."""
    store, ledger = patient(), enter()
    ledger.commit(chunks=[chunk_of(people(1))], claim_seconds=60.0)
    wanted = REPEATED[act](store, ledger)
    away(3)
    assert REPEATED[act](store, ledger) == wanted
    assert (slept, [each.message.count("Trying again for up to 10 s") for each in caplog.records]) == (
        [RETRY_SECONDS] * 3,
        [1],
    )


NOT_REPEATED = {
    "claim": lambda store, ledger: ledger.commit(chunks=[chunk_of(people(1))], claim_seconds=60.0),
    "decision of a person": lambda store, ledger: pause(store, "c", "ann"),
}


@pytest.mark.parametrize("write", NOT_REPEATED)
def test_a_claim_and_a_persons_decision_are_not_tried_again(enter, patient, away, slept, write):
    """While the ledger is away nothing more is claimed, and a command says what failed."""
    store, ledger = patient(), enter()
    away(1)
    with pytest.raises(LedgerAwayError):
        NOT_REPEATED[write](store, ledger)
    assert slept == []


def test_a_ledger_that_connects_and_never_responds_is_given_up(patient, slept):
    """A connection that is had is no response: the patience does not begin anew with each."""

    def fail(_):
        raise OperationalError("", {}, Exception("server closed the connection unexpectedly"))

    with pytest.raises(LedgerAwayError):
        patient().fetch(fail)
    assert sum(slept) <= 10.0


def test_all_reads_share_the_seconds_since_the_ledger_last_responded(patient, away, slept):
    """A task whose ledger is gone ends after them, however many reads it still makes; two outages are two waits."""
    store = patient(2.0)
    for _ in range(2):
        away(3)
        assert not has_trace(store, claimant())
    assert sum(slept) == 6 * RETRY_SECONDS
    away(1000)
    for _ in range(5):
        with pytest.raises(LedgerAwayError):
            has_trace(store, claimant())
    assert sum(slept) == 6 * RETRY_SECONDS + 2.0


@pytest.mark.parametrize("stopped", [True, False])
def test_who_has_no_patience_or_was_told_to_stop_is_told_at_once(patient, away, slept, stopped):
    """A person, and a task that Airflow ends."""
    stop = StopFlag()
    if stopped:
        stop.set()
    store = patient(10.0 if stopped else 0.0, stop)
    away(1)
    with pytest.raises(LedgerAwayError):
        processes_of_try(store, claimant(), 1)
    assert slept == []


def test_a_ledger_that_went_back_is_not_asked_again(patient, slept):
    """Nothing that it says later is true."""

    def lost():
        raise LedgerLostError("gone")

    with pytest.raises(LedgerLostError):
        patient().patience.again(lost, Exception)
    assert slept == []
