from __future__ import annotations

import signal
import threading
import time

import pytest

from airflow_provider_sms.sending.workers import WorkerPool, run_uninterrupted


def test_leaving_waits_for_what_was_given():
    """Nothing that was given is dropped, and no thread is left."""
    done = []
    with WorkerPool(2, done.append) as workers:
        for number in range(100):
            workers.submit(number)
    assert sorted(done) == list(range(100))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sms-post")]


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


def test_work_runs_while_the_heart_beats_in_the_callers_thread():
    """Airflow's logs and calls belong to the main thread; there is nothing to raise where nothing interrupts."""
    done, beats = [], []

    def work():
        time.sleep(0.1)
        done.append(threading.current_thread())

    heartbeat = lambda: beats.append(threading.current_thread())  # noqa: E731
    assert run_uninterrupted(work, on_interrupt=lambda: None, heartbeat=heartbeat, every=0.01) is None
    assert (len(done), set(beats)) == (1, {threading.main_thread()})
    assert done[0] not in beats


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
