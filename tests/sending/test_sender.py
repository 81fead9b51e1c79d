from __future__ import annotations

import itertools
import json
import queue
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import delete, select, update
from support.engine import by_request
from support.keys import request_of
from support.later import later
from support.sending import between_lookup_and_claim, chunk_of, claimant, counted, failing, outgoing, people

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
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Outcome, TextedTwice
from airflow_provider_sms.ledger.schema import attempt as attempt_table
from airflow_provider_sms.ledger.schema import message, request
from airflow_provider_sms.sending.outcomes import outcome_of
from airflow_provider_sms.sending.request_batch import Chunks
from airflow_provider_sms.sending.sender import MARGIN_SECONDS
from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions
from airflow_provider_sms.service.elapsed import latest_end
from airflow_provider_sms.stop_flag import StopFlag

LOST = UnknownOutcomeError("the answer was lost")
DOWN = NotSentError("connection refused")
THROTTLED = ThrottledError("429", retry_after=0.001)


def states(ledger, messages):
    return states_of(ledger, [m.key for m in messages])


def states_of(ledger, keys):
    holders = ledger.holders(keys)
    found = [holders[key].state if key in holders else NOT_SENT for key in keys]
    return {state: found.count(state) for state in set(found)}


def hold(ledger, messages, state=None, deadline=None):
    """Let another try claim messages, and record what became of them."""
    seconds = 60.0 if deadline is None else deadline - time.time()
    (claim,) = ledger.commit(chunks=[chunk_of(messages)], claim_seconds=seconds)
    if state is not None:
        ledger.commit(outcomes=[Outcome(claim.request_id, state)])
    return claim.request_id


def test_everyone_is_texted_once_in_full_requests(sender, service):
    """Messages go out in requests of the chunk size, but for the last one."""
    send = sender()
    send.run([people(25)])
    assert sorted(map(len, service.requests)) == [5, 10, 10]
    assert (counted(send), send.error) == ({"accepted": 25}, None)
    assert set(service.taken.values()) == {1}


def test_a_message_is_posted_only_after_its_claim_is_durable(sender, service, enter):
    """The rule above all: at every POST, another connection sees the claims of all of its messages."""
    witness = enter(9)
    seen = []
    service.before_each = lambda messages: seen.append(states_of(witness, messages.keys))
    sender().run([people(45)])
    assert sorted(seen, key=str) == [{CLAIMED: 10}] * 4 + [{CLAIMED: 5}]


def test_outcomes_are_recorded(sender, enter):
    """After a run the ledger says of each message what became of it."""
    sender().run([people(30)])
    assert states(enter(2), people(30)) == {ACCEPTED: 30}


def test_a_second_run_sends_nothing(sender, service, enter):
    """Run again, a campaign finds everything sent."""
    sender(enter(1)).run([people(30)])
    again = sender(enter(2))
    again.run([people(30)])
    assert (counted(again), again.sums.requests) == ({"already_sent": 30}, 0)
    assert len(service.requests) == 3


def test_a_lost_answer_is_unknown_and_not_sent_again(sender, service, enter):
    """A request that may have been processed is never posted again, now or by the next try."""
    service.script = [failing(LOST, accepted=True)]
    first = sender(enter(1))
    first.run([people(30)])
    retry = sender(enter(2))
    retry.run([people(30)])
    assert counted(first) == {"accepted": 20, "unknown": 10}
    assert counted(retry) == {"already_sent": 20, "unknown": 10}
    assert first.counts.unsettled == retry.counts.unsettled == {1: 10}
    assert service.duplicates == 0


def test_a_lost_answer_is_sent_again_where_asked_for(sender, service):
    """The policy that resends posts what is unknown once more in the same try: at least once, and said so."""
    service.script = [failing(LOST)]
    send = sender(on_unknown="resend")
    send.run([people(30)])
    assert counted(send) == {"accepted": 30}
    assert set(service.taken.values()) == {1}


def test_an_answer_lost_twice_is_left_to_the_next_try(sender, service, enter):
    """The policy that resends does so once in a try, and again in the next one."""
    service.script = [failing(LOST), failing(LOST)]
    first = sender(enter(1), on_unknown="resend", concurrency=1)
    first.run([people(10)])
    assert (counted(first), len(service.requests)) == ({"unknown": 10}, 2)
    retry = sender(enter(2), on_unknown="resend")
    retry.run([people(10)])
    assert counted(retry) == {"accepted": 10}


@pytest.mark.parametrize("error", [DOWN, THROTTLED, ThrottledError("503")])
def test_what_was_surely_not_processed_is_posted_again(sender, service, error):
    """Refused connections, 429 and 503 are ridden out: nothing lost, nothing twice."""
    service.script = [failing(error)] * 3
    send = sender()
    send.run([people(30)])
    assert (counted(send), send.error) == ({"accepted": 30}, None)
    assert set(service.taken.values()) == {1}


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


