from __future__ import annotations

import signal
import threading
import time

import pytest

from airflow_provider_sms.sending.shield import run_shielded


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


def test_the_result_is_handed_back():
    """Work that nothing interrupts gives its result."""
    shielded = run_shielded(lambda: 7, on_interrupt=lambda: None, heartbeat=lambda: None)
    assert (shielded.result, shielded.interruption) == (7, None)


def test_what_work_raises_is_raised():
    """An error of the work is the caller's error."""
    with pytest.raises(ZeroDivisionError):
        run_shielded(lambda: 1 / 0, on_interrupt=lambda: None, heartbeat=lambda: None)


def test_an_interruption_asks_the_work_to_stop_and_waits_for_it(raise_soon):
    """What a signal handler raises never lands in the work; it is handed back once the work has ended in order."""
    stop = threading.Event()
    done = []

    def work():
        raise_soon()
        assert stop.wait(10)
        time.sleep(0.05)
        done.append("recorded")
        return "result"

    shielded = run_shielded(work, on_interrupt=stop.set, heartbeat=lambda: None)
    assert (shielded.result, type(shielded.interruption), done) == ("result", Interrupted, ["recorded"])


def test_the_heart_beats_in_the_callers_thread():
    """Airflow's logs and calls belong to the main thread, so the heartbeat runs there."""
    beats = []
    run_shielded(
        lambda: time.sleep(0.1),
        on_interrupt=lambda: None,
        heartbeat=lambda: beats.append(threading.current_thread()),
        every=0.01,
    )
    assert set(beats) == {threading.main_thread()}
