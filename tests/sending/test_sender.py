from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import delete, func, select, update
from support.engine import by_request
from support.later import later
from support.sending import (
    EVENT,
    answer,
    between_lookup_and_claim,
    claim,
    claimant,
    close,
    counted,
    failing,
    outgoing,
    people,
)

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    InputError,
    LedgerBusyError,
    LedgerError,
    LedgerLostError,
    NotSentError,
    RefusedError,
    SourceError,
    ThrottledError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.schema import attempt as attempt_table
from airflow_provider_sms.ledger.schema import message, request
from airflow_provider_sms.sending.outcomes import outcome_of
from airflow_provider_sms.sending.request_batch import Chunks, InFlightRequest, RequestBatch
from airflow_provider_sms.sending.sender import MARGIN_SECONDS
from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions
from airflow_provider_sms.service.elapsed import latest_end
from airflow_provider_sms.stop_flag import StopFlag

LOST = UnknownOutcomeError("the answer was lost")
DOWN = NotSentError("connection refused")


def states(ledger, keys):
    """Return how many messages are in each state; those that nobody holds are not sent."""
    keys = [each if isinstance(each, bytes) else each.key for each in keys]
    holders = ledger.holders(keys)
    return Counter(holders[key].state if key in holders else NOT_SENT for key in keys)


def hold(ledger, messages, state=None):
    """Let another try claim messages, and record what became of them."""
    request_id = claim(ledger, messages)
    if state is not None:
        close(ledger, request_id, state)
    return request_id


def test_a_message_is_posted_only_after_its_claim_is_durable(run, service, enter):
    """The rule above all: at every POST, another connection sees the claims of all of its messages."""
    witness = enter(9)
    seen = []
    service.before_each = lambda messages: seen.append(states(witness, messages.keys))
    run(people(45))
    assert sorted(seen, key=str) == [{CLAIMED: 10}] * 4 + [{CLAIMED: 5}]


def test_a_lost_answer_is_unknown_and_not_sent_again(run, service, enter):
    """A request that may have been processed is never posted again, now or by the next try."""
    service.script = [failing(LOST, accepted=True)]
    first = run(people(30), enter(1))
    retry = run(people(30), enter(2))
    assert counted(first) == {"accepted": 20, "unknown": 10}
    assert counted(retry) == {"already_sent": 20, "unknown": 10}
    assert first.counts.unsettled == retry.counts.unsettled == {1: 10}
    assert service.duplicates == 0


def test_a_send_that_an_error_ends_lets_nothing_be_sent_again(run, service, enter):
    """What was lost stays unknown and held, since this attempt would not send it again."""
    service.script = [failing(LOST), failing(AuthenticationError("401", status=401))]
    send = run(people(20), enter(1), on_unknown="resend", concurrency=1)
    assert counted(send) == {"unknown": 10, "not_sent": 10}
    assert states(enter(2), people(20)) == {UNKNOWN: 10, NOT_SENT: 10}