def test_retry_after_holds_every_request_back(sender, service):
    """A service that asks to wait is not bothered with other requests meanwhile."""
    began = time.monotonic()
    times = []
    service.before_each = lambda messages: times.append(time.monotonic() - began)
    service.script = [failing(ThrottledError("429", retry_after=0.2))]
    sender(concurrency=1).run([people(30)])
    assert (len(times), min(times[1:]) > 0.2) == (4, True)


def test_one_request_that_is_turned_away_holds_the_others_back(sender, service):
    """While the service asks to wait, a slot that is free is not used either."""
    send = sender(concurrency=2)
    times = []

    def turn_away(service, messages, number):
        times.append(time.monotonic())
        raise ThrottledError("429", retry_after=0.2)

    def take_after_that(service, messages, number):
        until = time.monotonic() + 10
        while not send.sender._schedule.waiting and time.monotonic() < until:
            time.sleep(0.001)
        return service.take(messages, number)

    service.script = [turn_away, take_after_that]
    service.before_each = lambda messages: times.append(time.monotonic())
    send.run([people(40)])
    assert (counted(send), len(service.requests)) == ({"accepted": 40}, 5)
    assert times[3] - times[1] >= 0.2


def test_giving_up_sends_nothing_more_and_says_what_was_not_sent(sender, service, enter):
    """A service that stays away ends the send; what was not posted is free for the next try."""
    service.script = [failing(DOWN)] * 100
    send = sender(concurrency=1)
    send.run([people(40)])
    assert (counted(send), send.error) == ({"not_sent": 40}, DOWN)
    assert (len(service.requests), states(enter(2), people(30))) == (4, {NOT_SENT: 30})


def test_a_service_that_throttles_is_not_given_up(sender, service):
    """However often a request is turned away, it is posted again as long as the service takes others meanwhile."""
    service.script = [failing(DOWN), failing(DOWN), None] * 20
    send = sender(concurrency=2)
    send.run([people(100)])
    assert (counted(send), send.error) == ({"accepted": 100}, None)


def test_a_request_that_is_always_turned_away_ends_the_send(sender, service):
    """While one request waits, all do: so one that nothing helps is given up, though the service takes others."""
    poison = people(1)[0].destination

    def turn_away(messages):
        if poison in messages.destinations:
            raise DOWN

    service.before_each = turn_away
    send = sender(concurrency=2)
    send.run([people(10_000)])
    assert (send.error, send.counts.not_sent) == (DOWN, 10_000 - send.counts.accepted)
    assert 10 <= send.counts.accepted < 5_000


@pytest.mark.parametrize("error", [RefusedError("400", status=400), AuthenticationError("401", status=401)])
def test_a_refusal_ends_the_send(sender, service, enter, error):
    """After a refusal nothing more is claimed, and what was refused is free for the next try."""
    service.script = [failing(error)]
    send = sender(concurrency=1)
    send.run([people(30)])
    assert (counted(send), send.error, len(service.requests)) == ({"not_sent": 30}, error, 1)
    retry = sender(enter(2))
    retry.run([people(30)])
    assert counted(retry) == {"accepted": 30}


def test_after_a_refusal_the_rest_is_still_looked_up(sender, service, enter):
    """Counts are exact when sending ends early: what earlier tries sent is not called unsent."""
    sender(enter(1)).run([people(20, 20)])
    service.script = [failing(RefusedError("403"))]
    send = sender(enter(2), concurrency=1)
    send.run([people(20), people(20, 20), people(5, 40)])
    assert counted(send) == {"not_sent": 25, "already_sent": 20}


def test_fewer_messages_than_submitted_are_counted(sender, service, enter):
    """A request taken in part is accepted in part; nobody of it is texted again, since who was left out is not said."""
    service.script = [lambda s, messages, number: s.take(messages, number, left_out=3)]
    send = sender()
    send.run([people(20)])
    assert (counted(send), send.sums.left_out) == ({"accepted": 20}, 3)
    assert send.sums.error_report["OptedOuts"] == 3
    retry = sender(enter(2))
    retry.run([people(20)])
    assert counted(retry) == {"already_sent": 20}


def test_no_answer_costs_the_record_of_a_send(sender, service, enter):
    """Half an emoji in the response, or a number beyond 64 bits, does not keep an outcome from being recorded."""
    strange = {"Remark": "Hi \ud83d", "Other": 2**70}
    service.script = [lambda s, messages, number: replace(s.take(messages, number), raw=strange)]
    send = sender()
    send.run([people(5)])
    ledger = enter(2)
    assert (send.error, states(ledger, people(5))) == (None, {ACCEPTED: 5})
    assert json.loads(ledger.responses(1)[0]) == strange


