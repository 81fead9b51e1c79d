from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

NUMBER = "27821234567"


def test_sends_wait_at_the_same_time(start):
    """Each send answers after the latency, and eight at once take one latency, not eight."""
    client = start(latency=0.4)

    def timed(number):
        started = time.monotonic()
        client.bulk((NUMBER, f"text {number}"))
        return time.monotonic() - started

    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        each = list(pool.map(timed, range(8)))
    assert min(each) >= 0.4
    assert time.monotonic() - started < 8 * 0.4 / 2


def test_nothing_else_waits(start):
    """The latency is that of sending: the balance answers at once."""
    client = start(latency=30)
    assert client.balance().status_code == 200


def test_refusals_wait_as_well(start):
    """Every answer to a send request waits, a refusal too."""
    client = start(latency=0.05)
    started = time.monotonic()
    assert client.bulk((NUMBER, "")).status_code == 400
    assert time.monotonic() - started >= 0.05
