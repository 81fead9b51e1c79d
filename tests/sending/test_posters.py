from __future__ import annotations

import threading

import pytest

from airflow_provider_sms.sending.posters import Posters


def test_as_many_work_at_once_as_there_are_threads():
    """Three threads meet at a barrier of three."""
    barrier, met = threading.Barrier(3), []

    def work(number):
        barrier.wait(10)
        met.append(number)

    with Posters(3, work) as posters:
        for number in range(3):
            posters.give(number)
    assert sorted(met) == [0, 1, 2]


def test_leaving_waits_for_what_was_given():
    """Nothing that was given is dropped, and no thread is left."""
    done = []
    with Posters(2, done.append) as posters:
        for number in range(100):
            posters.give(number)
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
        Posters(3, print)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sms-post")]
