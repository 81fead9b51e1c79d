from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import pytest
from support.forwarder import Forwarder
from support.sending import Clock, answer, people

from airflow_provider_sms.exceptions import LedgerError, NotSentError, UnknownOutcomeError
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.recovery import files_in, read_file, record
from airflow_provider_sms.sending import flush, unrecorded
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.unrecorded import PATIENCE_SECONDS, RecoveryFile, RecoveryPlace
from airflow_provider_sms.stop_flag import StopFlag


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "recovery"


@pytest.fixture
def stop():
    return StopFlag()


@pytest.fixture
def watch(folder, enter, stop, clock):
    """Make the watch of a send whose looks are the test's."""

    def watch(ledger=None, **options):
        place = RecoveryPlace(folder, (ledger or enter()).origin())
        return RecoveryFile(place, stop, **{"monotonic": clock, **options})

    return watch


def in_flight(request_id, messages=()):
    return InFlightRequest(request_id, RequestBatch(list(messages), {}), 0.0, 0.0, alone=False, asks=False)


def kept(folder):
    """Return what the only file says of each request, or None where there is no file."""
    files = files_in(folder)
    if not files:
        return None
    (path,) = files
    read = read_file(path)
    return {**{each.request_id: each.state for each in read.outcomes}, **dict.fromkeys(read.unposted, "unposted")}


def test_a_response_that_waits_for_the_ledger_is_kept_in_a_file(watch, folder, clock):
    """Not at once: a commit takes milliseconds. The file goes once the ledger has it."""
    watch = watch()
    watch.add(in_flight(1, people(2)), answer(5, 2))
    clock.now += PATIENCE_SECONDS / 2
    watch.look()
    assert kept(folder) is None
    clock.now += PATIENCE_SECONDS / 2
    watch.look()
    assert kept(folder) == {1: ACCEPTED}
    watch.remove([Outcome(1, ACCEPTED)])
    watch.look()
    assert kept(folder) is None


def test_a_send_that_is_told_to_stop_keeps_at_once(watch, folder, stop):
    """Airflow kills its process five seconds later."""
    watch = watch()
    watch.add(in_flight(1, people(2)), answer(5, 2))
    stop.set()
    watch.look()
    assert kept(folder) == {1: ACCEPTED}


def test_a_send_whose_ledger_answers_writes_no_file(watch, folder, clock):
    """Though something is unrecorded at every moment, nothing waits long."""
    watch = watch()
    for request_id in range(20):
        watch.add(in_flight(request_id), answer(request_id, 1))
        watch.remove([Outcome(request_id - 1, ACCEPTED)])
        clock.now += PATIENCE_SECONDS / 2
        watch.look()
    assert not folder.exists()


def test_the_file_holds_every_end_of_a_request(watch, folder, stop):
    """Also what may have been sent, what surely was not, and claims under which nothing will be posted."""
    watch = watch()
    watch.add(in_flight(1), UnknownOutcomeError("reset"))
    watch.add(in_flight(2), NotSentError("refused"))
    watch.add(in_flight(3), KeyError("x"))
    # A response that took no message and charges for some is none.
    watch.add(in_flight(4), replace(answer(9, 0), cost=Decimal(1)))
    watch.add(in_flight(5), answer(10, 0))
    watch.add_unposted([8, 9])
    stop.set()
    watch.look()
    posted = {1: UNKNOWN, 2: NOT_SENT, 3: UNKNOWN, 4: UNKNOWN, 5: NOT_SENT}
    assert kept(folder) == {**posted, 8: "unposted", 9: "unposted"}


def test_what_comes_later_is_kept_too(watch, folder, stop):
    """A new file takes the place of the old one, which somebody may have read meanwhile."""
    watch = watch()
    stop.set()
    watch.add(in_flight(1, people(1)), answer(5, 1))
    watch.look()
    (first,) = files_in(folder)
    watch.add(in_flight(2, people(1, 1)), answer(6, 1))
    watch.look()
    (second,) = files_in(folder)
    assert (kept(folder), first == second) == ({1: ACCEPTED, 2: ACCEPTED}, False)
    watch.look()
    assert files_in(folder) == [second], "it was written again though nothing had changed"


def test_the_old_file_goes_after_the_new_one_is_there(watch, folder, stop, monkeypatch):
    """A process that is killed in between leaves both, and each may be recorded."""
    watch = watch()
    stop.set()
    watch.add(in_flight(1), answer(5, 1))
    watch.look()
    there = []
    real = unrecorded.write_file
    monkeypatch.setattr(
        unrecorded, "write_file", lambda *arguments: (real(*arguments), there.extend(files_in(folder)))[0]
    )
    watch.add(in_flight(2), answer(6, 1))
    watch.look()
    assert len(there) == 2


