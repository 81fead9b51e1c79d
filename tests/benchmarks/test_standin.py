from __future__ import annotations

import time

import pytest
import requests

from benchmarks.bare import bodies_of, post_all
from benchmarks.data import write_table
from benchmarks.service import running_service
from benchmarks.standin import distinct

PEOPLE = 250


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A running stand-in."""
    with running_service(tmp_path_factory.mktemp("standin")) as running:
        yield running


@pytest.fixture(scope="module")
def bodies(tmp_path_factory):
    """Three requests: 100, 100 and 50 people."""
    return bodies_of(write_table(tmp_path_factory.mktemp("tables"), PEOPLE, 2), PEOPLE)


def test_it_counts_requests_messages_and_people(service, bodies):
    """Every message counts; a person who is texted twice counts once."""
    # So long that requests of three threads meet, however late a thread begins.
    service.set(latency=0.5)
    post_all(service.url, [*bodies, bodies[0]], 3)
    counters = service.counters()

    assert (counters.posts, counters.messages, service.distinct()) == (4, PEOPLE + 100, PEOPLE)
    assert 2 <= counters.most_in_flight <= 3
    assert counters.rate > 0


def test_it_counts_anew_once_it_is_set(service, bodies):
    """New settings reset the counters of the last measurement."""
    service.set(latency=0.01)
    post_all(service.url, bodies, 1)
    service.set()

    assert (
        service.counters().posts,
        service.counters().messages,
        service.counters().rate,
        service.distinct(),
    ) == (0, 0, 0.0, 0)


def test_it_reads_json_with_and_without_spaces(service):
    """Messages in the JSON of ``requests`` are counted, too."""
    service.set()
    messages = [{"Content": "Hi", "Destination": str(27_600_000_000 + number)} for number in range(3)]
    response = requests.post(f"{service.url}/bulkmessages", json={"Messages": messages}, timeout=10).json()

    assert (response["Messages"], service.counters().messages, service.distinct()) == (3, 3, 3)


def test_it_is_never_early(service, bodies):
    """A response takes at least the latency, so that no sender looks faster than it is."""
    service.set(latency=0.1)
    began = time.monotonic()
    post_all(service.url, bodies[:1], 1)

    assert time.monotonic() - began >= 0.1


def test_numbers_are_told_apart_by_every_digit():
    """Neighbouring numbers count as different people."""
    assert distinct(b"276000000012760000000227600000001" + b"37600000001") == 3
    assert distinct(b"") == 0
