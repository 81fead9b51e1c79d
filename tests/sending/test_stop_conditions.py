from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from support.later import later
from support.sending import answer, failing, people

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    NotSentError,
    OutageError,
    RefusedError,
    ThrottledError,
    TooManyErrorsError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.campaigns import pause, resume
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.send_window.window import SendWindow
from airflow_provider_sms.sending.stop_conditions import MAX_LOST_ALONE, Caution, StopConditions, StopReason
from airflow_provider_sms.stop_flag import StopFlag

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=timezone.utc)
CLOSES = datetime(2026, 11, 23, 20, 0, tzinfo=timezone.utc)
OPENS = datetime(2026, 11, 24, 8, 0, tzinfo=timezone.utc)
HOURS = SendWindow(start="08:00", end="20:00", timezone="UTC")
EVENTS = itertools.count(1)
LOST = UnknownOutcomeError("the answer was lost")
AWAY = UnknownOutcomeError("HTTP 502", status=502)
OUT_OF_CREDIT = RefusedError("no credit", status=403, code="InsufficientCredits")


class Service:
    """Takes what it is sent while the credit lasts, 1 for each message."""

    def __init__(self, balance, told=None):
        self.balance = Decimal(balance)
        self.told = told
        self.taken = []

    def __call__(self, messages):
        if len(messages) > self.balance:
            raise OUT_OF_CREDIT
        self.balance -= len(messages)
        self.taken += messages.destinations
        told = self.balance if self.told is None else self.told
        return replace(answer(next(EVENTS), len(messages)), remaining_balance=told)


def credit(balance):
    return StopConditions(prices=Prices(1), balance=Decimal(balance))


@pytest.mark.parametrize(
    ("times", "requests"),
    [
        pytest.param([CLOSES], 0, id="before the first claim"),
        # For a claim, for its POST, for the next claim; then the clock is set back.
        pytest.param([NOON, NOON, CLOSES], 1, id="in the middle"),
    ],
)
def test_nothing_is_claimed_outside_of_the_hours(run, service, times, requests):
    """They are looked at before every claim; once over they are over for all, and the send says when it may go on."""
    left = iter(times)
    stop_conditions = StopConditions(HOURS, clock=lambda: next(left, NOON).timestamp())
    send = run(people(50), stop_conditions=stop_conditions, concurrency=1)
    assert (len(service.requests), send.error, stop_conditions.stop_reason) == (requests, None, StopReason(until=OPENS))
    assert (send.counts.accepted, send.counts.not_sent) == (10 * requests, 50 - 10 * requests)


def test_each_recipient_has_hours_of_their_own(run, service):
    """With the recipients' time zones those whose hours it is are texted; the others wait for the next of theirs."""
    window = SendWindow(start="08:00", end="20:00", timezone="UTC", recipient_time_zone=True)
    everybody = [people(1)[0], *people(3, 34_692_000_000)]  # South Africa and, of 61…, Australia
    australians = [m._replace(destination=f"6141234567{n}") for n, m in enumerate(everybody[1:])]
    stop_conditions = StopConditions(window, clock=NOON.timestamp)
    send = run([everybody[0], *australians], stop_conditions=stop_conditions)
    assert (list(service.taken), send.counts.not_sent) == ([everybody[0].destination], 3)
    assert stop_conditions.stop_reason is not None
    assert NOON < stop_conditions.stop_reason.until < NOON + timedelta(hours=24)


@pytest.mark.parametrize("by_recipient", [False, True])
def test_hours_that_end_while_the_ledger_is_busy_end_for_what_it_claims(run, enter, service, by_recipient):
    """They are looked at again before the POST, since the commit of a claim may wait for a minute."""
    window = SendWindow(start="08:00", end="20:00", timezone="UTC", recipient_time_zone=by_recipient)
    now, ledger = [NOON], enter()
    commit = ledger.commit

    def slow(**what):
        claims = commit(**what)
        if len(service.requests) == 2:
            now[0] = NOON + timedelta(hours=11)  # night in South Africa, too
        return claims

    ledger.commit = slow
    stop_conditions = StopConditions(window, clock=lambda: now[0].timestamp())  # noqa: PLW0108 - it changes
    send = run(people(50), ledger, stop_conditions=stop_conditions, concurrency=1)
    assert (send.error, len(service.requests), stop_conditions.stop_reason is None) == (None, 2, False)
    assert (send.counts.accepted, send.counts.not_sent) == (20, 30)
    assert not enter(2).holders([m.key for m in people(50)[20:]])


