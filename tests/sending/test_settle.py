from __future__ import annotations

import time
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from types import SimpleNamespace

import pytest
from sqlalchemy import select
from support.engine import by_request
from support.keys import request_of
from support.sending import KEY, Service, chunk_of, claim, claimant, close, counted, failing, people

from airflow_provider_sms.exceptions import NotSentError, OutageError, RefusedError, UnknownOutcomeError
from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, Account, KeptEvidence
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, SUPERSEDED, UNKNOWN, Outcome
from airflow_provider_sms.ledger.requests import named_requests, unknown_requests
from airflow_provider_sms.ledger.schema import balance as balance_table
from airflow_provider_sms.ledger.schema import request as request_table
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sending.settle import Reconciliation, Settle, weigh
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution, StopConditions
from airflow_provider_sms.service.responses import Balance
from airflow_provider_sms.stop_flag import StopFlag

LOST = UnknownOutcomeError("the answer was lost")
PRICE = Decimal("1.5")
TAKEN = failing(LOST, accepted=True)
NOT_TAKEN = failing(LOST)


class Prepaid(Service):
    """A pre-paid account, which is charged when a message is taken; its balance can be read."""

    def __init__(self, balance=1000):
        super().__init__()
        self.balance = Decimal(balance)
        self.read = 0
        self.is_away = False
        self.post_paid = False

    def take(self, messages, number=0):
        with self.lock:
            self.balance -= PRICE * len(messages)
        return replace(super().take(messages, number), remaining_balance=self.balance)

    def get_balance(self):
        self.read += 1
        if self.is_away:
            raise NotSentError("connection refused")
        return Balance(Decimal(1000000) if self.post_paid else self.balance, self.post_paid)


def ok(service, messages, number):
    return service.take(messages, number)


@pytest.fixture
def pause(store):
    """Wait for no time, though the ledger's clock goes on; what is to happen ``later`` happens after a second."""

    def pause(seconds):
        pause.seconds += seconds
        if pause.later and pause.seconds >= 1.0:
            pause.later.pop()()

    its, pause.seconds, pause.later = store.clock, 0.0, []
    store.clock = lambda: its() + pause.seconds
    return pause


@pytest.fixture
def service(monkeypatch):
    """The service; a claim has its deadline a moment after its request, and then the request is settled."""
    monkeypatch.setattr("airflow_provider_sms.sending.sender.MARGIN_SECONDS", 0.3)
    return Prepaid()


@pytest.fixture
def ledger(store):
    """Enter the campaign as another attempt of a task of the account."""

    def ledger(try_number=1, campaign="c", key=KEY, **changes):
        who = claimant(try_number, **changes)
        return CampaignLedger(store, campaign, who, account=Account(key, Prices(PRICE).total))

    return ledger


@pytest.fixture
def reconciliation(store, service):
    """What reads the service's balance."""
    return lambda read_balance=service.get_balance: Reconciliation(store, "c", KEY, read_balance)


@pytest.fixture
def send(run, service, ledger, reconciliation, pause):
    """Send as a task does that reconciles: it reads the balance, and posts one request at a time."""

    def send(count, *, caution=None, into=None, sums=None, **options):
        sums = sums or reconciliation()
        if not service.is_away:
            sums.observe()
        return run(
            people(count),
            into or ledger(),
            reconciliation=sums,
            post_seconds=0.3,
            ask=sums.observe,
            on_unknown="reconcile",
            stop_conditions=StopConditions(caution=caution or Caution(on=True, calm=CALM_RESPONSES)),
            monotonic=lambda: time.monotonic() + pause.seconds,
            pause=pause,
            **{"concurrency": 4, **options},
        )

    return send


def counts(sending):
    reconciled = sending.settle._reconciliation.reconciled
    return {**counted(sending), **({"reconciled": reconciled} if reconciled else {})}


def decisions(store):
    with store.read() as connection:
        columns = request_table.c
        query = select(columns.id, columns.decision, columns.decided_by).where(columns.decided_at.is_not(None))
        query = query.order_by(columns.decided_at, columns.id)
        return [tuple(row) for row in connection.execute(query)]