def test_an_error_that_nobody_foresaw_is_unknown_and_ends_the_send(sender, service):
    """An exception of the client that says nothing about the request is taken as the worst."""
    bug = ZeroDivisionError("27820000000")
    service.script = [failing(bug)]
    send = sender(concurrency=1)
    send.run([people(30)])
    assert (counted(send), send.error) == ({"unknown": 10, "not_sent": 20}, bug)


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


def test_an_error_after_a_commit_keeps_no_claim_from_being_posted(sender, enter, monkeypatch):
    """Every request that is claimed is posted, whatever fails next to it: its outcome is known."""
    ledger, another = enter(), sender(enter(run_id="another"), concurrency=1)
    holders, commit = ledger.holders, ledger.commit

    def meet(**arguments):
        another.run([people(1)])
        monkeypatch.setattr(ledger, "commit", commit)
        return commit(**arguments)

    monkeypatch.setattr(ledger, "commit", meet)
    monkeypatch.setattr(ledger, "holders", lambda keys: 1 / 0 if len(keys) == 1 else holders(keys))
    send = sender(ledger, concurrency=2)
    send.run([people(40)])
    assert (type(send.error), states(enter(2), people(40))) == (ZeroDivisionError, {ACCEPTED: 20, NOT_SENT: 20})


def test_stopping_claims_nothing_more_and_records_what_is_in_flight(sender, service, enter):
    """Told to stop, a sender waits for its posts, records them, and leaves the rest to the next try."""
    ledger, stop, claimed = enter(1), StopFlag(), []
    real = ledger.commit

    def commit(**arguments):
        claimed.extend(arguments["chunks"])
        return real(**arguments)

    ledger.commit = commit
    service.before_each = lambda messages: stop.set()
    send = sender(ledger, stop=stop, concurrency=1)
    send.run([people(30), people(30, 30)])
    assert (counted(send), len(service.requests), len(claimed)) == ({"accepted": 10, "not_sent": 50}, 1, 1)
    assert states(enter(2), people(30)) == {ACCEPTED: 10, NOT_SENT: 20}


def test_a_request_that_has_not_begun_when_the_send_is_told_to_stop_is_given_back(sender, enter, service):
    """Nothing is posted that could not be recorded in the seconds that are left."""
    ledger, stop = enter(1), StopFlag()
    real = ledger.commit

    def commit(**arguments):
        claims = real(**arguments)
        stop.set()
        return claims

    ledger.commit = commit
    send = sender(ledger, stop=stop)
    send.run([people(30)])
    assert (service.requests, send.counts.not_sent) == ([], 30)
    assert enter(2).holders([m.key for m in people(30)]) == {}


def test_a_request_is_not_posted_after_a_question_during_which_the_send_was_told_to_stop(sender, enter, service):
    """A free question can take as long as a request."""
    stop, caution = StopFlag(), Caution(on=True)
    caution.lost(alone=True)
    send = sender(enter(1), ask=stop.set, stop=stop, stop_conditions=StopConditions(caution=caution))
    send.run([people(10)])
    assert (stop.is_set(), service.requests, send.counts.not_sent) == (True, [], 10)


def test_stopping_gives_back_what_waits_to_be_posted_again(sender, service, enter):
    """A request that was surely not processed is released when there is no more time to post it again."""
    stop = StopFlag()
    service.script = [failing(ThrottledError("429", retry_after=200.0))]
    send = sender(stop=stop, concurrency=1)
    service.before_each = lambda messages: threading.Timer(0.05, stop.set).start()
    send.run([people(10)])
    assert (counted(send), states(enter(2), people(10))) == ({"not_sent": 10}, {NOT_SENT: 10})


def test_what_another_live_process_holds_is_awaited(sender, service, enter):
    """Messages in another process's hands are neither sent nor called sent until it has recorded an outcome."""
    other = enter(1)
    request_id = hold(other, people(10))
    with later(lambda: other.commit(outcomes=[Outcome(request_id, ACCEPTED)]), lambda: len(service.taken) == 20):
        send = sender(enter(2))
        send.run([people(30)])
    assert counted(send) == {"accepted": 20, "already_sent": 10}


def test_what_was_held_when_the_table_was_checked_is_sent_once_it_is_free(sender, service, enter):
    """In another pass of the same attempt."""
    other = enter(1)
    request_id = hold(other, people(10))
    with later(lambda: other.commit(outcomes=[Outcome(request_id, NOT_SENT)]), lambda: len(service.taken) == 20):
        send = sender(enter(2))
        send.run([people(30)])
    assert counted(send) == {"accepted": 30}
    assert set(service.taken.values()) == {1}