def test_hours_that_end_before_a_request_is_tried_again_take_their_messages_out_of_its_claim(run, enter, service):
    """The second claim has only the messages that may still go out, and another task has sent these meanwhile."""
    window = SendWindow(start="08:00", end="20:00", timezone="UTC", recipient_time_zone=True)
    south_africans = people(5)
    britons = [m._replace(destination=f"44770090000{n}") for n, m in enumerate(people(5, 10))]
    now = [datetime(2026, 1, 14, 17, 50, tzinfo=timezone.utc).timestamp()]
    ledger, others = enter(), []
    commit = ledger.commit

    def turned_away(service, messages, number):
        now[0] += 15 * 60.0  # the hours of South Africa have ended
        # Later than the commit that gives the messages back.
        raise ThrottledError("429", status=429, retry_after=0.2)

    def recording(**what):
        claims = commit(**what)
        if what["outcomes"] and not (what["chunks"] or others):
            others.append(run(britons, enter(task_id="another")))
        return claims

    ledger.commit = recording
    service.script = [turned_away]
    stop_conditions = StopConditions(window, clock=lambda: now[0])
    send = run([*south_africans, *britons], ledger, stop_conditions=stop_conditions, concurrency=1)
    assert (send.error, service.duplicates, len(service.taken)) == (None, 0, 5)
    assert (send.counts.already_sent, send.counts.not_sent) == (5, 5)
    assert not enter(2).holders([m.key for m in south_africans])


@pytest.mark.parametrize(("told", "needed"), [(None, 10), (1000, 1001), (1000, None)])
def test_a_service_that_says_that_the_credit_is_out_halts(run, told, needed):
    """The send waits for what the refused request costs, and for more than a balance that the service calls too low.

    Where nobody asked to wait, it is an error.
    """
    service = Service(35, told and Decimal(told))
    stop_conditions = StopConditions() if needed is None else credit(35)
    send = run(people(100), post=service, stop_conditions=stop_conditions, concurrency=1)
    assert (len(service.taken), send.counts.not_sent) == (30, 70)
    assert send.error == (OUT_OF_CREDIT if needed is None else None)
    assert stop_conditions.stop_reason == (None if needed is None else StopReason(credit=Decimal(needed)))


@pytest.mark.parametrize(("limit", "stops"), [(0.1, True), (0.2, False), (None, False)])
def test_too_many_bad_answers_stop_the_send(run, service, limit, stops):
    """The share is judged from the first hundred messages on, and what was taken stays counted."""
    service.script = [lambda service, messages, number: service.take(messages, number, 2)] * 100
    send = run(people(300), stop_conditions=StopConditions(max_error_rate=limit), concurrency=1)
    assert (isinstance(send.error, TooManyErrorsError), len(service.requests)) == (stops, 10 if stops else 30)


def test_old_errors_are_forgotten(run, service):
    """Only the last thousand messages are judged: a bad start that was too little then is none later."""
    stop_conditions = StopConditions(max_error_rate=0.0095)
    for _ in range(95):
        stop_conditions._judge(10, 0, 1.0)
    service.script = [lambda service, messages, number: service.take(messages, number, 9)]
    send = run(people(2000), stop_conditions=stop_conditions, concurrency=1)
    assert send.error is None


@pytest.mark.parametrize("ends", ["resumed", "told to stop"])
def test_a_paused_campaign_claims_nothing_until_it_is_resumed(run, service, store, enter, ends):
    """The sender waits between requests, without an end, and goes on by itself; Airflow may still end the task."""
    ledger, stop, stop_conditions = enter(), StopFlag(), StopConditions()
    pause(store, "c", "anna")
    act = stop.set if ends == "told to stop" else lambda: resume(store, "c", "bert")
    with later(act, lambda: stop_conditions.paused and stop_conditions.paused.paused_by == "anna"):
        send = run(people(15), ledger, stop=stop, stop_conditions=stop_conditions)
    sent = [5, 10] if ends == "resumed" else []
    assert (sorted(map(len, service.requests)), send.counts.accepted, send.error) == (sent, sum(sent), None)
    assert (stop_conditions.paused is None) == (ends == "resumed")