@pytest.mark.parametrize("is_taken", [True, False])
def test_the_balance_decides_about_a_request_whose_response_was_lost(send, service, store, is_taken):
    """What it was charged for is accepted, with its cost; else this attempt posts its messages under a new claim.

    Nothing is posted before there is a verdict: it would be charged, too, and the sums would not tell requests apart.
    """
    seen = []
    service.before_each = lambda messages: seen.append(unknown_requests(store))
    service.script = [ok, TAKEN if is_taken else NOT_TAKEN, ok]
    sender = send(30)
    assert (counts(sender), sender.error) == ({"accepted": 30, "reconciled": 10}, None)
    assert seen == [[]] * len(service.requests)
    assert set(service.taken.values()) == {1}
    (row,) = named_requests(store, [2])
    state, verdict = (ACCEPTED, CHARGED) if is_taken else (NOT_SENT, NOT_CHARGED)
    assert (row.state, row.evidence.verdict, row.reason) == (state, verdict, row.evidence.words)
    assert decisions(store) == [(2, state, "balance")]
    assert (sender.sums.cost, sender.sums.parts, sender.sums.requests) == (PRICE * 30, 30, 3)


@pytest.mark.parametrize("is_back", [True, False])
def test_nothing_is_posted_while_the_balance_cannot_be_read(send, service, reconciliation, monkeypatch, is_back):
    """It is tried four times; then the attempt ends, and the next one goes on from there."""
    monkeypatch.setattr("airflow_provider_sms.sending.settle.UNREADABLE_SECONDS", 0.01)

    def away(service, messages, number):
        service.is_away, service.read = True, 0
        raise LOST

    def get_balance():
        service.is_away = service.is_away and not (is_back and service.read == 3)
        return Prepaid.get_balance(service)

    service.script = [ok, away]
    sender = send(30, sums=reconciliation(read_balance=get_balance))
    if is_back:
        assert (counts(sender), sender.error) == ({"accepted": 30, "reconciled": 10}, None)
    else:
        assert (counts(sender), service.read) == ({"accepted": 10, "unknown": 10, "not_sent": 10}, 4)
        assert isinstance(sender.error, OutageError)


def test_a_balance_counts_from_when_it_was_asked_for(store, clock):
    """What is charged while the response is under way may not be in it."""
    store.clock, began = clock, clock.now

    def read():
        clock.now += 5.0
        return Balance(Decimal(3), post_paid=False)

    Reconciliation(store, "c", KEY, read).observe()
    times = select(balance_table.c.asked_at, balance_table.c.read_at)
    assert store.fetch(lambda each: each.execute(times).all()) == [(began, began + 5.0)]


def test_a_post_paid_account_proves_nothing(send, service, store, reconciliation):
    """Its balance is always the same, so a lost request stays unknown, and no balance is waited for."""
    service.post_paid = True
    service.script = [NOT_TAKEN]
    sender = send(20)
    assert counts(sender) == {"accepted": 10, "unknown": 10}
    assert "post-paid" in named_requests(store, [1])[0].evidence.words
    assert reconciliation().in_doubt() is None


@pytest.mark.parametrize("is_taken", [True, False])
def test_lost_responses_of_a_service_that_takes_requests_are_no_outage(send, service, is_taken):
    """The send goes on without a wait while the balance shows that each is taken; else it ends as in any outage."""
    service.script = [ok, *[TAKEN if is_taken else NOT_TAKEN] * 5]
    sender = send(60)
    assert isinstance(sender.error, type(None) if is_taken else OutageError)
    expected = {"accepted": 60, "reconciled": 50} if is_taken else {"accepted": 10, "not_sent": 50, "reconciled": 20}
    assert (counts(sender), set(service.taken.values())) == (expected, {1})


def test_a_send_that_fails_closes_what_was_lost_before_it_ends(send, service, store):
    """The next attempt need not wait for what the balance tells already."""
    refused = RefusedError("no", status=400)
    service.script = [TAKEN, failing(refused)]
    sender = send(50, caution=Caution(), concurrency=2)
    (row,) = named_requests(store, [1])
    assert (sender.error, row.evidence.verdict) == (refused, CHARGED)
    assert counts(sender) == {"accepted": 10, "not_sent": 40, "reconciled": 10}