def test_what_a_dead_process_held_becomes_unknown_at_its_deadline(sender, service, enter, store):
    """Everything else is sent meanwhile; the claims of the dead are waited for, at least until their own deadline."""
    hold(enter(1, clock=time.time), people(10), deadline=time.time() + 0.3)
    store.patience = Patience(0.0)
    send = sender(enter(2, clock=time.time))
    send.run([people(30)])
    assert counted(send) == {"accepted": 20, "unknown": 10}


@pytest.mark.parametrize("failing_commit", range(1, 9))
def test_a_ledger_that_fails_once_sends_nothing_unclaimed(sender, service, enter, failing_commit):
    """Whichever commit fails, what is posted was claimed, and what was accepted is recorded in the end."""
    ledger = enter(1)
    send = sender(failing_ledger(ledger, {failing_commit}), concurrency=1)
    send.run([people(30)])
    assert service.duplicates == 0
    assert states(enter(2), people(30)).get(ACCEPTED, 0) == sum(service.taken.values()) == send.counts.accepted
    retry = sender(enter(2))
    retry.run([people(30)])
    assert (service.duplicates, len(service.taken)) == (0, 30)


@pytest.mark.parametrize("failures", [1, 3, 6])
def test_outcomes_are_recorded_once_the_ledger_answers_again(sender, service, enter, caplog, failures):
    """A ledger that fails for a while costs no outcome: recording is tried again, and again."""
    send = sender(failing_ledger(enter(1), set(range(2, 2 + failures))), concurrency=1)
    send.run([people(30)])
    assert (counted(send), type(send.error)) == ({"accepted": 10, "not_sent": 20}, LedgerError)
    assert states(enter(2), people(30)) == {ACCEPTED: 10, NOT_SENT: 20}
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_lock_that_is_not_had_is_waited_for_again(sender, service, enter, caplog, first):
    """Nothing of the commit has happened, and it is made in the end: the send goes on, and nobody is posted twice."""
    busy = set(range(first, first + 5))
    send = sender(failing_ledger(enter(1), busy, error=LedgerBusyError), concurrency=1)
    send.run([people(30)])
    assert (counted(send), send.error, service.duplicates) == ({"accepted": 30}, None, 0)
    assert states(enter(2), people(30)) == {ACCEPTED: 30}
    assert "Trying again, 5 of 5 times" in caplog.text


def test_a_lock_that_is_kept_for_minutes_ends_the_send(sender, service, enter):
    """Whoever keeps it that long does not give it back; what was accepted is recorded once it is free."""
    send = sender(failing_ledger(enter(1), set(range(2, 8)), error=LedgerBusyError), concurrency=1)
    send.run([people(30)])
    assert (counted(send), type(send.error)) == ({"accepted": 10, "not_sent": 20}, LedgerBusyError)
    assert states(enter(2), people(30)) == {ACCEPTED: 10, NOT_SENT: 20}


@pytest.mark.slow
def test_waits_for_a_lock_are_counted_in_a_row(sender, service, enter):
    """A campaign that is busy now and then, for hours, goes on."""
    busy = {*range(1, 5), *range(6, 10), *range(11, 15)}
    send = sender(failing_ledger(enter(1), busy, error=LedgerBusyError), concurrency=1)
    send.run([people(30)])
    assert (counted(send), send.error) == ({"accepted": 30}, None)


def test_a_ledger_that_stays_away_leaves_the_outcomes_in_the_log(sender, service, enter, caplog):
    """When outcomes cannot be recorded, the log names the requests, their state and event ids, and no number."""
    ledger = failing_ledger(enter(1), set(range(2, 10_000)))
    send = sender(ledger, concurrency=1)
    send.run([people(30)])
    assert isinstance(send.error, LedgerError)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "Not recorded in the ledger: request 1 is accepted, event id 9007199254740993"
    ]
    assert (counted(send), len(service.requests)) == ({"unknown": 10, "not_sent": 20}, 1)


def test_two_senders_at_once_send_each_message_once(sender, service, enter, open_store):
    """Two live copies of a task share the work, and neither loses anybody."""
    senders = [sender(enter(1, clock=time.time)), sender(enter(2, into=open_store(), clock=time.time))]
    service.before_each = lambda messages: time.sleep(0.001)
    threads = [threading.Thread(target=s.run, args=([people(200), people(100, 200)],)) for s in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(service.taken), service.duplicates) == (300, 0)
    assert [s.counts.accepted + s.counts.already_sent for s in senders] == [300, 300]
    assert sum(s.counts.accepted for s in senders) == 300