def test_a_wait_that_is_over_before_it_begins_ends(sender):
    """On a busy machine a short wait is over before it begins; a SimpleQueue would then wait for an answer for ever."""
    kind = type(sender().sender._ended)

    def wait_often():
        for _ in range(5000):
            with pytest.raises(queue.Empty):
                kind().get(timeout=1e-7)

    thread = threading.Thread(target=wait_often, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


class Panic(BaseException):
    """An exception that is no error."""


@pytest.mark.parametrize(
    ("error", "requests", "unknown"),
    [
        pytest.param(DOWN, 4, 0, id="a service that stays away"),
        pytest.param(ThrottledError("503", status=503), 3, 0, id="the service's own 503, which is believed twice"),
        pytest.param(RefusedError("400", status=400), 1, 0, id="a refusal"),
        pytest.param(AuthenticationError("401", status=401), 1, 0, id="a token that is refused"),
        pytest.param(InputError("send_options cannot be written as JSON"), 1, 0, id="a request that was never made"),
        pytest.param(ZeroDivisionError("27820000000"), 1, 10, id="an error that nobody foresaw"),
        pytest.param(Panic(), 1, 10, id="an exception that is no error"),
    ],
)
def test_an_error_ends_the_send_and_leaves_the_rest_to_the_next_attempt(run, service, enter, error, requests, unknown):
    """Nothing more is claimed; what was surely not processed is free for the next, and else its request is unknown."""
    service.script = [failing(error)] * requests
    send = run(people(30), enter(1), concurrency=1)
    free = 30 - unknown
    expected = {"not_sent": free, "unknown": unknown} if unknown else {"not_sent": free}
    assert (counted(send), len(service.requests)) == (expected, requests)
    assert send.error is error or isinstance(error, Panic)
    retry = run(people(30), enter(2))
    assert (counted(retry).get("accepted"), service.duplicates) == (free, 0)


def test_fewer_messages_than_submitted_are_counted(run, service, enter):
    """A request taken in part is accepted in part; nobody of it is texted again, since who was left out is not said."""
    service.script = [lambda s, messages, number: s.take(messages, number, left_out=3)]
    send = run(people(20))
    assert (counted(send), send.sums.left_out) == ({"accepted": 20}, 3)
    assert send.sums.error_report["OptedOuts"] == 3
    retry = run(people(20), enter(2))
    assert counted(retry) == {"already_sent": 20}


def test_a_table_that_cannot_be_read_ends_the_pass(sender, service, enter):
    """What was claimed before is sent and recorded; the error is kept."""
    error = SourceError("the file is gone")

    def messages():
        yield from people(20)
        raise error

    send = sender().sender
    assert not send.run(Chunks(by_request(messages(), 10)))
    assert (send.error, len(service.taken)) == (error, 20)
    assert states(enter(2), people(20)) == {ACCEPTED: 20}


def test_an_error_after_a_commit_keeps_no_claim_from_being_posted(sender, run, enter, monkeypatch):
    """Every request that is claimed is posted, whatever fails next to it: its outcome is known."""
    ledger, another = enter(), sender(enter(run_id="another"), concurrency=1)
    holders, commit = ledger.holders, ledger.commit

    def meet(**arguments):
        another.run(people(1))
        monkeypatch.setattr(ledger, "commit", commit)
        return commit(**arguments)

    monkeypatch.setattr(ledger, "commit", meet)
    monkeypatch.setattr(ledger, "holders", lambda keys: 1 / 0 if len(keys) == 1 else holders(keys))
    send = run(people(40), ledger, concurrency=2)
    assert (type(send.error), states(enter(2), people(40))) == (ZeroDivisionError, {ACCEPTED: 20, NOT_SENT: 20})


def test_stopping_claims_nothing_more_and_records_what_is_in_flight(run, service, enter, store):
    """Told to stop, a sender waits for its posts, records them, and leaves the rest to the next try."""
    stop = StopFlag()
    service.before_each = lambda messages: stop.set()
    send = run(people(30), stop=stop, concurrency=1)
    assert (counted(send), len(service.requests)) == ({"accepted": 10, "not_sent": 20}, 1)
    assert states(enter(2), people(30)) == {ACCEPTED: 10, NOT_SENT: 20}
    with store.read() as connection:
        assert connection.execute(select(request.c.state)).scalars().all() == [ACCEPTED]


@pytest.mark.parametrize("told", ["after its claim", "during a free question"])
def test_a_request_that_has_not_begun_when_the_send_is_told_to_stop_is_given_back(run, enter, service, told):
    """Nothing is posted that could not be recorded in the seconds that are left; a question may take as long."""
    ledger, stop, caution = enter(1), StopFlag(), Caution()
    if told == "after its claim":
        commit = ledger.commit

        def commit_and_stop(**arguments):
            claims = commit(**arguments)
            stop.set()
            return claims

        ledger.commit = commit_and_stop
    else:
        caution = Caution(on=True)
        caution.lost(alone=True)
    send = run(people(30), ledger, stop=stop, ask=stop.set, stop_conditions=StopConditions(caution=caution))
    assert (stop.is_set(), service.requests, send.counts.not_sent) == (True, [], 30)
    assert enter(2).holders([m.key for m in people(30)]) == {}


@pytest.mark.parametrize(
    ("failures", "error"), [(1, LedgerError), (3, LedgerError), (6, LedgerError), (6, LedgerBusyError)]
)
def test_outcomes_are_recorded_once_the_ledger_answers_again(run, service, enter, caplog, failures, error):
    """A ledger that fails for a while, or whose lock is kept for minutes, ends the send, and costs no outcome."""
    send = run(people(30), failing_ledger(enter(1), set(range(2, 2 + failures)), error=error), concurrency=1)
    assert (counted(send), type(send.error)) == ({"accepted": 10, "not_sent": 20}, error)
    assert states(enter(2), people(30)) == {ACCEPTED: 10, NOT_SENT: 20}
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("busy", "times"),
    [*(({*range(first, first + 5)}, 5) for first in (1, 2, 3)), ({*range(1, 5), *range(6, 10), *range(11, 15)}, 4)],
    ids=str,
)
def test_a_lock_that_is_not_had_is_waited_for_again(run, service, enter, caplog, monkeypatch, busy, times):
    """Nothing of the commit has happened, and it is made in the end: nobody is posted twice, and the send goes on.

    Waits are counted in a row, so that a campaign that is busy now and then goes on for hours.
    """
    monkeypatch.setattr("airflow_provider_sms.sending.sender.DEFER_SECONDS", 0.001)
    send = run(people(30), failing_ledger(enter(1), busy, error=LedgerBusyError), concurrency=1)
    assert (counted(send), send.error, service.duplicates) == ({"accepted": 30}, None, 0)
    assert states(enter(2), people(30)) == {ACCEPTED: 30}
    assert f"Trying again, {times} of 5 times" in caplog.text


