from __future__ import annotations

import pytest
from support.faults.arena import Arena
from support.faults.network import idle, one, run
from support.faults.verdict import Figures

from airflow_provider_sms.sending import outcomes
from airflow_provider_sms.service import connections


def test_wherever_the_network_fails_the_promise_holds(ledgers):
    """Cut, slow, half-closed or wrong at any place: after the next try everybody is texted once or unknown."""
    figures = run(ledgers, quick=True)
    assert (figures.broken, figures.cases > 40, figures.unknown > 0) == (0, True, True)


@pytest.mark.parametrize("reset", [False, True], ids=["FIN", "RST"])
def test_a_connection_closed_while_idle_costs_nothing(ledgers, reset):
    """A connection that the server has closed is not used for the next request, which would then be unknown."""
    with Arena(ledgers) as arena:
        ended = idle(arena, reset=reset)
    assert (ended.summary["accepted"], ended.summary["requests"], ended.summary["unknown"]) == (12, 3, 0)
    assert arena.figures == Figures(cases=1)


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("request cut at nothing by FIN", 4),
        ("request cut at last byte by RST", 4),
        ("answer cut at last byte by FIN", 4),
        ("length too short, kept", 4),
        ("half-closed to the client", 4),
        ("length missing, closed", 0),
        ("answer byte by byte", 0),
        ("answer behind a 503", 4),
        ("answer and a byte", 0),
        ("answer twice", 0),
    ],
)
def test_only_what_has_no_whole_answer_is_unknown(ledgers, name, unknown):
    """A request that was written and not wholly answered is unknown; the others go out, and so does what is slow."""
    with Arena(ledgers) as arena:
        ended = one(arena, name, 2)
    assert (ended.summary["accepted"], ended.summary["unknown"]) == (12 - unknown, unknown)
    assert arena.figures == Figures(cases=1, unknown=unknown)


def test_a_client_that_keeps_every_connection_is_caught(ledgers, monkeypatch):
    """Whoever asks on a connection that gave an error takes a late answer for the next one's, and is found out."""
    monkeypatch.setattr(connections.Exchange, "leaves_connection_clean", True)
    with Arena(ledgers) as arena:
        one(arena, "answer behind a 503", 2)
    assert arena.figures.wrongly_accepted == 4


def test_a_sender_that_guesses_is_caught(ledgers, monkeypatch):
    """Whoever takes a lost answer for a request that was not sent texts people twice, and is found out."""
    monkeypatch.setattr(outcomes, "surely_not_sent", lambda error: True)
    with Arena(ledgers) as arena:
        one(arena, "answer cut at nothing by RST", 2)
        one(arena, "request cut at nothing by RST", 2)
    assert arena.figures == Figures(cases=2, duplicates=4)
