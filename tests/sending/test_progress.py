from __future__ import annotations

from support.sending import Clock

from airflow_provider_sms.sending.progress import Progress


def test_progress_says_done_total_rate_and_time_left():
    """A line says how many messages are done, of how many, how fast, and how long it will take."""
    clock = Clock(0.0)
    progress = Progress(1000, clock)
    clock.now = 10.0
    assert progress.line(250) == "250 of 1000 messages done, 25 a second, 30 s left"


def test_progress_is_said_at_most_every_few_seconds():
    """The log is not filled with progress."""
    clock = Clock(0.0)
    progress = Progress(1000, clock, every=5.0)
    lines = []
    for second in range(1, 21):
        clock.now = float(second)
        lines.append(progress.line(second))
    assert [number for number, line in enumerate(lines, 1) if line] == [5, 10, 15, 20]


def test_progress_without_any_is_said_too():
    """A send that hangs says so."""
    clock = Clock(0.0)
    progress = Progress(10, clock)
    clock.now = 6.0
    assert progress.line(0) == "0 of 10 messages done, 0 a second, no estimate yet"


def test_a_send_that_is_paused_tells_no_time_that_is_left():
    """Nobody knows when it is resumed."""
    clock = Clock(0.0)
    progress = Progress(1000, clock)
    clock.now = 10.0
    assert progress.line(250, paused=True) == "250 of 1000 messages done, paused"


def test_what_was_done_before_is_no_pace(clock):
    """A try that goes on after a wait tells how fast it is itself."""
    progress = Progress(1000, clock, done=800, every=5.0)
    clock.now += 10.0
    assert progress.line(900) == "900 of 1000 messages done, 10 a second, 10 s left"
