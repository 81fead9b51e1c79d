from __future__ import annotations

import time

import pytest
import requests
from support.faults.rest import until

NUMBER = "27821234567"


def test_drop_before_ends_the_connection_without_a_byte_and_accepts_nothing(client, state, read_to_end):
    """``drop_before``: the request is read, nothing is accepted, and the response has no bytes."""
    state.set_faults([{"kind": "drop_before"}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        assert read_to_end(connection) == b""
    assert state.accepted_messages == []
    assert [(request.status, request.fault, request.submitted, request.accepted) for request in state.requests] == [
        (None, "drop_before", 1, 0)
    ]


def test_drop_after_ends_the_connection_without_a_byte_after_accepting(start, tmp_path, read_to_end):
    """``drop_after``: the message is accepted, charged and witnessed, and the response has no bytes."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log)
    state = client.sandbox.state
    state.set_faults([{"kind": "drop_after"}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        assert read_to_end(connection) == b""
    assert (state.accepted_messages, state.balance) == ([(NUMBER, "Hello")], 999)
    assert len(log.read_bytes().splitlines()) == 1
    assert (state.requests[0].status, state.requests[0].accepted) == (None, 1)


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "truncated"])
def test_a_dropped_connection_is_no_error_of_the_server(client, state, caplog, read_to_end, kind):
    """The server logs no error for a requested drop."""
    state.set_faults([{"kind": kind}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        read_to_end(connection)
    assert client.balance().status_code == 200
    assert caplog.records == []


@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
def test_a_dropped_connection_can_be_a_reset(client, state, kind):
    """With ``reset`` the connection ends with RST, which the client sees as a reset."""
    state.set_faults([{"kind": kind, "reset": True}])
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
def test_an_http_client_sees_a_lost_connection(client, state, kind):
    """An HTTP client gets no status from a dropped connection, and its next request is served."""
    client.balance()  # so that the connection that is dropped is a reused one
    state.set_faults([{"kind": kind}])
    with pytest.raises(requests.ConnectionError):
        client.bulk((NUMBER, "Hello"))
    assert client.bulk((NUMBER, "Hello")).status_code == 200


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


def test_foreign_responds_with_a_page(client, state):
    """``foreign``: the message is accepted; the response is a 200 with HTML, like a proxy's sign-in page."""
    state.set_faults([{"kind": "foreign"}])
    answer = client.bulk((NUMBER, "Hello"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.text.startswith("<!doctype html>")
    assert state.accepted_messages == [(NUMBER, "Hello")]


def test_delay_accepts_at_once_and_responds_late(client, state):
    """``delay``: the message is accepted before the delay; the response is a normal one after it."""
    state.set_faults([{"kind": "delay", "seconds": 0.1}])
    started = time.monotonic()
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        first = connection.recv(8)
    assert time.monotonic() - started >= 0.1
    assert first == b"HTTP/1.1"
    assert (state.accepted[0].at - state.requests[0].at).total_seconds() <= 0


def test_delay_can_exceed_the_timeout_of_a_client(client, state):
    """The message of a client that gives up has been accepted nevertheless."""
    state.set_faults([{"kind": "delay", "seconds": 60}])
    with pytest.raises(requests.ReadTimeout):
        client.session.post(
            f"{client.root}/v1/bulkmessages",
            headers={"Authorization": "Bearer token-of-these-tests", "Accept": "application/json"},
            json={"Messages": [{"Destination": NUMBER, "Content": "Hello"}]},
            timeout=0.05,
        )
    until(lambda: state.accepted_messages, seconds=30, what="the message is accepted")
    assert state.accepted_messages == [(NUMBER, "Hello")]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("accepted", [False, True])
def test_status_responds_with_that_status(client, state, status, accepted):
    """``status``: the service's error body with any status, before or after the message is accepted."""
    state.set_faults([{"kind": "status", "status": status, "accepted": accepted}])
    answer = client.bulk((NUMBER, "Hello"))
    assert (status, status) == (answer.status_code, answer.json()["statusCode"])
    assert accepted == bool(state.accepted_messages)
    assert (999 if accepted else 1000) == state.balance


@pytest.mark.parametrize("status", [303, 408, 425, 429, 499, 500, 502, 503, 504])
@pytest.mark.parametrize("accepted", [False, True])
def test_a_gateway_has_its_own_page(client, state, status, accepted):
    """``by`` a gateway: an HTML page without an error code, and ``Retry-After`` with 503 only, as gateways do."""
    state.set_faults([{"kind": "status", "status": status, "accepted": accepted, "by": "gateway"}])
    answer = client.bulk((NUMBER, "Hello"), allow_redirects=False)
    assert (status, "text/html; charset=utf-8") == (answer.status_code, answer.headers["Content-Type"])
    assert f"Error {status}" in answer.text
    assert "errorCode" not in answer.text
    assert accepted == bool(state.accepted_messages)
    assert ("5" if status == 503 else None) == answer.headers.get("Retry-After")


def test_a_gateway_can_have_another_retry_after(client, state):
    """``retry_after`` sets the header for either author of the response."""
    state.set_faults([{"kind": "status", "status": 503, "by": "gateway", "retry_after": "9"}])
    assert client.bulk((NUMBER, "Hello")).headers["Retry-After"] == "9"


def test_status_can_have_a_retry_after(client, state):
    """``retry_after`` becomes the header, as seconds or as a date (RFC 9110 section 10.2.3)."""
    state.set_faults([{"kind": "status", "status": 429, "retry_after": "1"}, {"kind": "status", "status": 503}])
    assert [client.bulk((NUMBER, "Hello")).headers.get("Retry-After") for _ in range(2)] == ["1", None]


@pytest.mark.parametrize("body", ["", "oops", '{"errorCode": "InsufficientCredits", "errorMessage": "none left"}'])
def test_status_can_have_any_body(client, state, body):
    """``body`` is sent unchanged: error bodies of the service may be empty, bare or not JSON."""
    state.set_faults([{"kind": "status", "status": 403, "body": body}])
    assert body == client.bulk((NUMBER, "Hello")).text


def test_a_redirect_points_to_itself(client, state):
    """A 3xx names the same path, so that a client that follows it sends twice."""
    state.set_faults([{"kind": "status", "status": 307}])
    assert client.bulk((NUMBER, "Hello"), allow_redirects=False).headers["Location"] == "/v1/bulkmessages"


def test_a_status_without_content_has_none(client, state):
    """A 204 has no body, and the connection stays usable."""
    state.set_faults([{"kind": "status", "status": 204}])
    answer = client.bulk((NUMBER, "Hello"))
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.balance().status_code == 200


def test_faults_meet_send_requests_in_order(client, state):
    """Each send request, bulk or group, uses up one fault; ``none`` serves one; without faults all are served."""
    state.set_faults([{"kind": "status", "status": 500}, {"kind": "none"}, {"kind": "status", "status": 502}])
    statuses = [
        client.balance().status_code,
        client.bulk((NUMBER, "One")).status_code,
        client.group("Two", "staff").status_code,
        client.group("Three", "staff").status_code,
        client.bulk((NUMBER, "Four")).status_code,
    ]
    assert statuses == [200, 500, 200, 502, 200]


def test_a_fault_can_last_for_several_requests(client, state):
    """``times`` requests meet the fault, and the next one does not."""
    state.set_faults([{"kind": "status", "status": 503, "times": 2}])
    assert [client.bulk((NUMBER, "Hello")).status_code for _ in range(3)] == [503, 503, 200]


def test_a_persistent_fault_lasts_until_it_is_cleared(client, state):
    """Every request meets a ``persistent`` fault until the faults are replaced."""
    state.set_faults([{"kind": "status", "status": 503, "persistent": True}])
    before = [client.bulk((NUMBER, "Hello")).status_code for _ in range(3)]
    state.set_faults([])
    assert (before, client.bulk((NUMBER, "Hello")).status_code) == ([503] * 3, 200)


def test_a_refused_request_uses_up_no_fault(client, state, headers):
    """A request that the service refuses anyway leaves the fault to the next request."""
    state.set_faults([{"kind": "status", "status": 500}])
    headers["Authorization"] = "Bearer wrong"
    refused = [client.bulk((NUMBER, "Hello"), headers=headers).status_code, client.bulk((NUMBER, "")).status_code]
    assert refused == [401, 400]
    assert client.bulk((NUMBER, "Hello")).status_code == 500


def test_a_fault_does_not_add_credit(start):
    """A fault that accepts first accepts only what the balance covers."""
    client = start(balance=0)
    client.sandbox.state.set_faults([{"kind": "drop_after"}, {"kind": "delay", "seconds": 0.01}])
    with pytest.raises(requests.ConnectionError):
        client.bulk((NUMBER, "Hello"))
    assert client.bulk((NUMBER, "Hello")).status_code == 403
    assert client.sandbox.state.accepted_messages == []


def test_somebody_else_spends_right_before_or_after_a_request(client, state):
    """``spend``: the response knows of what was spent before it, and not of what was spent after it."""
    state.set_faults([{"kind": "spend", "amount": 42.5}, {"kind": "spend", "amount": 7, "when": "after"}])
    before = client.bulk((NUMBER, "One")).json()["RemainingBalance"]
    after = client.bulk((NUMBER, "Two")).json()["RemainingBalance"]
    assert (before, after, client.balance().json()) == (956.5, 955.5, {"Balance": 948.5})


def test_a_balance_can_move_around_the_request_that_reads_it(client, state):
    """A ``spend`` on the balance works in the same way, and a negative amount is a top-up."""
    on_balance = {"kind": "spend", "on": "balance"}
    state.set_faults([{**on_balance, "amount": -0.35}, {**on_balance, "amount": 10, "when": "after"}])
    assert [client.balance().json()["Balance"] for _ in range(3)] == [1000.35, 1000.35, 990.35]


def test_somebody_else_spends_at_most_what_there_is(client, state):
    """A ``spend`` above the balance takes all of it, and the request itself is refused as usual."""
    state.set_faults([{"kind": "spend", "amount": 5000}])
    assert (client.bulk((NUMBER, "Hello")).status_code, state.balance) == (403, 0)


def test_faults_can_wait_for_other_operations(start):
    """``on`` applies a fault to Balance or Authentication, whatever other requests arrive before."""
    client = start(client_id="me", client_secret="secret")
    state = client.sandbox.state
    state.set_faults(
        [{"kind": "status", "status": 503, "on": "authentication"}, {"kind": "drop_after", "on": "balance"}]
    )
    assert client.bulk((NUMBER, "Hello")).status_code == 200
    with pytest.raises(requests.ConnectionError):
        client.balance()
    tokens = [client.call("GET", "/Authentication", headers={}, auth=("me", "secret")) for _ in range(2)]
    assert [answer.status_code for answer in tokens] == [503, 200]
    assert client.balance().status_code == 200


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
        {"kind": "none", "colour": "red"},
        {"kind": "status", "by": "somebody"},
        {"kind": "late_charge", "charge_after": -1},
        {"kind": "late_charge", "charge_after": "1"},
        {"kind": "late_charge", "charge_after": 1, "on": "balance"},
        {"kind": "drop_before", "charge_after": 1},
        {"kind": "none", "charge_after": 1},
        {"kind": "spend", "charge_after": 1},
        {"kind": "status", "charge_after": 1},
        {"kind": "spend", "amount": "5"},
        {"kind": "spend", "amount": True},
        {"kind": "spend", "when": "during"},
    ],
)
def test_an_invalid_fault_is_an_error(client, state, fault):
    """An invalid fault, with which a test would test nothing, is refused; the waiting faults stay."""
    state.set_faults([{"kind": "foreign"}])
    with pytest.raises(ValueError):
        state.set_faults([{"kind": "none"}, fault])
    assert client.control("POST", "/faults", json=[{"kind": "none"}, fault]).status_code == 400
    assert [waiting["kind"] for waiting in state.faults.pending()] == ["foreign"]
