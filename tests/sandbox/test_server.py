from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from support.faults.rest import until

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox

NUMBER, TOKEN = "27821234567", "token-of-these-tests"
BODY = b'{"Messages": [{"Destination": "27821234567", "Content": "Hello"}]}'
HEAD = (
    b"POST /v1/bulkmessages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-these-tests\r\n"
    b"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
)
CHANGES = [
    ("POST", "/faults", '[{"kind": "none"}]'),
    ("DELETE", "/faults", None),
    ("PUT", "/balance", '{"balance": 5}'),
    ("POST", "/reset", None),
]


def test_it_stops_at_once_with_open_connections():
    """Idle connections, half a request and a pending response do not delay it.

    No thread stays, the port is free again, and the memory can be read.
    """
    before = set(threading.enumerate())
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
            until(lambda: len(sandbox.state.requests) == 2, seconds=30, what="both requests are decided")
            with pytest.raises(OSError, match="in use"), running_sandbox(SandboxConfig(port=address.port)):
                pass
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 3
        assert [connection.recv(4096) for connection in (idle, half, due)] == [b"", b"", b""]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port))
    assert set(threading.enumerate()) <= before  # a thread of an earlier test may end meanwhile
    assert len(sandbox.state.requests) == 2


@pytest.mark.parametrize(
    ("lines", "keeps"), [("HTTP/1.1", True), ("HTTP/1.1\r\nConnection: close", False), ("HTTP/1.0", False)]
)
def test_a_connection_serves_as_many_requests_as_its_client_asks_for(start, read_to_end, lines, keeps):
    """Either version of HTTP; the response says whether the connection stays, and an idle one is closed in time."""
    request = f"GET /_sandbox/state {lines}\r\nHost: localhost\r\n\r\n".encode()
    with start(keep_alive=0.3).connect() as connection:
        connection.sendall(request * 2)
        received = read_to_end(connection)
    assert received.count(b"HTTP/1.1 200") == received.count(b"Connection: ") == (2 if keeps else 1)
    assert (b"Connection: keep-alive" in received) == keeps


@pytest.mark.parametrize("length", ["", "Content-Length: many\r\n", "Transfer-Encoding: chunked\r\n"])
def test_a_body_without_a_length_is_refused(client, read_to_end, length):
    """Where a request ends is known, or the connection ends: nothing in a body is taken for a request."""
    with client.connect() as connection:
        head = HEAD.replace(b"Content-Length: %d\r\n" % len(BODY), length.encode())
        connection.sendall(head + HEAD.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + BODY)
        statuses = read_to_end(connection).count(b"HTTP/1.1 ")
    assert (statuses, len(client.sandbox.state.accepted)) == ((2, 1) if not length else (1, 0))


def test_a_client_that_disconnects_early_harms_nobody(client, state, capfd):
    """A connection that ends in the middle of a request leaves no trace."""
    for sent in (b"", HEAD[:20], HEAD + BODY[:10]):
        with client.connect() as connection:
            connection.sendall(sent)
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    assert (state.accepted_messages, len(state.requests)) == ([(NUMBER, "Hello")], 1)
    assert capfd.readouterr() == ("", "")


HOSTS = [None, "", "rebind.example.com", "127.0.0.1.example.com", "localhost.example.com:8025", "127.0.0.1@example.com"]
HOSTS += ["127.0.0.1, example.com", "127.0.0.1\r\nHost: example.com", "0.0.0.0", "192.168.0.1", "localhost/"]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["GET /", "GET /_sandbox/messages", "POST /_sandbox/reset", "GET /v1/Balance"])
def test_a_request_for_another_host_is_refused_on_every_path(client, read_to_end, path, host):
    """A website that points its own name at this machine can neither read nor change anything."""
    client.bulk((NUMBER, "Hello"))
    line = f"Host: {host}\r\n" if host is not None else ""
    with client.connect() as connection:
        connection.sendall(f"{path} HTTP/1.1\r\n{line}Origin: http://{host}\r\nConnection: close\r\n\r\n".encode())
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
    assert (head.split()[1], json.loads(body)["errors"][0]["errorCode"]) == (b"421", "OtherHost")
    assert (len(client.sandbox.state.requests), client.sandbox.state.balance) == (1, 999)