def test_a_post_that_comes_too_late_for_its_claim_is_claimed_anew(sender, service, enter):
    """A process that slept between claim and POST gives the claim back unposted, and claims again."""

    class Sleeper:
        """A clock that is far ahead once, when the POST looks at it."""

        slept = False

        def __call__(self):
            posting = threading.current_thread() is not threading.main_thread()
            ahead, self.slept = (1000.0 if posting and not self.slept else 0.0), self.slept or posting
            return time.time() + ahead

    send = sender(enter(clock=Sleeper()))
    send.run([people(5)])
    assert (counted(send), len(service.requests), service.duplicates) == ({"accepted": 5}, 1, 0)
    assert enter(2).holders([people(1)[0].key])[people(1)[0].key].request_id == 2


def test_a_post_is_told_when_its_claim_ends(sender, service, enter, clock):
    """What the claim has left is counted by the client's clock, before anything is asked of the ledger's."""
    told = []

    def post(messages):
        told.append(latest_end())
        return service(messages)

    ledger = enter(clock=clock)
    ledger.elapsed = lambda: 700.0
    sender(ledger, post=post).run([people(5)])
    assert told == [700.0 + 5.0 + MARGIN_SECONDS]
    assert latest_end() == float("inf")


def test_a_crash_while_waiting_to_post_again_makes_nothing_unknown(sender, service, enter):
    """A request that was surely not processed holds no claim while it waits."""
    witness = enter(9)
    service.script = [failing(ThrottledError("429", retry_after=1.0))]
    send = sender(concurrency=1)
    thread = threading.Thread(target=send.run, args=([people(10)],))
    thread.start()
    seen = []
    while thread.is_alive():
        seen.append(states(witness, people(10)))
        time.sleep(0.02)
    assert ({NOT_SENT: 10} in seen, counted(send)) == (True, {"accepted": 10})


def test_what_is_unknown_stays_unknown_when_sending_it_again_is_refused(sender, service, enter):
    """The policy that resends loses no knowledge: it frees the messages, and they count as unknown."""
    hold(enter(1), people(10), UNKNOWN)
    service.script = [None, failing(RefusedError("403", status=403))]
    send = sender(enter(2), on_unknown="resend", concurrency=1)
    send.run([people(15)])
    assert (counted(send), len(service.requests)) == ({"unknown": 10, "accepted": 5}, 2)
    assert states(enter(3), people(15)) == {NOT_SENT: 10, ACCEPTED: 5}


def test_requests_are_paced(sender, service):
    """No more requests a second go out than were asked for."""
    began = time.monotonic()
    sender(max_requests_per_second=20, concurrency=5).run([people(50)])
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


def test_at_most_concurrency_requests_are_open(sender, service, enter):
    """A crash at any POST leaves at most ``concurrency`` requests without an outcome."""
    witness = enter(9)
    most = []
    service.before_each = lambda messages: most.append(states(witness, people(100)).get(CLAIMED, 0))
    sender(concurrency=3).run([people(100)])
    assert 0 < max(most) <= 30


def test_no_number_or_text_is_logged(sender, service, caplog):
    """The log counts, and names requests only."""
    caplog.set_level("DEBUG")
    service.script = [failing(LOST), failing(DOWN), failing(ThrottledError("429"))]
    service.script += [lambda s, messages, number: s.take(messages, number, left_out=3)]
    sender(concurrency=1).run([[outgoing(27820000000 + n, "secret words") for n in range(60)]])
    assert caplog.records
    assert not [line for line in caplog.messages if "278200" in line or "secret" in line]


def test_what_somebody_else_claimed_meanwhile_is_not_posted(sender, service, enter):
    """Between look-up and claim another copy may have claimed: only what this claim won is posted under it."""
    other, stop = enter(1), StopFlag()
    ledger = between_lookup_and_claim(enter(2), lambda: hold(other, people(5)))
    send = sender(ledger, concurrency=1, stop=stop)
    with later(stop.set, lambda: len(service.taken) >= 15):
        send.run([people(20)])
    assert not {m.destination for m in people(5)} & service.taken.keys()
    assert counted(send) == {"accepted": 15, "unknown": 5}


def test_what_somebody_else_claimed_meanwhile_and_gave_back_is_sent(sender, service, enter):
    """It was free when the table was checked, so that another pass sends it."""
    other, held = enter(1), []
    ledger = between_lookup_and_claim(enter(2), lambda: held.append(hold(other, people(5))))
    send = sender(ledger, concurrency=1)
    with later(lambda: other.commit(outcomes=[Outcome(held[0], NOT_SENT)]), lambda: len(service.taken) >= 15):
        send.run([people(20)])
    assert (counted(send), set(service.taken.values())) == ({"accepted": 20}, {1})


def test_what_somebody_else_claimed_and_lost_meanwhile_is_settled(sender, service, enter):
    """It is sent again in this attempt, where that is the policy, as if it had been lost before the check."""
    other = enter(1)
    lose = lambda: other.commit(outcomes=[Outcome(hold(other, people(5)), UNKNOWN)])  # noqa: E731
    send = sender(between_lookup_and_claim(enter(2), lose), concurrency=1, on_unknown="resend")
    send.run([people(20)])
    assert (counted(send), set(service.taken.values())) == ({"accepted": 20}, {1})