def test_the_end_of_a_send_leaves_a_file_where_anything_is_unrecorded(watch, folder):
    """Also where nobody has looked since; and none where the ledger has everything."""
    with watch() as left:
        left.add(in_flight(1), answer(5, 1))
    assert kept(folder) == {1: ACCEPTED}
    with watch() as cleared:
        cleared.add(in_flight(2), answer(6, 1))
        cleared.write()
        assert len(files_in(folder)) == 2
        cleared.remove_all()
    assert kept(folder) == {1: ACCEPTED}


def test_a_folder_that_cannot_be_written_ends_nothing(watch, folder, stop, caplog):
    """It is said once, and tried again; the log still names what is not recorded."""
    folder.write_text("a file")
    watch = watch()
    stop.set()
    watch.add(in_flight(1), answer(5, 1))
    watch.look()
    watch.look()
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings == [f"Outcomes cannot be kept in a file in {folder}: File exists"]
    folder.unlink()
    watch.look()
    assert kept(folder) == {1: ACCEPTED}


def test_a_disk_that_hangs_holds_up_no_send(watch, folder, stop, monkeypatch):
    """Neither its end, nor the log of what is not recorded, which names no file then."""
    monkeypatch.setattr(unrecorded, "_LEAVE_SECONDS", 0.1)
    hangs, goes_on = threading.Event(), threading.Event()
    real = unrecorded.write_file

    def hanging(*arguments):
        hangs.set()
        goes_on.wait(60.0)
        return real(*arguments)

    monkeypatch.setattr(unrecorded, "write_file", hanging)
    stop.set()
    watch = watch()
    watch.add(in_flight(1), answer(5, 1))
    began = time.monotonic()
    with watch:
        assert hangs.wait(30.0)
        assert watch.write() is None
    took = time.monotonic() - began
    goes_on.set()
    wait_until(lambda: kept(folder) == {1: ACCEPTED})
    assert took < 30.0


def test_a_file_that_lacks_the_last_outcome_is_not_named(watch, folder, stop, monkeypatch, caplog):
    """A disk that is full takes no newer file: the log says so, and does not say that all is kept."""
    watch = watch()
    stop.set()
    watch.add(in_flight(1), answer(5, 1))
    assert watch.write() is not None

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unrecorded, "write_file", full)
    watch.add(in_flight(2), answer(6, 1))
    watch.tell()
    assert kept(folder) == {1: ACCEPTED}
    assert [each.getMessage() for each in caplog.records] == [
        f"Outcomes cannot be kept in a file in {folder}: No space left on device"
    ]


def test_a_file_never_holds_a_text(watch, folder, stop):
    """The sample of a response is somebody's text, so no whole response is kept, whatever the ledger keeps."""
    watch = watch()
    response = answer(5, 1)
    response.raw["Sample"] = "Hi Thandi"
    watch.add(in_flight(1, people(1)), response)
    stop.set()
    watch.look()
    (path,) = files_in(folder)
    assert "Thandi" not in path.read_text()
    assert '"Messages' in path.read_text().replace("\\", "")


# Senders


def wait_until(condition):
    until = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)


def silent(ledger, begins, ends):
    """Let the second commit of a ledger wait for a test, as for a server that is silent, and fail then."""
    real, calls = ledger.commit, []

    def commit(**arguments):
        calls.append(arguments)
        if len(calls) == 1:
            return real(**arguments)
        begins.set()
        ends.wait(30.0)
        raise LedgerError("silent")

    def finish(outcomes):
        raise LedgerError("silent")

    ledger.commit, ledger.finish = commit, finish
    return ledger


def test_a_response_is_kept_while_the_sender_waits_for_the_ledger(sender, enter, service, folder, stop, store):
    """The sender's own thread waits in a commit; told to stop, the send still has its file in a moment."""
    ledger, begins, ends = enter(1), threading.Event(), threading.Event()
    place = RecoveryPlace(folder, ledger.origin())
    with RecoveryFile(place, stop) as recovery:
        send = sender(silent(ledger, begins, ends), concurrency=1, stop=stop, recovery=recovery)
        running = threading.Thread(target=send.run, args=([people(30)],))
        running.start()
        assert begins.wait(30.0)
        stop.set()
        wait_until(lambda: kept(folder) == {1: ACCEPTED})
        ends.set()
        running.join(30.0)
    assert record(store, read_file(*files_in(folder))).states == {1: ACCEPTED}
    again = sender(enter(2))
    again.run([people(30)])
    assert (again.counts.already_sent, again.counts.accepted, service.duplicates) == (10, 20, 0)


