from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
from urllib.parse import urlsplit

import pytest
import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import TICK_SECONDS, running_sandbox

NUMBER, TOKEN = "27821234567", "token-of-these-tests"
BODY = b'{"Messages": [{"Destination": "27821234567", "Content": "Hello"}]}'
HEAD = (
    b"POST /v1/bulkmessages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-these-tests\r\n"
    b"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
)


def test_it_starts_and_stops_at_once_and_leaves_no_thread():
    """Start and stop wait for no tick, so that each test can have a sandbox; no thread stays."""
    before = set(threading.enumerate())
    took = []
    for _ in range(5):
        started = time.monotonic()
        with running_sandbox() as sandbox:
            sandbox.state.set_balance(3)
        took.append(time.monotonic() - started)
    assert min(took) < TICK_SECONDS - 0.1  # the others say how busy the machine is
    assert set(threading.enumerate()) <= before  # a thread of an earlier test may end meanwhile


def test_it_stops_at_once_with_open_connections():
    """Idle connections, half a request and a pending response do not delay the stop."""
    with contextlib.ExitStack() as stack:
        with running_sandbox(SandboxConfig(token=TOKEN, latency=60)) as sandbox:
            address = urlsplit(sandbox.base_url)
            idle, half, due = (
                stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=10))
                for _ in range(3)
            )
            half.sendall(HEAD + BODY[:10])
            due.sendall(HEAD + BODY)
            idle.sendall(HEAD.replace(b"POST /v1/bulkmessages", b"GET /v1/Balance") + BODY)
            received = b""
            while b"Balance" not in received:
                received += idle.recv(4096)
            while len(sandbox.state.requests) < 2:
                time.sleep(0.001)
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 3
        assert [connection.recv(4096) for connection in (idle, half, due)] == [b"", b"", b""]


def test_the_memory_can_be_read_after_the_end():
    """The accepted messages can be read after the sandbox has stopped."""
    with running_sandbox(SandboxConfig(token="t")) as sandbox:
        requests.post(
            f"{sandbox.base_url}/bulkmessages",
            json={"Messages": [{"Destination": NUMBER, "Content": "Hello"}]},
            headers={"Authorization": "Bearer t", "Accept": "application/json", "Connection": "close"},
            timeout=10,
        )
    assert sandbox.state.accepted_messages == [(NUMBER, "Hello")]


def test_two_sandboxes_are_independent(start):
    """Each sandbox has its own port and memory."""
    one, two = start(), start()
    one.bulk((NUMBER, "Hello"))
    assert one.root != two.root
    assert two.sandbox.state.accepted_messages == []


def test_a_port_that_is_taken_is_an_error(client):
    """The caller gets the error for a port in use; it is not lost in a thread."""
    port = int(client.root.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), running_sandbox(SandboxConfig(port=port)):
        pass


def test_an_idle_connection_is_closed_after_the_keep_alive_time(start, read_to_end):
    """A short keep-alive time closes idle connections soon, for tests of clients that reuse them."""
    client = start(keep_alive=0.05)
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        received = read_to_end(connection)
    assert received.startswith(b"HTTP/1.1 200")


def test_it_listens_on_loopback_of_either_family(start):
    """IPv6 loopback works like IPv4, its address in brackets."""
    client = start(host="::1")
    assert client.root.startswith("http://[::1]:")
    assert client.balance().status_code == 200


def test_a_client_that_disconnects_early_harms_nobody(client, state):
    """A connection that ends in the middle of a request leaves no trace."""
    with client.connect() as connection:
        connection.sendall(HEAD + BODY[:10])
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    assert state.accepted_messages == [(NUMBER, "Hello")]


def test_responses_are_not_held_back(client):
    """Of forty requests in a row, most take less than a delayed acknowledgement of 40 ms."""
    took = []
    for _ in range(40):
        started = time.monotonic()
        client.balance()
        took.append(time.monotonic() - started)
    assert statistics.median(took) < 0.04
