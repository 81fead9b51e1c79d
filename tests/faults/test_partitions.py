from __future__ import annotations

import time
from collections import Counter

import pytest
from support.faults.partitions import beyond_rate, most_at_once, peak
from support.faults.processes import Order, started
from support.faults.sendings import TOKEN, outgoing
from support.faults.verdict import read_ledger

CHUNK, CONCURRENCY = 20, 2
DEADLINES = 200.0
"""Seconds; more than any claim here lives, and than another task waits for its outcome."""


@pytest.fixture
def service(tmp_path):
    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.sandbox.server import running_sandbox

    with running_sandbox(SandboxConfig(token=TOKEN, post_paid=True)) as handle:
        yield handle


def partitions():
    """Give everybody, and four partitions of which neighbours share people."""
    everybody = [str(27_820_000_000 + number) for number in range(700)]
    return everybody, [everybody[part * 150 :][:250] for part in range(4)]


def orders(service, url, parts, number=1, ahead=0.0):
    return [
        Order(
            service.base_url,
            url.render_as_string(hide_password=False),
            "spring",
            number=number,
            rows=rows,
            chunk_size=CHUNK,
            concurrency=CONCURRENCY,
            map_index=index,
            ahead=ahead,
        )
        for index, rows in parts
    ]


def test_processes_of_overlapping_partitions_text_each_person_once(service, postgres_url):
    """Four processes at once, each a try of a mapped task: together they text everybody, and nobody twice."""
    service.state.set_faults([{"kind": "delay", "seconds": 0.02, "persistent": True}])
    everybody, parts = partitions()
    with started(orders(service, postgres_url, enumerate(parts))) as processes:
        for process in processes:
            process.go()
        ended = [process.result() for process in processes]
    assert [(each["miscounted"], each["error"]) for each in ended] == [(0, None)] * 4
    texted = Counter(message.destination for message in service.state.accepted)
    assert (set(everybody), {1}) == (set(texted), set(texted.values()))
    assert len(everybody) == sum(each["accepted"] for each in ended)


def test_mapped_tasks_that_are_killed_leave_few_unknown_and_nobody_twice(service, postgres_url):
    """SIGKILL of all four, and their next tries: unknown is what was in flight, all others are texted once."""
    from airflow_provider_sms.ledger.postgres import open_postgres

    service.state.set_faults([{"kind": "delay", "seconds": 0.1, "persistent": True}])
    everybody, parts = partitions()
    with started(orders(service, postgres_url, enumerate(parts))) as processes:
        for process in processes:
            process.go()
        while len(service.state.accepted) < 200:
            time.sleep(0.005)
        for process in processes:
            process.kill()
    service.state.set_faults([])
    again = orders(service, postgres_url, enumerate(parts), number=2, ahead=DEADLINES)
    with started(again) as processes:
        for process in processes:
            process.go()
        ended = [process.result() for process in processes]
    store = open_postgres(postgres_url)
    states = read_ledger(store._engine, "spring")
    store.close()
    unknown = sum(state == "unknown" for state in states.values())
    texted = Counter(message.destination for message in service.state.accepted)
    assert [(each["miscounted"], each["error"]) for each in ended] == [(0, None)] * 4
    assert {message.key for message in outgoing("spring", everybody)} == set(states)
    assert 0 < unknown <= 4 * CONCURRENCY * CHUNK
    assert {1} == set(texted.values())
    assert len(texted) >= len(everybody) - unknown


@pytest.mark.parametrize(
    ("spans", "most"),
    [([], 0), ([(0, 1)], 1), ([(0, 1), (1, 2)], 1), ([(0, 2), (1, 3), (1.5, 1.8), (4, 5)], 3)],
)
def test_how_many_were_at_once(spans, most):
    """Spans that only touch were not at the same time."""
    assert most == most_at_once(spans)


@pytest.mark.parametrize(
    ("times", "most"),
    [([], 0), ([3.0, 0.0], 1), ([0.0, 1.0], 1), ([0.0, 0.9, 1.8, 1.85, 1.89], 4)],
)
def test_how_many_were_in_the_busiest_second(times, most):
    """A stretch begins anywhere, and what is exactly its length later is outside."""
    assert most == peak(times, 1.0)


@pytest.mark.parametrize(
    ("peaks", "wrong"),
    [((24, 83), 0), ((28, 108), 0), ((31, 85), 1), ((32, 90), 1), ((20, 120), 1), ((40, 160), 2)],
)
def test_a_rate_that_is_not_kept_is_noticed(peaks, wrong):
    """Four tasks without a limit were seen to come to 31 or 32 in a second, with one to 24 at the most."""
    assert len(list(beyond_rate(peaks))) == wrong