def test_decimals_of_other_code_text_nobody_twice(send, service, store, ledger, reconciliation, pause):
    """A DAG's file may compute with six digits: a balance that is rounded to them hides what two messages cost."""
    service.balance = Decimal(1_234_570)
    reconciliation().observe()
    two = people(2)
    ledger(1).commit(chunks=[chunk_of(two, [1] * 2)], claim_seconds=0.0)
    service.take(next(by_request(two)))
    pause(1.0)
    ledger(2).lapse()
    with localcontext(Context(prec=6)):
        reconciliation().close([1])
    assert counts(send(2, into=ledger(2))) == {"already_sent": 2}
    (row,) = named_requests(store, [1])
    assert (row.evidence.verdict, set(service.taken.values())) == (CHARGED, {1})


@pytest.fixture
def other(ledger):
    """A task of another campaign of the account, which makes one request."""

    def other(seconds=30.0):
        other = ledger(1, task_id="other", campaign="other")
        chunk = request_of([b"o" * 16], ["27830000000"], parts=[10])
        (claim,) = other.commit(chunks=[chunk], claim_seconds=seconds)
        return other, claim.request_id

    return other


def test_a_request_of_another_task_is_waited_for(send, service, other, pause):
    """It was open when the balance was read, and may explain the fall: its outcome tells."""

    def lost_beside_another(service, messages, number):
        task, request_id = other()
        pause.later.append(lambda: task.commit(outcomes=[Outcome(request_id, NOT_SENT)]))
        service.take(messages, number)
        raise LOST

    service.script = [ok, lost_beside_another]
    assert counts(send(30)) == {"accepted": 30, "reconciled": 10}


def test_a_task_that_is_never_quiet_is_not_waited_for_for_ever(send, service, other, pause, monkeypatch):
    """The request stays unknown, and the rest is sent."""
    monkeypatch.setattr("airflow_provider_sms.sending.settle.QUIET_SECONDS", 0.3)

    def lost_beside_another(service, messages, number):
        other()
        raise LOST

    service.script = [ok, lost_beside_another]
    assert counts(send(30)) == {"accepted": 20, "unknown": 10}
    assert pause.seconds < 20, "it waited for as long as for anything"


def test_tasks_that_lose_responses_again_and_again_are_not_waited_for_for_ever(
    send, other, reconciliation, monkeypatch
):
    """The attempt ends, and the next one sends the rest; nothing is posted while a charge could be another's."""
    monkeypatch.setattr("airflow_provider_sms.sending.settle.MAX_WAIT_SECONDS", 0.5)
    reconciliation().observe()
    task, request_id = other(seconds=60.0)
    task.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    sending = send(20)
    assert (counts(sending), type(sending.error)) == ({"not_sent": 20}, OutageError)


@pytest.mark.parametrize("is_taken", [True, False])
def test_what_another_task_lost_is_waited_for(send, service, other, reconciliation, store, is_taken):
    """Nothing is claimed until a balance tells of it, whoever reads that: else two sums would be one."""
    reconciliation().observe()
    task, request_id = other(seconds=1.0)
    if is_taken:
        service.take(next(by_request(people(10))))
    task.commit(outcomes=[Outcome(request_id, UNKNOWN)])
    seen = []
    service.before_each = lambda messages: seen.append(weigh(store, KEY, [request_id])[request_id].outcome)
    assert counts(send(20)) == {"accepted": 20}
    assert set(seen) == {CHARGED if is_taken else NOT_CHARGED}


# What a balance tells


@pytest.mark.parametrize("post_paid", [False, True], ids=["pre-paid", "post-paid"])
def test_another_account_takes_back_nothing_that_the_balance_told(reconciliation, service, store, ledger, post_paid):
    """A task with another connection, or a new token, knows nothing: the words that warn a person stay."""
    service.post_paid = post_paid
    request = claim(its := ledger(key="1" * 32), people(1))
    close(its, request, UNKNOWN, reason="lost")
    told = KeptEvidence(CHARGED, "It was taken.", 1.0)
    note_evidence(store, "c", {request: told})
    reconciliation().show([request])
    reconciliation().close([request])
    assert named_requests(store, [request])[0].evidence == told


# Claims of others, and requests that are sent again


