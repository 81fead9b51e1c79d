from __future__ import annotations

import pytest

NUMBER = "27821234567"
CHANGES = [
    ("POST", "/faults", "[]"),
    ("DELETE", "/faults", None),
    ("PUT", "/balance", '{"balance": 5}'),
    ("POST", "/spend", '{"amount": 5}'),
    ("POST", "/top-up", '{"amount": 5}'),
    ("PUT", "/post-paid", '{"post_paid": true}'),
    ("POST", "/reset", None),
]
OTHERS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://example.com"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
]


def test_the_state_has_balance_counts_and_faults(client):
    """``GET state`` returns balance, counts and waiting faults, without a token."""
    client.bulk((NUMBER, "One"), (NUMBER, "Two"))
    client.control("POST", "/faults", json=[{"kind": "delay", "seconds": 2, "times": 3}])
    body = client.control("GET", "/state").json()
    (fault,) = body.pop("faults")
    assert body == {"balance": 998, "post_paid": False, "requests": 1, "accepted_messages": 2}
    assert (fault["kind"], fault["seconds"], fault["times"]) == ("delay", 2, 3)


def test_faults_are_queued_and_cleared(client):
    """``POST faults`` appends faults, ``DELETE faults`` removes all."""
    client.control("POST", "/faults", json=[{"kind": "status", "status": 500}])
    client.control("POST", "/faults", json=[{"kind": "status", "status": 502}, {"kind": "drop_before"}])
    statuses = [client.bulk((NUMBER, "Hello")).status_code for _ in range(2)]
    cleared = client.control("DELETE", "/faults").json()["faults"]
    assert (statuses, cleared, client.bulk((NUMBER, "Hello")).status_code) == ([500, 502], [], 200)


@pytest.mark.parametrize("body", [b"{", b"{}", b'"none"'])
def test_faults_must_be_a_list(client, body):
    """Anything but a JSON list of faults gets 400."""
    assert client.control("POST", "/faults", data=body).status_code == 400


def test_the_balance_can_be_set(client):
    """``PUT balance`` sets the balance for the next request."""
    assert client.control("PUT", "/balance", json={"balance": 0.5}).json()["balance"] == 0.5
    assert client.bulk((NUMBER, "Hello")).status_code == 403
    client.sandbox.state.set_balance(1)
    assert client.bulk((NUMBER, "Hello")).status_code == 200


@pytest.mark.parametrize("balance", [10**20, 1e300])
def test_a_balance_may_be_as_large_as_it_likes(client, balance):
    """It is stated rounded beyond 64 bits, and the sandbox goes on: no balance keeps a request from a response."""
    assert client.control("PUT", "/balance", json={"balance": float(balance)}).json()["balance"] == float(balance)
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == float(balance)
    assert client.control("GET", "/state").status_code == 200


@pytest.mark.parametrize("body", [{}, {"balance": "5"}, {"balance": -1}, {"balance": True}, {"balance": 5, "x": 1}, 5])
def test_a_balance_must_be_a_number_of_at_least_zero(client, body):
    """Any other balance gets 400 and changes nothing."""
    assert client.control("PUT", "/balance", json=body).status_code == 400
    assert client.sandbox.state.balance == 1000


def test_somebody_else_can_spend_and_top_up(client):
    """``POST spend`` and ``POST top-up`` move the balance exactly, without a request to the service."""
    assert client.control("POST", "/spend", json={"amount": 0.35}).json()["balance"] == 999.65
    assert client.control("POST", "/top-up", json={"amount": 42.5}).json()["balance"] == 1042.15
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 1041.15
    assert len(client.sandbox.state.requests) == 1


def test_more_than_the_balance_cannot_be_spent(client):
    """Spending more than there is gets 403 and changes nothing; all that there is can be spent."""
    answer = client.control("POST", "/spend", json={"amount": 1000.01})
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (403, "InsufficientCredits")
    assert client.sandbox.state.balance == 1000
    assert client.control("POST", "/spend", json={"amount": 1000}).json()["balance"] == 0


@pytest.mark.parametrize("path", ["/spend", "/top-up"])
@pytest.mark.parametrize("body", [{}, {"amount": "5"}, {"amount": -1}, {"amount": True}, {"amount": 5, "x": 1}, 5])
def test_an_amount_must_be_a_number_of_at_least_zero(client, path, body):
    """Any other amount gets 400 and changes nothing."""
    assert client.control("POST", path, json=body).status_code == 400
    assert client.sandbox.state.balance == 1000


