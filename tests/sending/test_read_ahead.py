from __future__ import annotations

import threading
import time

import pytest

from airflow_provider_sms.sending.read_ahead import ReadAhead


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
    with ReadAhead(counted) as ahead:
        assert list(ahead) == list(range(100))
        assert list(ahead) == []


def test_reading_ahead_is_bounded(counted):
    """Whoever takes nothing has one item waiting and one in the making: memory stays flat."""
    with ReadAhead(counted) as ahead:
        assert settled(lambda: counted.made) == 2
        next(ahead)
        assert settled(lambda: counted.made) == 3


def test_the_next_item_is_made_before_it_is_asked_for(counted):
    """While one item is in use, the next one is made."""
    with ReadAhead(counted) as ahead:
        next(ahead)
        assert settled(lambda: counted.made) > 1


def test_what_reading_raises_comes_in_its_place():
    """An error of the source is seen after what was read before it, and is the end."""

    def breaking():
        yield 1
        raise ValueError("broken")

    with ReadAhead(breaking()) as ahead:
        assert next(ahead) == 1
        with pytest.raises(ValueError, match="broken"):
            next(ahead)
        assert next(ahead, None) is None


def test_leaving_early_closes_the_source(counted):
    """Who stops reading leaves no thread behind, and no file open."""
    with ReadAhead(counted) as ahead:
        next(ahead)
    assert counted.closed.wait(5)
    assert not [thread for thread in threading.enumerate() if thread.name == "sms-read"]


def test_without_threads_it_is_read_all_the_same(counted, monkeypatch):
    """Where the system has no thread to spare, each item is made when it is asked for."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with ReadAhead(counted) as ahead:
        assert (next(ahead), counted.made) == (0, 1)
        assert list(ahead) == list(range(1, 100))
