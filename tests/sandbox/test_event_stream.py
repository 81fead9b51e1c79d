from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit

import orjson
import pytest

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.event_stream import MAX_FAULTS
from airflow_provider_sms.sandbox.server import running_sandbox

NUMBER = "27820000001"


@contextlib.contextmanager
def listening(client):
    """Open the stream, and yield its events and the response."""
    answer = client.control("GET", "/events", stream=True)

    def told():
        for line in answer.iter_lines(chunk_size=1):
            if line.startswith(b"data: "):
                yield orjson.loads(line.removeprefix(b"data: "))

    with contextlib.closing(answer):
        yield told(), answer


def test_the_stream_sends_the_current_state_at_once_and_then_each_change(client):
    """The first event holds the current state; every change is followed by an event with the new state."""
    client.bulk((NUMBER, "Hello"))
    with listening(client) as (events, answer):
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        first = next(events)
        assert (first["messages"], first["requests"], first["balance"], first["post_paid"]) == (1, 1, 999, False)
        client.bulk((NUMBER, "Again"))
        second = next(event for event in events if event["requests"] == 2)
        assert (second["messages"], second["epoch"]) == (2, first["epoch"])
        client.control("PUT", "/post-paid", json={"post_paid": True})
        assert next(events)["post_paid"]
        client.control("POST", "/reset")
        assert next(events)["epoch"] != first["epoch"]


def test_changes_in_quick_succession_share_an_event(client):
    """A hundred requests in a row produce a few events, none of which holds a number or a text."""
    with listening(client) as (events, _):
        next(events)
        for _ in range(100):
            client.bulk((NUMBER, "Hello"))
        heard = 0
        for event in events:
            heard += 1
            assert NUMBER not in str(event)
            assert "Hello" not in str(event)
            if event["messages"] == 100:
                break
        assert heard < 50


def test_an_event_holds_the_next_faults_with_their_requests_left(client):
    """Each waiting fault has its requests left and its advice; of many, the event holds the first and a count."""
    client.control(
        "POST", "/faults", json=[{"kind": "drop_after", "times": 2}, {"kind": "foreign", "persistent": True}]
    )
    with listening(client) as (events, _):
        drop, foreign = next(events)["faults"]
        assert (drop["kind"], drop["left"], drop["persistent"]) == ("drop_after", 2, False)
        assert "never resend them" in drop["advice"]
        assert (foreign["kind"], foreign["persistent"]) == ("foreign", True)
        client.control("DELETE", "/faults")
        client.control("POST", "/faults", json=[{"kind": "none"}] * (MAX_FAULTS + 7))
        last = next(event for event in events if event["waiting_faults"] > 2)
        assert (last["waiting_faults"], len(last["faults"])) == (MAX_FAULTS + 7, MAX_FAULTS)


def test_an_event_holds_what_a_fault_does_to_the_balance(client):
    """A waiting fault has its late charge, and a ``spend`` its amount and moment; others have neither."""
    late, spend = {"kind": "foreign", "charge_after": 5}, {"kind": "spend", "amount": -2, "when": "after"}
    client.control("POST", "/faults", json=[late, spend, {"kind": "none"}])
    with listening(client) as (events, _):
        rows = next(events)["faults"]
    told = [(row["charge_after"], row["amount"], row["when"]) for row in rows]
    assert told == [(5, None, None), (None, -2, "after"), (None, None, None)]


def test_several_pages_can_listen(client):
    """Each open page has its own stream."""
    with listening(client) as (one, _), listening(client) as (two, _):
        assert next(one) == next(two)
        client.bulk((NUMBER, "Hello"))
        assert [next(event for event in events if event["requests"])["messages"] for events in (one, two)] == [1, 1]


def test_a_sandbox_stops_while_pages_listen():
    """Open streams end with the server, which leaves no thread behind."""
    before = set(threading.enumerate())
    with contextlib.ExitStack() as stack:
        with running_sandbox(SandboxConfig(token="t")) as sandbox:
            address = urlsplit(sandbox.base_url)
            streams = [
                stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=10))
                for _ in range(3)
            ]
            for stream in streams:
                stream.sendall(b"GET /_sandbox/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                received = b""
                while b"\n\n" not in received.partition(b"\r\n\r\n")[2]:
                    received += stream.recv(65536)
        assert [stream.recv(65536) for stream in streams] == [b"", b"", b""]
    assert before == set(threading.enumerate())


def test_a_page_that_leaves_is_forgotten(client):
    """After a page closes its stream, the sandbox serves requests as before."""
    for _ in range(3):
        with listening(client) as (events, _):
            next(events)
    assert client.bulk((NUMBER, "Hello")).status_code == 200


@pytest.mark.parametrize("path", ["/events", "/requests", "/numbers", "/search?q=x", "/advice?kind=none"])
def test_the_paths_that_the_page_reads_change_nothing(client, path):
    """None of the paths that the page reads accepts a method that changes the sandbox."""
    assert client.control("POST", path).status_code == 405