def test_nobody_spends_from_a_post_paid_account(start):
    """Neither spending nor topping up changes a post-paid account, nor the pre-paid balance behind it."""
    client = start(post_paid=True)
    client.control("POST", "/spend", json={"amount": 5000})
    assert client.control("POST", "/top-up", json={"amount": 7}).json()["balance"] == 1000000
    client.sandbox.state.set_post_paid(False)
    assert client.sandbox.state.balance == 1000


def test_post_paid_can_be_turned_on_and_off(client):
    """``PUT post-paid`` stops deduction; turned off again, the earlier balance returns."""
    client.control("PUT", "/post-paid", json={"post_paid": True})
    remaining = client.bulk((NUMBER, "Hello")).json()["RemainingBalance"]
    client.control("PUT", "/post-paid", json={"post_paid": False})
    assert (remaining, client.balance().json()) == (1000000, {"Balance": 1000})
    assert client.control("PUT", "/post-paid", json={"post_paid": 1}).status_code == 400


def test_messages_come_page_by_page(client):
    """``GET messages`` returns lines of the witness, oldest first, from ``offset``, at most ``limit``."""
    event_id = client.bulk(*((NUMBER, f"text {number}") for number in range(5))).json()["EventId"]
    body = client.control("GET", "/messages", params={"limit": 2, "offset": 1}).json()
    assert (body["total"], [line["content"] for line in body["messages"]]) == (5, ["text 1", "text 2"])
    assert (event_id, 1, 1, NUMBER, "bulk") == tuple(
        body["messages"][0][name] for name in ("event_id", "request", "index", "destination", "kind")
    )
    assert len(client.control("GET", "/messages").json()["messages"]) == 5


@pytest.mark.parametrize("query", ["limit=-1", "offset=-1", "limit=x", "limit=10001"])
def test_a_page_must_be_in_range(client, query):
    """A limit or offset out of range is refused."""
    assert client.control("GET", f"/messages?{query}").status_code == 422


def test_reset_starts_over(start, tmp_path):
    """``POST reset`` removes messages, requests and faults and restores the account; the witness stays."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log, balance=7)
    before = client.bulk((NUMBER, "Hello")).json()["EventId"]
    client.control("PUT", "/post-paid", json={"post_paid": True})
    client.control("POST", "/faults", json=[{"kind": "drop_before"}])
    body = client.control("POST", "/reset").json()
    assert body == {"balance": 7, "post_paid": False, "requests": 0, "accepted_messages": 0, "faults": []}
    assert before < client.bulk((NUMBER, "Hello")).json()["EventId"]
    assert len(log.read_bytes().splitlines()) == 2


def test_python_sees_every_request(client, state, headers):
    """``state.requests`` has each request to the service with its response, and no control requests."""
    client.bulk((NUMBER, "One"), ("27991234567", "Two"), base="/api/v1")
    headers["Authorization"] = "Bearer wrong"
    client.balance(headers=headers)
    client.control("GET", "/state")
    assert [
        (
            request.number,
            request.operation,
            request.path,
            request.status,
            request.error,
            request.fault,
            request.submitted,
            request.accepted,
        )
        for request in state.requests
    ] == [
        (1, "bulk", "/api/v1/bulkmessages", 200, None, "none", 2, 1),
        (2, "balance", "/v1/Balance", 401, "AuthenticationToken.Invalid", "none", 0, 0),
    ]


def test_the_repr_of_records_has_no_number_or_text(client, state):
    """Records may appear in the output of a failing test, so their repr leaves numbers and texts out."""
    client.bulk((NUMBER, "Hello"), options={"CampaignName": "Spring"})
    shown = repr(state.requests) + repr(state.accepted) + repr(state.config)
    assert not [secret for secret in (NUMBER, "Hello", "Spring", "token-of-these-tests") if secret in shown]


@pytest.mark.parametrize("headers", OTHERS, ids=lambda headers: "=".join(*headers.items()))
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_another_sites_page_changes_nothing(client, method, path, body, headers):
    """A change that a browser requests for a page of another site, or of another port of this machine, is refused."""
    answer = client.call(method, path, base="/_sandbox", headers=headers, data=body)
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (403, "OtherSite")
    assert (client.sandbox.state.balance, client.sandbox.state.post_paid) == (1000, False)


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_the_own_page_and_other_clients_may_change_the_sandbox(client, method, path, body):
    """The sandbox's own page, an address that a person typed, and a command like curl may make changes."""
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin", "Origin": client.root}):
        assert client.call(method, path, base="/_sandbox", headers=headers, data=body).status_code == 200


def test_other_sites_are_kept_from_reading_by_the_browser(client):
    """A read gets its response: the browser itself hides that from a page of another site."""
    answer = client.call("GET", "/state", base="/_sandbox", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