def test_a_ledger_that_stays_away_leaves_the_outcomes_in_the_log(run, service, enter, caplog):
    """When outcomes cannot be recorded, the log names the requests, their state and event ids, and no number."""
    ledger = failing_ledger(enter(1), set(range(2, 10_000)))
    send = run(people(30), ledger, concurrency=1)
    assert isinstance(send.error, LedgerError)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "Not recorded in the ledger: request 1 is accepted, event id 9007199254740993"
    ]
    assert (counted(send), len(service.requests)) == ({"unknown": 10, "not_sent": 20}, 1)


def test_a_post_that_comes_too_late_for_its_claim_is_claimed_anew(run, service, enter):
    """A process that slept between claim and POST gives the claim back unposted, and claims again."""

    class Sleeper:
        """A clock that is far ahead once, when the POST looks at it."""

        slept = False

        def __call__(self):
            posting = threading.current_thread() is not threading.main_thread()
            ahead, self.slept = (1000.0 if posting and not self.slept else 0.0), self.slept or posting
            return time.time() + ahead

    send = run(people(5), enter(clock=Sleeper()))
    assert (counted(send), len(service.requests), service.duplicates) == ({"accepted": 5}, 1, 0)
    assert enter(2).holders([people(1)[0].key])[people(1)[0].key].request_id == 2


@pytest.mark.parametrize(("asks", "posts"), [(False, 1), (True, 2)])
def test_a_post_is_told_when_its_claim_ends(run, service, enter, clock, store, asks, posts):
    """What the claim has left is counted by the client's clock, before anything is asked of the ledger's.

    A claim whose service is asked a question first has twice the time.
    """
    caution = Caution(on=asks)
    caution.asks = asks
    told = []

    def post(messages):
        told.append(latest_end())
        return service(messages)

    def commit(**given):
        claimed = CampaignLedger.commit(ledger, **given)
        ledger.elapsed = lambda: 704.0
        return claimed

    ledger = enter(clock=clock)
    ledger.elapsed, ledger.commit = lambda: 700.0, commit
    run(people(5), ledger, post=post, stop_conditions=StopConditions(caution=caution), ask=lambda: None)
    assert told == [min(700.0 + posts * 5.0, 704.0 + 5.0) + MARGIN_SECONDS]
    with store.read() as connection:
        seconds = connection.execute(select(request.c.deadline - request.c.claimed_at)).scalar()
    assert seconds == posts * 5.0 + MARGIN_SECONDS
    assert latest_end() == float("inf")


def test_a_crash_while_waiting_to_post_again_makes_nothing_unknown(sender, service, enter):
    """A request that was surely not processed holds no claim while it waits."""
    witness = enter(9)
    service.script = [failing(ThrottledError("429", retry_after=1.0))]
    send = sender(concurrency=1)
    thread = threading.Thread(target=send.run, args=(people(10),))
    thread.start()
    seen = []
    while thread.is_alive():
        seen.append(states(witness, people(10)))
        time.sleep(0.02)
    assert ({NOT_SENT: 10} in seen, counted(send)) == (True, {"accepted": 10})


def test_requests_are_paced(run, service):
    """No more requests a second go out than were asked for."""
    began = time.monotonic()
    run(people(50), max_requests_per_second=20, concurrency=5)
    assert len(service.requests) == 5
    assert time.monotonic() - began >= 0.2


def test_the_table_is_read_no_faster_than_requests_go_out(sender, service):
    """Backpressure: while posts hang, what fills the slots is read, and one request ahead of it."""
    release = threading.Event()
    service.before_each = lambda messages: release.wait(10)
    read = []

    def messages():
        for start in range(0, 1000, 10):
            read.append(start)
            yield from people(10, start)

    thread = threading.Thread(target=sender(concurrency=2).sender.run, args=(Chunks(by_request(messages(), 10)),))
    thread.start()
    while len(read) < 3:
        time.sleep(0.001)
    time.sleep(0.1)
    hanging = len(read)
    release.set()
    thread.join()
    assert (hanging, len(read), len(service.taken)) == (3, 100, 1000)