@pytest.fixture
def settles(enter, store, clock):
    """Settle what a pass left open, in seconds that take no time; return whether messages became free, and how long."""

    def settles(noted, on_unknown="fail", meanwhile=lambda: None, stop=None, **enters):
        def sleep(seconds):
            clock.now += 1
            meanwhile()

        ledger, began = enter(**enters), clock.now
        nothing_wrong = {"goes_on": True, "ledger_failed": False, "error": None}
        after = SimpleNamespace(lost=set(), noted=set(noted), **nothing_wrong)
        sums = Reconciliation(store, "c", KEY, None)
        each = Settle(ledger, sums, on_unknown, stop or StopFlag(), sleep, monotonic=lambda: clock.now)
        return each.run(after), clock.now - began

    return settles


@pytest.fixture
def claimed(enter):
    """Let another process claim ten messages for 45 seconds; return its ledger and the request."""

    def claimed(**who):
        ledger = enter(**{"task_id": "other", **who})
        return ledger, ledger.commit(chunks=[chunk_of(people(10))], claim_seconds=45.0)[0].request_id

    return claimed


@pytest.mark.parametrize(("state", "freed"), [(ACCEPTED, False), (UNKNOWN, False), (NOT_SENT, True)])
@pytest.mark.parametrize("who", [{}, {"task_id": "t", "pid": 2}, {"map_index": 4}, {"try_number": 2}])
def test_a_claim_of_another_process_is_waited_for(settles, claimed, clock, who, state, freed):
    """Its process may still record an outcome, and then nobody is unknown; what it gives back is free."""
    other, request_id = claimed(**who)
    due = clock.now + 10

    def record():
        if clock.now >= due:
            other.finish([Outcome(request_id, state)])

    assert settles([request_id], meanwhile=record) == (freed, 10)


@pytest.mark.parametrize("on_unknown", ["fail", "resend"])
def test_a_claim_is_waited_for_until_it_lapses(settles, claimed, on_unknown):
    """Its process may be dead, or cut off from the ledger; while it may record the outcome, nothing is sent again."""
    assert settles([claimed()[1]], on_unknown) == (False, 46)


def test_a_clock_that_is_set_back_is_not_waited_for(settles, claimed, clock, monkeypatch):
    """The claim seems to lapse tomorrow; no claim of an honest clock is waited for as long."""
    monkeypatch.setattr("airflow_provider_sms.sending.settle.MAX_WAIT_SECONDS", 60.0)
    request_id = claimed()[1]
    clock.now -= 86_400
    assert settles([request_id]) == (False, 61)


@pytest.mark.parametrize(("patience", "after", "freed"), [(300, 345, False), (300, 346, True), (0, 46, True)])
def test_a_lapsed_claim_is_superseded_once_its_process_has_given_up(
    settles, claimed, store, clock, patience, after, freed
):
    """Patience counts from the deadline, until which the request may be posted."""
    _, request_id = claimed()
    clock.now += after
    store.patience = Patience(patience)
    assert settles([request_id], "resend") == (freed, 0)
    assert [row.state for row in named_requests(store, [request_id])] == [SUPERSEDED if freed else UNKNOWN]


@pytest.mark.parametrize(("try_number", "freed"), [(1, False), (2, True)])
def test_a_message_is_sent_again_once_by_an_attempt(settles, enter, store, try_number, freed):
    """By all its processes: the next attempt comes after Airflow's retry delay."""
    ledger = enter()
    for _ in range(2):
        (claim,) = ledger.commit(chunks=[chunk_of(people(10))], claim_seconds=45.0)
        ledger.finish([Outcome(claim.request_id, UNKNOWN)])
        found = settles([claim.request_id], "resend", try_number=try_number)
    assert found == (freed, 0)
    assert named_requests(store, [claim.request_id])[0].state == (SUPERSEDED if freed else UNKNOWN)


def test_a_stop_ends_the_wait_for_a_claim(settles, claimed):
    """Airflow is about to kill the task."""
    stop = StopFlag()
    assert settles([claimed()[1]], meanwhile=stop.set, stop=stop) == (False, 1)


def test_a_request_that_is_gone_has_freed_its_messages(settles):
    """A request is deleted where another one won all of its messages, or with a campaign that is purged."""
    assert settles([99]) == (True, 0)
