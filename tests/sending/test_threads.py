from __future__ import annotations

import signal
import threading
import time

import pytest

from airflow_provider_sms.sending.threads import Prefetcher, WorkerPool, run_beside, run_uninterrupted


def test_as_many_work_at_once_as_there_are_threads():
    """Three threads meet at a barrier of three."""
    barrier, met = threading.Barrier(3), []

    def work(number):
        barrier.wait(10)
        met.append(number)

    with WorkerPool(3, work) as workers:
        for number in range(3):
            workers.submit(number)
    assert sorted(met) == [0, 1, 2]


def test_leaving_waits_for_what_was_given():
    """Nothing that was given is dropped, and no thread is left."""
    done = []
    with WorkerPool(2, done.append) as workers:
        for number in range(100):
            workers.submit(number)
    assert sorted(done) == list(range(100))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sms-post")]


def test_threads_that_cannot_start_are_known_before_anything_is_given(monkeypatch):
    """A machine without threads to spare says so at once, and keeps none of them."""
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "sms-post-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        WorkerPool(3, print)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sms-post")]


@pytest.fixture
def counted():
    """Count up, and note what was made and that the end was reached."""

    class Counted:
        made = 0
        closed = threading.Event()

        def __iter__(self):
            try:
                for number in range(100):
                    self.made = number + 1
                    yield number
            finally:
                self.closed.set()

    return Counted()


def settled(value):
    """Wait until a value no longer changes."""
    before = None
    while (now := value()) != before:
        before = now
        time.sleep(0.05)
    return now


def test_everything_comes_in_order(counted):
    """Reading ahead changes nothing of what is read."""
    with Prefetcher(counted) as ahead:
        assert list(ahead) == list(range(100))
        assert list(ahead) == []


def test_reading_ahead_is_bounded(counted):
    """Whoever takes nothing has one item waiting and one in the making: memory stays flat."""
    with Prefetcher(counted) as ahead:
        assert settled(lambda: counted.made) == 2
        next(ahead)
        assert settled(lambda: counted.made) == 3


def test_the_next_item_is_made_before_it_is_asked_for(counted):
    """While one item is in use, the next one is made."""
    with Prefetcher(counted) as ahead:
        next(ahead)
        assert settled(lambda: counted.made) > 1


def test_an_item_is_waited_for_no_longer_than_asked(counted):
    """A source can hang. What was waited for comes once, in its place, and so does the end."""
    goes_on = threading.Event()

    def hanging():
        yield 1
        goes_on.wait(30.0)
        yield 2

    with Prefetcher(hanging()) as ahead:
        assert (ahead.wait(30.0), ahead.wait(30.0), next(ahead)) == (True, True, 1)
        assert (ahead.wait(0.0), ahead.wait(0.01)) == (False, False)
        goes_on.set()
        assert (ahead.wait(30.0), next(ahead), ahead.wait(30.0), next(ahead, None)) == (True, 2, True, None)


def test_what_reading_raises_comes_in_its_place():
    """An error of the source is seen after what was read before it, and is the end."""

    def breaking():
        yield 1
        raise ValueError("broken")

    with Prefetcher(breaking()) as ahead:
        assert next(ahead) == 1
        with pytest.raises(ValueError, match="broken"):
            next(ahead)
        assert next(ahead, None) is None


def test_leaving_early_closes_the_source(counted):
    """Who stops reading leaves no thread behind, and no file open."""
    with Prefetcher(counted) as ahead:
        next(ahead)
    assert counted.closed.wait(5)
    assert not [thread for thread in threading.enumerate() if thread.name == "sms-read"]


def test_without_threads_it_is_read_all_the_same(counted, monkeypatch):
    """Where the system has no thread to spare, each item is made when it is asked for."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Prefetcher(counted) as ahead:
        assert (ahead.wait(0.0), next(ahead), counted.made) == (True, 0, 1)
        assert list(ahead) == list(range(1, 100))


class Interrupted(BaseException):
    """What a signal handler raises."""


@pytest.fixture
def raise_soon():
    """Raise in the main thread, as Airflow's timeout does, while it waits."""

    def handler(signum, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_work_that_nothing_interrupts_ends_without_an_interruption():
    """It has run, and there is nothing to raise."""
    done = []
    assert run_uninterrupted(lambda: done.append(7), on_interrupt=lambda: None, heartbeat=lambda: None) is None
    assert done == [7]


def test_what_work_raises_is_raised():
    """An error of the work is the caller's error."""
    with pytest.raises(ZeroDivisionError):
        run_uninterrupted(lambda: 1 / 0, on_interrupt=lambda: None, heartbeat=lambda: None)


def test_an_interruption_asks_the_work_to_stop_and_waits_for_it(raise_soon):
    """What a signal handler raises never lands in the work; it is handed back once the work has ended in order."""
    stop = threading.Event()
    done = []

    def work():
        raise_soon()
        assert stop.wait(10)
        time.sleep(0.05)
        done.append("recorded")

    interruption = run_uninterrupted(work, on_interrupt=stop.set, heartbeat=lambda: None)
    assert (type(interruption), done) == (Interrupted, ["recorded"])


def test_the_heart_beats_in_the_callers_thread():
    """Airflow's logs and calls belong to the main thread, so the heartbeat runs there."""
    beats = []
    run_uninterrupted(
        lambda: time.sleep(0.1),
        on_interrupt=lambda: None,
        heartbeat=lambda: beats.append(threading.current_thread()),
        every=0.01,
    )
    assert set(beats) == {threading.main_thread()}


def test_work_beside_returns_and_raises_as_if_it_were_called():
    """Whoever calls it need not know of the thread."""
    assert run_beside(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        run_beside(lambda: 1 / 0)


def test_work_beside_keeps_no_signal_waiting(raise_soon):
    """What a signal handler raises is raised while the work goes on, and the work ends in its thread."""
    goes_on, ended = threading.Event(), threading.Event()

    def work():
        goes_on.wait(30.0)
        ended.set()

    raise_soon()
    with pytest.raises(Interrupted):
        run_beside(work)
    assert not ended.is_set()
    goes_on.set()
    assert ended.wait(30.0)


def test_without_threads_work_beside_is_done_all_the_same(monkeypatch):
    """Where the system has no thread to spare, it is done in the caller's."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run_beside(threading.current_thread) is threading.current_thread()