def test_at_most_concurrency_requests_are_open(run, service, enter):
    """A crash at any POST leaves at most ``concurrency`` requests without an outcome."""
    witness = enter(9)
    most = []
    service.before_each = lambda messages: most.append(states(witness, people(100)).get(CLAIMED, 0))
    run(people(100), concurrency=3)
    assert 0 < max(most) <= 30


def test_no_number_or_text_is_logged(run, service, caplog):
    """The log counts, and names requests only."""
    caplog.set_level("DEBUG")
    service.script = [failing(LOST), failing(DOWN), failing(ThrottledError("429"))]
    service.script += [lambda s, messages, number: s.take(messages, number, left_out=3)]
    run([outgoing(27820000000 + n, "secret words") for n in range(60)], concurrency=1)
    assert caplog.records
    assert not [line for line in caplog.messages if "278200" in line or "secret" in line]


def test_what_somebody_else_claimed_meanwhile_is_not_posted(run, service, enter):
    """Between look-up and claim another copy may have claimed: only what this claim won is posted under it."""
    other, stop = enter(1), StopFlag()
    ledger = between_lookup_and_claim(enter(2), lambda: hold(other, people(5)))
    with later(stop.set, lambda: len(service.taken) >= 15):
        send = run(people(20), ledger, concurrency=1, stop=stop)
    assert not {m.destination for m in people(5)} & service.taken.keys()
    assert counted(send) == {"accepted": 15, "unknown": 5}


@pytest.mark.parametrize("becomes", [NOT_SENT, UNKNOWN])
def test_what_somebody_else_claimed_meanwhile_and_does_not_send_is_sent(run, service, enter, becomes):
    """What was given back another pass sends; what was lost is settled, as if it had been lost before the check."""
    other, held = enter(1), []

    def hold_once():
        held.append(hold(other, people(5), UNKNOWN if becomes == UNKNOWN else None))

    ledger = between_lookup_and_claim(enter(2), hold_once)
    with later(lambda: close(other, held[0], becomes), lambda: len(service.taken) >= 15):
        send = run(people(20), ledger, concurrency=1, on_unknown="resend")
    assert (counted(send), set(service.taken.values())) == ({"accepted": 20}, {1})


def test_without_threads_nothing_is_claimed(run, service, enter, monkeypatch):
    """A machine without threads to spare sends nothing, loses nothing, and keeps none of those that have started."""
    start = threading.Thread.start

    def refuse_the_last(thread):
        if thread.name == "sms-post-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_last)
    send = run(people(20), concurrency=3)
    assert (counted(send), type(send.error), service.requests) == ({"not_sent": 20}, RuntimeError, [])
    assert states(enter(2), people(20)) == {NOT_SENT: 20}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sms-post")]


def test_an_error_of_our_own_never_gives_back_what_was_posted(run, service, enter, monkeypatch):
    """Even a bug that loses an outcome leaves its request unknown, in the ledger and in the counts."""
    handled = []

    def outcome(request, *args, **options):
        handled.append(request)
        return outcome_of(None if len(handled) == 2 else request, *args, **options)

    monkeypatch.setattr("airflow_provider_sms.sending.sender.outcome_of", outcome)
    send = run(people(50), concurrency=1)
    assert (type(send.error), counted(send)) == (AttributeError, {"accepted": 10, "unknown": 10, "not_sent": 30})
    assert states(enter(2), people(50)) == {ACCEPTED: 10, UNKNOWN: 10, NOT_SENT: 30}
    retry = run(people(50), enter(2))
    assert (counted(retry), service.duplicates) == ({"accepted": 30, "already_sent": 10, "unknown": 10}, 0)


def test_an_error_after_a_response_does_not_cost_the_record_of_its_request(sender, service, enter, monkeypatch):
    """The outcome is kept for the ledger first of all: whoever was texted stays so, whatever fails then."""
    send = sender(concurrency=1)
    monkeypatch.setattr(send.stop_conditions, "answered", lambda *_: 1 / 0)
    send.run(people(20))
    assert (type(send.error), states(enter(2), people(20))) == (ZeroDivisionError, {ACCEPTED: 10, NOT_SENT: 10})