@pytest.mark.parametrize("origin", ["http://example.com", "null", "http://127.0.0.1:1"])
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_another_sites_page_changes_nothing(client, method, path, body, origin):
    """A browser's request for a page of another site is refused; the own page and clients like curl are served."""
    response = client.call(method, path, base="/_sandbox", headers={"Origin": origin}, data=body)
    assert (response.status_code, response.json()["errors"][0]["errorCode"]) == (403, "OtherSite")
    assert (client.sandbox.state.balance, client.sandbox.state.faults) == (1000, [])
    for headers in ({}, {"Origin": client.root}):
        assert client.call(method, path, base="/_sandbox", headers=headers, data=body).status_code == 200


def test_the_state_has_balance_counts_and_faults(client):
    """Faults are appended, and cleared; every change responds with the new state; control requests do not count."""
    client.bulk((NUMBER, "One"), (NUMBER, "Two"))
    client.control("POST", "/faults", json=[{"kind": "delay", "seconds": 2, "times": 3}])
    body = client.control("POST", "/faults", json=[{"kind": "drop_before"}]).json()
    assert [(fault["kind"], fault["seconds"], fault["times"]) for fault in body.pop("faults")] == [
        ("delay", 2, 3),
        ("drop_before", 0, 1),
    ]
    assert body == {"balance": 998, "post_paid": False, "requests": 1, "accepted_messages": 2}
    assert client.control("DELETE", "/faults").json() == {**body, "faults": []}
    assert client.control("PUT", "/balance", json={"balance": 0.5}).json()["balance"] == 0.5
    assert client.bulk((NUMBER, "Hello")).status_code == 403


@pytest.mark.parametrize("body", ["{", "5", "{}", '{"balance": -1}', '{"balance": true}', '{"balance": 5, "x": 1}'])
def test_a_balance_must_be_a_number_of_at_least_zero(client, body):
    """Any other balance gets 400 and changes nothing; and so does a fault that is in no list."""
    assert client.control("PUT", "/balance", data=body).status_code == 400
    assert client.control("POST", "/faults", data='{"kind": "none"}').status_code == 400
    assert client.sandbox.state.balance == 1000


def test_messages_come_newest_first_by_number(client):
    """``GET messages`` returns lines of the witness: those to numbers that contain some digits, all by default."""
    for start in (0, 60):
        messages = ((f"2782123000{n % 2}", f"text {n}") for n in range(start, start + 60))
        event_id = client.bulk(*messages).json()["EventId"]
    found = client.control("GET", "/messages", params={"limit": 2, "number": "30001"}).json()
    assert (found["total"], [each["content"] for each in found["messages"]]) == (60, ["text 119", "text 117"])
    newest = client.control("GET", "/messages").json()["messages"]
    assert (len(newest), newest[0]["event_id"], newest[0]["index"]) == (100, event_id, 59)
    assert client.control("GET", "/messages?limit=x").status_code == 400


def test_reset_starts_over(start, tmp_path):
    """``POST reset`` removes messages, requests and faults and restores the account; the witness stays."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log, balance=7)
    before = client.bulk((NUMBER, "Hello")).json()["EventId"]
    client.sandbox.state.post_paid = True
    client.control("POST", "/faults", json=[{"kind": "drop_before"}])
    body = client.control("POST", "/reset").json()
    assert body == {"balance": 7, "post_paid": False, "requests": 0, "accepted_messages": 0, "faults": []}
    assert before < client.bulk((NUMBER, "Hello")).json()["EventId"]
    assert len(log.read_bytes().splitlines()) == 2


def test_python_sees_every_request(client, state, headers):
    """``state.requests`` has each request to the service with its response; its repr has no number or text."""
    client.bulk((NUMBER, "One"), ("27991234567", "Two"), base="/api/v1", options={"CampaignName": "Spring"})
    headers["Authorization"] = "Bearer wrong"
    client.balance(headers=headers)
    found = [(each.number, each.operation, each.path, each.status) for each in state.requests]
    assert found == [(1, "bulk", "/api/v1/bulkmessages", 200), (2, "balance", "/v1/Balance", 401)]
    sent, refused = (each.response for each in state.requests)
    assert (sent["Messages"], refused["errors"][0]["errorCode"]) == (1, "AuthenticationToken.Invalid")
    shown = repr(state.requests) + repr(state.accepted) + repr(state.config)
    assert not [secret for secret in (NUMBER, "One", "Spring", TOKEN) if secret in shown]


WRONG = [{"balance": -1}, {"latency": float("nan")}, {"opted_out": "27820000001"}, {"client_id": "me"}, {"token": None}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_settings_out_of_range_are_refused(wrong):
    """An invalid setting is an error at once."""
    with pytest.raises(ValueError):
        SandboxConfig(**wrong)
