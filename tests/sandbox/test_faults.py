from __future__ import annotations

import time

import pytest
import requests
from support.faults.rest import until

NUMBER = "27821234567"


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "truncated"])
def test_a_response_is_lost(start, tmp_path, capfd, read_to_end, kind, reset):
    """In whole or in part, with ``reset`` by RST; all but ``drop_before`` accept, charge and witness the request first.

    The next request is served, and the server prints no error.
    """
    log = tmp_path / "witness.jsonl"
    client = start(log=log)
    state = client.sandbox.state
    state.set_faults([{"kind": kind, "reset": reset}] * 2)
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        client.bulk((NUMBER, "Hello"))
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        if kind == "truncated":
            head, _, body = read_to_end(connection).partition(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            assert head.startswith(b"HTTP/1.1 200 ")
            assert 0 < len(body) < int(fields[b"content-length"])
            assert body.startswith(b'{"Cost":1')
        elif reset:
            with pytest.raises(ConnectionResetError):
                read_to_end(connection)
        else:
            assert read_to_end(connection) == b""
    accepted = 0 if kind == "drop_before" else 1
    assert state.accepted_messages == [(NUMBER, "Hello")] * accepted * 2
    assert (state.balance, len(log.read_bytes().splitlines())) == (1000 - 2 * accepted, 2 * accepted)
    seen = [(each.status, each.response.get("Messages", 0)) for each in state.requests]
    assert seen == [(200 if kind == "truncated" else None, accepted)] * 2
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    assert capfd.readouterr() == ("", "")


def test_delay_accepts_at_once_and_responds_late(client, state):
    """``delay``: the response is a normal one after the delay; a client that gives up has been texted nevertheless."""
    state.set_faults([{"kind": "delay", "seconds": 0.1}, {"kind": "delay", "seconds": 60}])
    started = time.monotonic()
    assert client.bulk((NUMBER, "Hello")).json()["Messages"] == 1
    assert time.monotonic() - started >= 0.1
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello again"))
        until(lambda: len(state.accepted) == 2, seconds=30, what="the message is accepted")


@pytest.mark.parametrize("status", [200, 303, 307, 400, 401, 403, 404, 408, 425, 429, 499, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("by", ["service", "gateway"])
def test_status_responds_with_that_status(client, state, status, accepted, by):
    """Before or after the message is accepted: the service's error body, or the page of a gateway without a code.

    A gateway's 503 has ``Retry-After``, as gateways do; a redirect names the same path, so that a client that follows
    it sends twice.
    """
    state.set_faults([{"kind": "status", "status": status, "accepted": accepted, "by": by}])
    response = client.bulk((NUMBER, "Hello"), allow_redirects=False)
    assert response.status_code == status
    if by == "service":
        assert response.json()["statusCode"] == status
    else:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert (f"Error {status}" in response.text, "errorCode" in response.text) == (True, False)
    assert (accepted, 1000 - accepted) == (bool(state.accepted), state.balance)
    assert response.headers.get("Retry-After") == ("5" if (status, by) == (503, "gateway") else None)
    if status == 307:
        assert response.headers["Location"] == "/v1/bulkmessages"


@pytest.mark.parametrize("by", ["service", "gateway"])
@pytest.mark.parametrize("body", ["", "oops", '{"errorCode": "InsufficientCredits", "errorMessage": "none left"}'])
def test_status_can_have_a_retry_after_and_any_body(client, state, by, body):
    """They are sent unchanged, whoever the author is: error bodies of the service may be empty, bare or not JSON."""
    state.set_faults([{"kind": "status", "status": 503, "by": by, "retry_after": "9", "body": body}])
    response = client.bulk((NUMBER, "Hello"))
    assert (response.headers["Retry-After"], response.text) == ("9", body)


def test_faults_meet_send_requests_in_order(client, state):
    """Each send request uses up one fault, or one of its ``times``; a ``persistent`` one lasts until it is cleared."""
    last = {"kind": "status", "status": 502, "persistent": True}
    state.set_faults([{"kind": "status", "times": 2}, {"kind": "none"}, last])
    responses = [client.balance(), client.group("1", "staff"), *(client.bulk((NUMBER, "Hello")) for _ in range(5))]
    assert [response.status_code for response in responses] == [200, 500, 500, 200, 502, 502, 502]
    state.set_faults([])
    assert client.bulk((NUMBER, "Hello")).status_code == 200


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


INVALID = {
    "delay": [{"seconds": -1}, {"seconds": "2"}],
    "status": [{"status": 99}, {"status": "500"}, {"body": {}}],
    "none": [{"times": 0}, {"times": True}, {"persistent": 1}, {"on": "everything"}, {"on": []}, {"colour": "red"}],
    "spend": [{"amount": True}, {"when": "during"}],
}
INVALID["status"] += [{"retry_after": header} for header in (1, "soon…", "1\r\nX: 2")]


@pytest.mark.parametrize(
    "fault", [7, {}, {"kind": "explode"}, *({"kind": kind, **fields} for kind in INVALID for fields in INVALID[kind])]
)
def test_an_invalid_fault_is_an_error(client, state, fault):
    """An invalid fault, with which a test would test nothing, is refused; the waiting faults stay."""
    state.set_faults([{"kind": "truncated"}])
    with pytest.raises((TypeError, ValueError)):
        state.set_faults([{"kind": "none"}, fault])
    assert client.control("POST", "/faults", json=[{"kind": "none"}, fault]).status_code == 400
    assert [waiting.kind for waiting in state.faults] == ["truncated"]