def test_a_request_that_was_never_made_is_not_unknown(sender, service, enter):
    """An error of the arguments, seen before anything was written, releases the claim and ends the send."""
    error = InputError("send_options cannot be written as JSON")
    service.script = [failing(error)]
    send = sender(concurrency=1)
    send.run([people(30)])
    assert (counted(send), send.error) == ({"not_sent": 30}, error)
    assert states(enter(2), people(30)) == {NOT_SENT: 30}


def test_a_post_that_ends_like_no_other_is_unknown(sender, service):
    """Not even an exception that is no error keeps the sender waiting for a post for ever."""

    class Panic(BaseException):
        pass

    service.script = [failing(Panic())]
    send = sender(concurrency=1)
    send.run([people(20)])
    assert counted(send) == {"unknown": 10, "not_sent": 10}


def test_without_threads_nothing_is_claimed(sender, service, enter, monkeypatch):
    """A machine without threads to spare sends nothing, and loses nothing."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    send = sender()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        send.run([people(20)])
    assert (counted(send), type(send.error), service.requests) == ({"not_sent": 20}, RuntimeError, [])
    assert states(enter(2), people(20)) == {NOT_SENT: 20}


def test_an_error_of_our_own_never_gives_back_what_was_posted(sender, service, enter, monkeypatch):
    """Even a bug that loses an outcome leaves its request unknown, in the ledger and in the counts."""
    handled = []

    def outcome(request, *args, **options):
        handled.append(request)
        return outcome_of(None if len(handled) == 2 else request, *args, **options)

    monkeypatch.setattr("airflow_provider_sms.sending.sender.outcome_of", outcome)
    send = sender(concurrency=1)
    send.run([people(50)])
    assert (type(send.error), counted(send)) == (AttributeError, {"accepted": 10, "unknown": 10, "not_sent": 30})
    assert states(enter(2), people(50)) == {ACCEPTED: 10, UNKNOWN: 10, NOT_SENT: 30}
    retry = sender(enter(2))
    retry.run([people(50)])
    assert (counted(retry), service.duplicates) == ({"accepted": 30, "already_sent": 10, "unknown": 10}, 0)


def test_an_error_after_a_response_does_not_cost_the_record_of_its_request(sender, service, enter, monkeypatch):
    """The outcome is kept for the ledger first of all: whoever was texted stays so, whatever fails then."""
    send = sender(concurrency=1)
    monkeypatch.setattr(send.stop_conditions, "answered", lambda *_: 1 / 0)
    send.run([people(20)])
    assert (type(send.error), states(enter(2), people(20))) == (ZeroDivisionError, {ACCEPTED: 10, NOT_SENT: 10})


def test_a_clock_that_is_set_back_delays_nothing(sender, enter):
    """Waits are measured by a clock that nobody sets."""
    jumps = iter([0.0] * 6)
    ledger = enter(clock=lambda: time.time() - (0.0 if next(jumps, None) is not None else 3600.0))
    send = sender(ledger, concurrency=1)
    began = time.monotonic()
    send.run([people(50)])
    assert (counted(send), time.monotonic() - began < 5.0) == ({"accepted": 50}, True)


def test_a_commit_that_raises_although_it_is_durable_makes_nothing_unknown(sender, service, enter):
    """Claims that nobody posted under are given back when the ledger answers again."""
    send = sender(failing_ledger(enter(1), {2}, durable=True), concurrency=1)
    send.run([people(40)])
    assert states(enter(2), people(40)).get("unknown", 0) == 0
    retry = sender(enter(2))
    retry.run([people(40)])
    assert (service.duplicates, len(service.taken)) == (0, 40)


def test_waiting_for_the_last_posts_costs_no_processor(sender, service):
    """While posts hang after an error, the sender sleeps, though other batches wait in vain."""
    release = threading.Event()

    def hang(service, messages, number):
        release.wait(10)
        return service.take(messages, number)

    service.script = [hang, failing(ThrottledError("429", retry_after=0.0)), failing(RefusedError("400"))]
    send = sender(concurrency=3)
    thread = threading.Thread(target=send.run, args=([people(90)],))
    thread.start()
    while send.error is None:
        time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.5)
    spent = time.process_time() - before
    release.set()
    thread.join()
    assert spent < 0.25


def failing_ledger(ledger, failing, *, durable=False, error=LedgerError):
    """Let the n-th transactions of a ledger fail as those of a full disk do, or although they became durable."""
    numbers, write = itertools.count(1), ledger._write

    @contextmanager
    def failing_write(**how):
        fails = next(numbers) in failing
        if fails and not durable:
            raise error("disk is full")
        with write(**how) as connection:
            yield connection
        if fails:
            raise LedgerError("disk is full")

    ledger._write = failing_write
    return ledger


def test_an_unknown_state_of_earlier_tries_is_named(sender, enter):
    """A retry names the earlier try's requests whose outcome is unknown."""
    request_id = hold(enter(1), people(10), UNKNOWN)
    send = sender(enter(2))
    send.run([people(30)])
    assert send.counts.unsettled == {request_id: 10}