def test_a_request_that_has_not_begun_when_the_send_is_told_to_stop_is_given_back(sender, enter, service, stop):
    """Nothing is posted that could not be recorded in the seconds that are left."""
    ledger = enter(1)
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


def test_a_request_is_not_posted_after_a_question_during_which_the_send_was_told_to_stop(
    sender, enter, service, stop, store
):
    """A free question can take as long as a request."""
    from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions

    caution = Caution(on=True)
    caution.lost(alone=True)
    send = sender(enter(1), ask=stop.set, stop=stop, stop_conditions=StopConditions(caution=caution))
    send.run([people(10)])
    assert (stop.is_set(), service.requests, send.counts.not_sent) == (True, [], 10)


def test_claims_of_a_commit_that_raised_are_kept_as_unposted(sender, enter, service, folder, stop, store):
    """The commit may be durable: recording the file frees its messages, where they would become unknown."""
    ledger = enter(1)
    real = ledger.commit

    def commit(**arguments):
        real(**arguments)
        ledger._in_doubt = [1, 2]
        raise LedgerError("silent")

    def finish(outcomes):
        raise LedgerError("silent")

    ledger.commit, ledger.finish = commit, finish
    with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
        sender(ledger, stop=stop, recovery=recovery).run([people(20)])
    assert kept(folder) == {1: "unposted", 2: "unposted"}
    assert {holder.state for holder in enter(2).holders([m.key for m in people(20)]).values()} == {CLAIMED}
    record(store, read_file(*files_in(folder)))
    assert enter(2).holders([m.key for m in people(20)]) == {}


def test_a_response_whose_file_somebody_has_recorded_is_no_repeated_one(sender, enter, folder, stop, store):
    """Another task, or a person, records the file while its send lives: the event id that it finds is its own."""
    ledger = enter(1)
    with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
        real, first = ledger.known_events, []

        def known_events(*arguments):
            first.append(record(store, read_file(recovery.write())).states)
            return real(*arguments)

        ledger.known_events = known_events
        send = sender(ledger, concurrency=1, stop=stop, recovery=recovery)
        send.run([people(10)])
    assert first == [{1: ACCEPTED}]
    assert (send.error, send.counts.accepted, send.counts.unknown, send.counts.unknown_requests) == (None, 10, 0, set())
    assert {holder.state for holder in enter(2).holders([m.key for m in people(10)]).values()} == {ACCEPTED}


def waiting_commit(ledger, begins, ends):
    """Let each commit be durable, and its answer wait for a test, as where the network falls silent in between."""
    real = ledger.commit

    def commit(**arguments):
        claims = real(**arguments)
        ledger._in_doubt = [claim.request_id for claim in claims]
        begins.set()
        assert ends.wait(30.0)
        ledger._in_doubt = []
        return claims

    ledger.commit = commit
    return ledger


def test_claims_whose_commit_hangs_are_kept_once_the_send_is_told_to_stop(sender, enter, service, folder, stop, store):
    """Nothing is posted under them any more, so whoever records the file frees their messages at once."""
    begins, ends = threading.Event(), threading.Event()
    ledger = waiting_commit(enter(1), begins, ends)
    with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
        send = sender(ledger, concurrency=2, stop=stop, recovery=recovery)
        running = threading.Thread(target=send.run, args=([people(20)],))
        running.start()
        assert begins.wait(30.0)
        assert recovery.write() is None, "a claim that may still be posted is in the file"
        stop.set()
        wait_until(lambda: kept(folder) == {1: "unposted", 2: "unposted"})
        assert record(store, read_file(*files_in(folder))).states == {1: NOT_SENT, 2: NOT_SENT}
        assert enter(2).holders([m.key for m in people(20)]) == {}
        ends.set()
        running.join(30.0)
    assert (service.requests, send.counts.not_sent, files_in(folder)) == ([], 20, [])


def test_a_claim_that_may_still_be_posted_is_in_no_file(sender, enter, service, folder, stop):
    """However long its commit takes: another task would record the file, and text the same people."""
    begins, ends = threading.Event(), threading.Event()
    ledger = waiting_commit(enter(1), begins, ends)
    with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
        send = sender(ledger, concurrency=1, stop=stop, recovery=recovery)
        running = threading.Thread(target=send.run, args=([people(10)],))
        running.start()
        assert begins.wait(30.0)
        assert (recovery.write(), ledger.in_doubt) == (None, (1,))
        ends.set()
        running.join(30.0)
    assert (send.counts.accepted, service.duplicates, folder.exists()) == (10, 0, False)