# Answers that are lost


@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_an_outage_costs_a_handful_of_requests(run, service, concurrency):
    """Where every answer is lost, at most ``concurrency`` + 2 requests are unknown, and the rest is not sent."""
    service.script = [failing(LOST)] * 1000
    send = run(people(1000), concurrency=concurrency)
    posted = 10 * len(service.requests)
    assert posted <= 10 * (concurrency + MAX_LOST_ALONE)
    assert (send.counts.unknown, send.counts.not_sent, type(send.error)) == (posted, 1000 - posted, OutageError)


def test_an_outage_that_ends_is_survived(run, service):
    """Nothing is posted while the service does not answer a free question; once it does, everybody else is texted."""
    service.script = [failing(LOST)] * 3
    answers = iter([failing(AWAY)] * 2)

    def ask():
        for lost in answers:
            lost(service, [], 0)

    send = run(people(200), concurrency=2, ask=ask)
    assert (send.error, send.counts.accepted + send.counts.unknown) == (None, 200)
    assert (send.counts.unknown, service.duplicates) == (30, 0)


@pytest.mark.parametrize("known", [False, True])
def test_an_outage_of_any_length_costs_no_more_than_what_was_in_flight(run, service, enter, known):
    """While a free question is not answered, nothing is posted; a try that knows of it begins with one request."""
    service.script = [failing(LOST)] * 1000
    stop_conditions = StopConditions(caution=Caution(on=known))
    send = run(people(1000), concurrency=4, ask=lambda: failing(AWAY)(service, [], 0), stop_conditions=stop_conditions)
    assert len(service.requests) <= (1 if known else 4)
    assert (send.counts.unknown, isinstance(send.error, NotSentError)) == (10 * len(service.requests), True)
    assert len(enter(2).holders([m.key for m in people(1000)])) == send.counts.unknown


def test_a_balance_that_is_never_answered_keeps_no_send_back(run, service):
    """A service that takes messages is there, though its balance cannot be read, as with a wrong address."""
    send = run(
        people(100), ask=lambda: failing(AWAY)(service, [], 0), stop_conditions=StopConditions(caution=Caution(on=True))
    )
    assert (send.error, send.counts.accepted) == (None, 100)


def test_an_answer_between_lost_ones_lets_all_go_again(run, service):
    """Answers that are lost now and then slow a send down for a moment, and end nothing."""
    service.script = [failing(LOST) if n % 3 == 0 else lambda s, m, k: s.take(m, k) for n in range(60)]
    send = run(people(600), concurrency=1)
    assert (send.error, send.counts.unknown, send.counts.accepted) == (None, 200, 400)


@pytest.mark.parametrize(
    ("error", "accepted"), [(RefusedError("404", status=404), 20), (AuthenticationError("401", status=401), 0)]
)
def test_a_refused_free_question_is_an_answer(run, service, error, accepted):
    """A service that answers is there, whatever it says of the balance, unless requests would be refused, too."""
    service.script = [failing(LOST)]
    send = run(people(30), concurrency=1, ask=lambda: failing(error)(service, [], 0))
    assert (send.error, send.counts.accepted, send.counts.unknown) == (None if accepted else error, accepted, 10)


def test_requests_go_one_at_a_time_until_enough_were_answered():
    """A send that reconciles is calm after so many responses in a row; one that is lost begins the count anew."""
    caution = Caution(on=True, calm=3)

    def answered(count):
        for _ in range(count):
            caution.answered(alone=True)
        return caution.on

    assert answered(2)
    caution.lost(alone=True)
    assert answered(2)
    assert not answered(1)
    caution.lost(alone=False)
    caution.answered(alone=False)
    assert answered(2)
    assert not answered(1)