def failing_ledger(ledger, failing, *, error=LedgerError):
    """Let the n-th transactions of a ledger fail as those of a full disk do."""
    numbers, write = itertools.count(1), ledger._write

    @contextmanager
    def failing_write(**how):
        if next(numbers) in failing:
            raise error("disk is full")
        with write(**how) as connection:
            yield connection

    ledger._write = failing_write
    return ledger


# What a response means


def test_an_event_id_that_came_before_is_no_answer(run, service, enter):
    """An answer that a connection carries twice is taken for one request only, also where an earlier try had it."""
    run(people(10), enter(1))
    service.script = [lambda s, messages, number: replace(s.take(messages, 0), messages=len(messages))]
    send = run(people(30), enter(2), concurrency=1)
    assert counted(send) == {"accepted": 10, "already_sent": 10, "unknown": 10}


@pytest.mark.parametrize("earlier", ["none", "recorded", "not yet recorded"])
def test_of_responses_that_come_together_one_has_an_event_id(sender, enter, earlier):
    """It belongs to the first of them, and to none where an earlier request has it."""
    ledger = enter()
    send, first = sender(ledger).sender, claim(ledger, people(1, 5))
    if earlier == "recorded":
        close(ledger, first, event_id=EVENT)
    if earlier == "not yet recorded":
        send._unrecorded.append(Outcome(first, ACCEPTED, event_id=EVENT))
    batches = [RequestBatch(each) for each in by_request(people(3), 1)]
    claims = ledger.commit(chunks=[each.messages for each in batches], claim_seconds=60.0)
    for (number, batch), each in zip(enumerate(batches), claims, strict=True):
        request = InFlightRequest(each.request_id, batch, each.deadline, 0.0, 0.0)
        send._in_flight[each.request_id] = request
        send._ended.put((request, answer(EVENT + number // 2, 1)))
    send._collect(Chunks(iter(())))
    told = [outcome.state for outcome in send._unrecorded[-3:]]
    assert told == [ACCEPTED if earlier == "none" else UNKNOWN, UNKNOWN, ACCEPTED]


# A ledger that went back


def test_a_ledger_that_lost_the_last_claim_is_given_no_other(enter, store):
    """Before each claim the ledger is asked for the last one, which a failover may have taken back."""
    ledger = enter(1)
    first = hold(ledger, people(2), ACCEPTED)
    with store.write(0) as connection:
        connection.execute(delete(message))
        connection.execute(delete(request))
    with pytest.raises(LedgerLostError, match=f"the last of them {first}:"):
        hold(ledger, people(2))
    assert ledger.holders([m.key for m in people(2)]) == {}


LATEST = select(func.max(attempt_table.c.id)).scalar_subquery()
GIVEN_AGAIN = {
    "a request, by another try": update(request).values(attempt_id=LATEST),
    "an attempt": update(attempt_table).values(task_id="other", started_at=attempt_table.c.started_at + 0.5),
}


@pytest.mark.parametrize("what", GIVEN_AGAIN)
def test_a_number_that_was_given_again_is_not_taken_for_ones_own(enter, store, what):
    """A server that went back gives numbers anew: a request is known by its attempt, and that by when it began, too."""
    mine, _ = enter(1), enter(2)
    first = hold(mine, people(1))
    with store.write(0) as connection:
        connection.execute(GIVEN_AGAIN[what])
    for record in (lambda: close(mine, first, NOT_SENT), lambda: mine.finish([Outcome(first, ACCEPTED)])):
        with pytest.raises(LedgerLostError):
            record()
    assert states(enter(3), people(1)) == {CLAIMED: 1}


@pytest.mark.parametrize("another", [{"task_id": "other"}, {"pid": -1}], ids=str)
def test_an_attempt_that_the_ledger_has_lost_claims_nothing(enter, store, another):
    """It was registered, and the server went back before its first claim; another has the id now, or nobody."""
    claimant_id = register(store, claimant(1))
    with store.write(0) as connection:
        connection.execute(update(attempt_table).values(another))
    with pytest.raises(LedgerLostError):
        CampaignLedger(store, "c", claimant(1), claimant_id=claimant_id)
    with pytest.raises(LedgerLostError):
        CampaignLedger(store, "c", claimant(1), claimant_id=claimant_id + 1)


def test_what_was_posted_is_never_given_back_at_the_end(enter, store):
    """A request whose outcome the ledger has lost stays claimed, and so becomes unknown: it may not be sent again."""
    ledger = enter(1)
    hold(ledger, people(1), ACCEPTED)
    with store.write(0) as connection:
        connection.execute(update(request).values(state=CLAIMED, finished_at=None))
    ledger.finish([])
    assert states(ledger, people(1)) == {CLAIMED: 1}