def test_a_request_that_is_being_posted_is_never_kept_as_unposted(sender, enter, service, folder, stop):
    """Told to stop in the middle of a POST, a send knows nothing of it yet."""
    files = []
    with RecoveryFile(RecoveryPlace(folder, (ledger := enter(1)).origin()), stop) as recovery:

        def stopped_within(service, messages, number):
            stop.set()
            files.append(recovery.write())
            return service.take(messages, number)

        service.script = [stopped_within]
        send = sender(ledger, concurrency=1, stop=stop, recovery=recovery)
        send.run([people(20)])
    assert (files, send.counts.accepted, files_in(folder)) == ([None], 10, [])


def test_a_request_before_which_the_service_is_asked_is_kept_as_unposted(sender, enter, service, folder, stop):
    """The question can take as long as a request, and Airflow kills the process after five seconds."""
    from airflow_provider_sms.sending.stop_conditions import Caution, StopConditions

    during = []
    with RecoveryFile(RecoveryPlace(folder, (ledger := enter(1)).origin()), stop) as recovery:

        def ask():
            during.append(recovery.write())
            stop.set()
            recovery.write()
            during.append(kept(folder))

        caution = Caution(on=True)
        caution.lost(alone=True)
        conditions = StopConditions(caution=caution)
        sender(ledger, ask=ask, stop=stop, stop_conditions=conditions, recovery=recovery).run([people(10)])
    assert (during, service.requests, files_in(folder)) == ([None, {1: "unposted"}], [], [])


def test_a_file_that_somebody_has_recorded_and_removed_is_no_news(watch, folder, stop, caplog):
    """The send goes on, removes nothing twice, and complains of nothing."""
    watch = watch()
    stop.set()
    watch.add(in_flight(1), answer(5, 1))
    watch.write().unlink()
    watch.remove([Outcome(1, ACCEPTED)])
    watch.look()
    assert (kept(folder), caplog.records) == (None, [])


def test_the_log_names_the_file_and_the_command(sender, enter, folder, stop, caplog):
    """Whoever reads that an outcome is not recorded reads what to do about it."""
    ledger, begins, ends = enter(1), threading.Event(), threading.Event()
    ends.set()
    with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
        sender(silent(ledger, begins, ends), concurrency=1, recovery=recovery).run([people(10)])
    (path,) = files_in(folder)
    told = (
        f"These outcomes are kept in {path}. The next task that sends on this machine records them; to record them "
        f"now: airflow-sms ledger recover {path}"
    )
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] == [
        "Not recorded in the ledger: request 1 is accepted, event id 9007199254740993",
        told,
    ]


def test_the_command_names_the_connection_of_the_ledger(folder, enter, stop, caplog):
    """Without it, the command would look into the configured ledger, which does not have the attempt."""
    recovery = RecoveryFile(RecoveryPlace(folder, enter().origin(), "an id"), stop)
    recovery.add(in_flight(1), answer(5, 1))
    recovery.tell()
    (path,) = files_in(folder)
    assert caplog.messages[0].endswith(f"airflow-sms ledger recover {path} --ledger-conn-id 'an id'")


@pytest.mark.slow
def test_a_silent_server_costs_no_response(postgres_url, enter, sender, service, folder, monkeypatch):
    """A network that is silent for longer than the send waits: what was answered meanwhile is recorded afterwards."""
    monkeypatch.setattr(flush, "FLUSH_SECONDS", 1.0)
    open_postgres(postgres_url).close()
    with Forwarder(f"{postgres_url.query['host']}/.s.PGSQL.5432") as way:
        url = postgres_url.set(host=way.host, port=way.port, query={"connect_timeout": "2"})

        def fall_silent(service, messages, number):
            way.fall_silent()
            return service.take(messages, number)

        service.script = [None, None, fall_silent]
        clock, stop = Clock(time.time()), StopFlag()
        # Long enough for a server that responds, on a machine that does much else, too.
        with closing(open_postgres(url, wait_seconds=3.0, busy_seconds=3.0)) as store:
            ledger = enter(into=store, clock=clock)
            with RecoveryFile(RecoveryPlace(folder, ledger.origin()), stop) as recovery:
                send = sender(ledger, concurrency=1, stop=stop, recovery=recovery)
                send.run([people(100)])
        assert isinstance(send.error, LedgerError)
        assert len(service.taken) == 30
        assert kept(folder) == {3: ACCEPTED}
        way.speak()
        with closing(open_postgres(url)) as store:
            record(store, read_file(*files_in(folder)))
            clock.now += 1000.0
            again = sender(enter(2, into=store, clock=clock))
            again.run([people(100)])
    assert (again.counts.already_sent, again.counts.unknown, again.counts.accepted) == (30, 0, 70)
    assert (service.duplicates, len(service.taken)) == (0, 100)