# What an answer means


def test_a_503_of_the_service_is_posted_three_times_at_most(sender, service):
    """The service's own 503 says that nothing was processed; it is believed twice, and then the try ends."""
    service.script = [failing(ThrottledError("503", status=503))] * 100
    send = sender(concurrency=1)
    send.run([people(10)])
    assert (len(service.requests), send.counts.not_sent) == (3, 10)
    assert send.error is not None
    assert send.error.transient


def test_a_request_of_which_nobody_was_taken_is_not_sent(sender, service, enter):
    """An answer that says ``Messages: 0`` frees its messages, keeps the service's reasons, and is no success."""
    service.script = [lambda s, messages, number: s.take(messages, number, left_out=len(messages))]
    send = sender(concurrency=1)
    send.run([people(30)])
    assert counted(send) == {"accepted": 20, "not_sent": 10}
    assert (send.sums.none_taken, send.sums.error_report["OptedOuts"], send.sums.requests) == (10, 10, 2)
    again = sender(enter(2))
    again.run([people(30)])
    assert counted(again) == {"accepted": 10, "already_sent": 20}


def test_an_answer_that_took_nobody_and_charged_is_unknown(sender, service):
    """An answer that contradicts itself proves nothing."""
    service.script = [lambda s, messages, number: replace(s.take(messages, number), messages=0)]
    send = sender(concurrency=1)
    send.run([people(20)])
    assert counted(send) == {"accepted": 10, "unknown": 10}


def test_an_event_id_that_came_before_is_no_answer(sender, service, enter):
    """An answer that a connection carries twice is taken for one request only, also where an earlier try had it."""
    sender(enter(1)).run([people(10)])
    service.script = [lambda s, messages, number: replace(s.take(messages, 0), messages=len(messages))]
    send = sender(enter(2), concurrency=1)
    send.run([people(30)])
    assert counted(send) == {"accepted": 10, "already_sent": 10, "unknown": 10}


@pytest.mark.parametrize("number", ["0." + "3" * 60, "-1E-400", "123456789.123456789012345678901234567890123456"])
def test_a_cost_that_no_column_holds_ends_no_send(sender, service, enter, store, number):
    """What cannot be stored in full is rounded, and the request is recorded."""
    service.script = [lambda s, messages, n: replace(s.take(messages, n), cost=Decimal(number), parts=2**40)]
    send = sender(concurrency=1)
    send.run([people(10)])
    with store.read() as connection:
        (cost,) = connection.execute(select(request.c.cost)).scalars()
    assert (send.error, counted(send)) == (None, {"accepted": 10})
    assert float(cost) == pytest.approx(float(number))


# A ledger that went back


def forget(store, request_id):
    """Take a request out of a ledger, as a failover takes back commits that had not reached the standby."""
    with store.write(0) as connection:
        connection.execute(delete(message).where(message.c.request_id == request_id))
        connection.execute(delete(request).where(request.c.id == request_id))


def test_a_ledger_that_loses_what_is_in_flight_ends_the_send(sender, service, enter, store, caplog):
    """An answer for a request that the ledger no longer has stops the send, and the log names the request."""
    lost = []

    def forgotten(s, messages, number):
        lost.append(enter(9).holders(messages.keys)[messages.keys[0]].request_id)
        forget(store, lost[0])
        return s.take(messages, number)

    service.script = [lambda s, m, n: s.take(m, n), forgotten]
    send = sender(concurrency=1)
    send.run([people(100)])
    assert isinstance(send.error, LedgerLostError)
    assert (len(service.requests), counted(send)) == (2, {"accepted": 10, "unknown": 90})
    assert f"Not recorded in the ledger: request {lost[0]} is accepted" in caplog.text


def test_a_ledger_that_lost_the_last_claim_is_given_no_other(enter, store):
    """Before each claim the ledger is asked for the last one."""
    ledger = enter(1)
    first = ledger.commit(chunks=[request_of([m.key for m in people(2)], ["1", "2"])], claim_seconds=60.0)[0]
    ledger.commit(outcomes=[Outcome(first.request_id, ACCEPTED)])
    forget(store, first.request_id)
    with pytest.raises(LedgerLostError, match=f"the last of them {first.request_id}:"):
        ledger.commit(chunks=[request_of([m.key for m in people(2)], ["1", "2"])], claim_seconds=60.0)
    assert ledger.holders([m.key for m in people(2)]) == {}


