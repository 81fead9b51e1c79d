from __future__ import annotations

import time

import pytest
import requests
from support.faults.rest import until

NUMBER = "27821234567"


@pytest.mark.parametrize(("kind", "is_accepted"), [("drop_before", False), ("drop_after", True)])
def test_a_drop_ends_the_connection_without_a_byte(start, tmp_path, read_to_end, kind, is_accepted):
    """The request is read; ``drop_after`` accepts, charges and witnesses it first, ``drop_before`` does not."""
    client = start(log=tmp_path / "witness.jsonl")
    state = client.sandbox.state
    state.set_faults([{"kind": kind}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        assert read_to_end(connection) == b""
    accepted = [(NUMBER, "Hello")] if is_accepted else []
    assert (state.accepted_messages, state.balance) == (accepted, 1000 - is_accepted)
    assert len((tmp_path / "witness.jsonl").read_bytes().splitlines()) == is_accepted
    (request,) = state.requests
    assert (request.status, request.fault, request.submitted, request.accepted) == (None, kind, 1, is_accepted)


@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
def test_a_dropped_connection_can_be_a_reset(client, state, kind):
    """With ``reset`` the connection ends with RST, which the client sees as a reset."""
    state.set_faults([{"kind": kind, "reset": True}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "truncated"])
def test_an_http_client_sees_a_lost_connection(client, state, capfd, kind, reset):
    """A reused connection that ends gives no response; the next request is served, and the server prints no error."""
    client.balance()
    state.set_faults([{"kind": kind, "reset": reset}])
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        client.bulk((NUMBER, "Hello"))
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    assert capfd.readouterr() == ("", "")


def test_truncated_sends_the_beginning_of_the_body(client, state, read_to_end):
    """``truncated``: the message is accepted; the headers promise more bytes than arrive."""
    state.set_faults([{"kind": "truncated"}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert head.startswith(b"HTTP/1.1 200 ")
    assert 0 < len(body) < int(fields[b"content-length"])
    assert body.startswith(b'{"Cost":1')
    assert state.accepted_messages == [(NUMBER, "Hello")]


def test_delay_accepts_at_once_and_responds_late(client, state):
    """``delay``: the response is a normal one after the delay; a client that gives up has been texted nevertheless."""
    state.set_faults([{"kind": "delay", "seconds": 0.1}, {"kind": "delay", "seconds": 60}])
    started = time.monotonic()
    assert client.bulk((NUMBER, "Hello")).json()["Messages"] == 1
    assert time.monotonic() - started >= 0.1
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello again"))
        until(lambda: len(state.accepted) == 2, seconds=30, what="the message is accepted")


def test_sends_wait_at_the_same_time_and_nothing_else_waits(start):
    """``latency``: every response to a send request is late, also a refusal; the balance responds at once."""
    client = start(latency=0.2)
    with client.connect() as one, client.connect() as other:
        started = time.monotonic()
        client.raw_send(one, (NUMBER, "Hello"))
        client.raw_send(other, (NUMBER, ""))
        assert client.balance().status_code == 200
        between = time.monotonic() - started
        assert (one.recv(12), other.recv(12)) == (b"HTTP/1.1 200", b"HTTP/1.1 400")
    assert between < 0.2 <= time.monotonic() - started < 0.4


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("accepted", [False, True])
def test_status_responds_with_that_status(client, state, status, accepted):
    """``status``: the service's error body with any status, before or after the message is accepted."""
    state.set_faults([{"kind": "status", "status": status, "accepted": accepted}])
    response = client.bulk((NUMBER, "Hello"))
    assert (status, status) == (response.status_code, response.json()["statusCode"])
    assert (accepted, 1000 - accepted) == (bool(state.accepted), state.balance)


@pytest.mark.parametrize("status", [200, 303, 408, 425, 429, 499, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("accepted", [False, True])
def test_a_gateway_has_its_own_page(client, state, status, accepted):
    """``by`` a gateway: an HTML page without an error code, and ``Retry-After`` with 503 only, as gateways do."""
    state.set_faults([{"kind": "status", "status": status, "accepted": accepted, "by": "gateway"}])
    response = client.bulk((NUMBER, "Hello"), allow_redirects=False)
    assert (status, "text/html; charset=utf-8") == (response.status_code, response.headers["Content-Type"])
    assert (f"Error {status}" in response.text, "errorCode" in response.text) == (True, False)
    assert accepted == bool(state.accepted_messages)
    assert ("5" if status == 503 else None) == response.headers.get("Retry-After")


@pytest.mark.parametrize("by", ["service", "gateway"])
def test_status_can_have_a_retry_after(client, state, by):
    """``retry_after`` becomes the header, whoever the author is; a service sends none by default."""
    state.set_faults([{"kind": "status", "status": 503, "by": by, "retry_after": "9"}, {"kind": "status"}])
    assert [client.bulk((NUMBER, "Hello")).headers.get("Retry-After") for _ in range(2)] == ["9", None]


@pytest.mark.parametrize("body", ["", "oops", '{"errorCode": "InsufficientCredits", "errorMessage": "none left"}'])
def test_status_can_have_any_body(client, state, body):
    """``body`` is sent unchanged: error bodies of the service may be empty, bare or not JSON."""
    state.set_faults([{"kind": "status", "status": 403, "body": body}])
    assert body == client.bulk((NUMBER, "Hello")).text


def test_a_redirect_points_to_itself(client, state):
    """A 3xx names the same path, so that a client that follows it sends twice."""
    state.set_faults([{"kind": "status", "status": 307}])
    assert client.bulk((NUMBER, "Hello"), allow_redirects=False).headers["Location"] == "/v1/bulkmessages"


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_status_without_content_has_none(client, state, status):
    """It has no body, and the connection stays usable."""
    state.set_faults([{"kind": "status", "status": status}])
    response = client.bulk((NUMBER, "Hello"), allow_redirects=False)
    assert (response.status_code, response.content) == (status, b"")
    assert client.balance().status_code == 200


def test_faults_meet_send_requests_in_order(client, state):
    """Each send request uses up one fault, or one of its ``times``; ``none`` and an empty list serve the request."""
    state.set_faults([{"kind": "status", "times": 2}, {"kind": "none"}, {"kind": "status", "status": 502}])
    responses = [client.balance(), client.group("1", "staff"), *(client.bulk((NUMBER, "Hello")) for _ in range(4))]
    assert [response.status_code for response in responses] == [200, 500, 500, 200, 502, 200]


def test_a_persistent_fault_lasts_until_it_is_cleared(client, state):
    """Every request meets a ``persistent`` fault until the faults are replaced."""
    state.set_faults([{"kind": "status", "status": 503, "persistent": True}])
    before = [client.bulk((NUMBER, "Hello")).status_code for _ in range(3)]
    state.set_faults([])
    assert (before, client.bulk((NUMBER, "Hello")).status_code) == ([503] * 3, 200)


def test_a_refused_request_uses_up_no_fault(start, headers):
    """Nor does a fault that accepts first add credit: it accepts what the balance covers."""
    client = start(balance=0)
    client.sandbox.state.set_faults([{"kind": "delay"}, {"kind": "status"}])
    headers["Authorization"] = "Bearer wrong"
    responses = [client.bulk((NUMBER, "Hello"), headers=headers), client.bulk((NUMBER, ""))]
    responses += [client.bulk((NUMBER, "Hello")) for _ in range(2)]
    assert [response.status_code for response in responses] == [401, 400, 403, 500]


def test_somebody_else_spends_right_before_or_after_a_request(client, state):
    """``spend``: the response knows of what was spent before it, at most all; a negative amount is a top-up."""
    spend, on_balance = {"kind": "spend", "amount": 42.5}, {"kind": "spend", "on": "balance"}
    state.set_faults(
        [spend, {**spend, "when": "after"}, {**on_balance, "amount": -0.35}, {**on_balance, "amount": 5000}]
    )
    assert [client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] for _ in range(2)] == [956.5, 955.5]
    assert [client.balance().json()["Balance"] for _ in range(2)] == [913.35, 0]


def test_faults_can_wait_for_other_operations(start):
    """``on`` applies a fault to Balance or Authentication, whatever other requests arrive before."""
    client = start(client_id="me", client_secret="secret")
    client.sandbox.state.set_faults(
        [{"kind": "status", "on": "authentication"}, {"kind": "drop_after", "on": "balance"}]
    )
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    with pytest.raises(requests.ConnectionError):
        client.balance()
    tokens = [client.call("GET", "/Authentication", headers={}, auth=("me", "secret")) for _ in range(2)]
    assert [response.status_code for response in (*tokens, client.balance())] == [500, 200, 200]


@pytest.mark.parametrize(
    "fault",
    [
        7,
        {},
        {"kind": "explode"},
        {"kind": "delay", "seconds": -1},
        {"kind": "delay", "seconds": "2"},
        {"kind": "status", "status": 99},
        {"kind": "status", "status": "500"},
        {"kind": "status", "retry_after": 1},
        {"kind": "status", "retry_after": "soon…"},
        {"kind": "status", "retry_after": "1\r\nX: 2"},
        {"kind": "status", "body": {}},
        {"kind": "none", "times": 0},
        {"kind": "none", "times": True},
        {"kind": "none", "persistent": 1},
        {"kind": "none", "on": "everything"},
        {"kind": "none", "on": []},
        {"kind": "none", "colour": "red"},
        {"kind": "none", "charge_after": 1, "on": "balance"},
        {"kind": "drop_before", "charge_after": 1},
        {"kind": "status", "charge_after": 1},
        {"kind": "spend", "amount": True},
        {"kind": "spend", "when": "during"},
    ],
)
def test_an_invalid_fault_is_an_error(client, state, fault):
    """An invalid fault, with which a test would test nothing, is refused; the waiting faults stay."""
    state.set_faults([{"kind": "truncated"}])
    with pytest.raises(ValueError):
        state.set_faults([{"kind": "none"}, fault])
    assert client.control("POST", "/faults", json=[{"kind": "none"}, fault]).status_code == 400
    assert [waiting.kind for waiting in state.faults] == ["truncated"]