def test_a_number_that_another_try_was_given_since_is_not_taken_for_ones_own(enter, store):
    """A server that went back gives numbers anew: a request is known by who made it, too."""
    mine, other = enter(1), enter(2)
    first = mine.commit(chunks=[request_of([people(1)[0].key], ["1"])], claim_seconds=60.0)[0]
    with store.write(0) as connection:
        connection.execute(update(request).values(attempt_id=other._claimant_id))
    with pytest.raises(LedgerLostError):
        mine.commit(outcomes=[Outcome(first.request_id, NOT_SENT)])
    assert states(other, people(1)) == {CLAIMED: 1}


def test_the_ids_of_an_attempt_that_were_given_again_are_not_taken_for_ones_own(enter, store):
    """A server that went back may give both numbers anew: an attempt is known by when it was registered, too."""
    mine = enter(1)
    first = mine.commit(chunks=[request_of([people(1)[0].key], ["1"])], claim_seconds=60.0)[0]
    with store.write(0) as connection:
        connection.execute(update(attempt_table).values(task_id="other", started_at=attempt_table.c.started_at + 0.5))
    with pytest.raises(LedgerLostError):
        mine.commit(outcomes=[Outcome(first.request_id, ACCEPTED)])
    with pytest.raises(LedgerLostError):
        mine.finish([Outcome(first.request_id, ACCEPTED)])
    assert states(enter(2), people(1)) == {CLAIMED: 1}


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
    first = ledger.commit(chunks=[request_of([people(1)[0].key], ["1"])], claim_seconds=60.0)[0]
    ledger.commit(outcomes=[Outcome(first.request_id, ACCEPTED)])
    with store.write(0) as connection:
        connection.execute(update(request).values(state=CLAIMED, finished_at=None))
    ledger.finish([])
    assert states(ledger, people(1)) == {CLAIMED: 1}


# An answer after a person's decision


def decided_before_its_answer(enter, store, said, between=lambda: None):
    """Script a request that lapses and that a person decides on before the service takes it."""

    def decided(service, messages, number):
        request_id = enter(9).holders(messages.keys)[messages.keys[0]].request_id
        with store.write(0) as connection:
            connection.execute(update(request).values(deadline=0.0))
        resolve(store, request_id, said, "ann")
        between()
        return service.take(messages, number)

    return decided


def test_an_answer_after_not_sent_takes_its_messages_again(sender, enter, store, service):
    """A person said that a request was not sent, and then the service took it: nobody is texted again."""
    service.script = [decided_before_its_answer(enter, store, NOT_SENT)]
    send = sender(enter(1), concurrency=1)
    send.run([people(10)])
    assert (counted(send), send.ledger.texted_twice()) == ({"accepted": 10}, [])
    again = sender(enter(2))
    again.run([people(10)])
    assert (counted(again), service.duplicates) == ({"already_sent": 10}, 0)


def test_an_answer_after_not_sent_that_comes_too_late_says_who_was_texted_twice(sender, enter, store, service):
    """Where another request has the messages already, the ledger names both requests."""
    sent_again = lambda: sender(enter(2)).run([people(4)])  # noqa: E731
    service.script = [decided_before_its_answer(enter, store, NOT_SENT, sent_again)]
    send = sender(enter(1), concurrency=1)
    send.run([people(10)])
    assert (send.ledger.texted_twice(), service.duplicates) == ([TextedTwice(1, 2, is_sure=True, messages=4)], 4)
    assert counted(send) == {"accepted": 6, "already_sent": 4}
    again = sender(enter(3))
    again.run([people(10)])
    assert (counted(again), service.duplicates) == ({"already_sent": 10}, 4)


def test_what_a_person_calls_accepted_stays_so_when_it_was_not_processed(sender, enter, store, service):
    """In doubt nobody is texted: the service says late that it did not take them, and a person that it did."""

    def turned_away(*request):
        decided_before_its_answer(enter, store, ACCEPTED, lambda: failing(THROTTLED)(*request))(*request)

    service.script = [turned_away]
    send = sender(concurrency=1)
    send.run([people(10)])
    assert (counted(send), len(service.requests), send.error) == ({"accepted": 10}, 1, None)


def test_what_is_sent_again_and_not_taken_is_unknown_still(sender, enter, service):
    """Nobody knows of the first request, whatever becomes of the second."""
    service.script = [failing(LOST), lambda s, m, n: s.take(m, n, left_out=len(m))]
    send = sender(concurrency=1, on_unknown="resend")
    send.run([people(10)])
    assert (counted(send), states(enter(2), people(10))) == ({"unknown": 10}, {NOT_SENT: 10})
