from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
import requests

NUMBER = "27821234567"
LATE = [
    {"kind": "none"},
    {"kind": "drop_after"},
    {"kind": "truncated"},
    {"kind": "delay"},
    {"kind": "status", "status": 502, "accepted": True},
]


@pytest.fixture
def timed(start, clock):
    """Return a client of a sandbox with this test's clock, and a balance of 10."""
    return start(clock=clock, balance=10)


def test_a_balance_that_does_not_suffice_refuses_the_whole_request(start):
    """Credit for one of two messages gets 403: neither is accepted. A balance may be spent to the last credit."""
    client = start(balance=1)
    response = client.bulk((NUMBER, "One"), (NUMBER, "Two"))
    assert (response.status_code, response.json()["errors"][0]["errorCode"]) == (403, "InsufficientCredits")
    assert (client.sandbox.state.accepted, client.balance().json()) == ([], {"Balance": 1})
    assert client.bulk((NUMBER, "One")).json()["RemainingBalance"] == 0


def test_a_post_paid_account_always_reports_a_million(start):
    """Nothing is deducted from it, also without credit, later or by somebody else; then pre-paid resumes."""
    client = start(post_paid=True, balance=0)
    state = client.sandbox.state
    state.set_faults([{"kind": "none", "charge_after": 1e-9}, {"kind": "spend", "amount": 7, "on": "balance"}])
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 1000000
    assert (client.balance().json(), state.balance) == ({"Balance": 1000000}, 1000000)
    state.set_post_paid(False)
    assert state.balance == 0
    # Beyond 64 bits it is stated rounded: no balance keeps a request from a response.
    for balance in (1e20, 1e300):
        state.set_balance(balance)
        assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == balance


def test_the_responses_to_parallel_requests_form_one_chain(start):
    """Each response has the balance right after its own charge, in the order of the event ids; none overspends."""
    client = start(balance=Decimal("30.05"))
    numbers = ("27821234567", "27601234567", "27711234567", "447700900123")

    def send(place):
        return client.bulk(*((numbers[(place + step) % 4], f"text {place}") for step in range(1 + place % 3))).json()

    with ThreadPoolExecutor(8) as pool:
        served = [response for response in pool.map(send, range(40)) if "EventId" in response]
    balance = Decimal("30.05")
    for response in sorted(served, key=lambda response: response["EventId"]):
        balance -= Decimal(str(response["Cost"]))
        assert Decimal(str(response["RemainingBalance"])) == balance >= 0
    assert (client.sandbox.state.balance, len(served) < 40) == (balance, True)
    order = [message.event_id for message in client.sandbox.state.accepted]
    assert order == sorted(order)


@pytest.mark.parametrize("fault", LATE, ids=lambda fault: fault["kind"])
def test_a_late_charge_falls_due_after_its_seconds(timed, clock, fault):
    """Each message is accepted at once, and charged once: what is due earlier earlier; a reset forgets all."""
    state = timed.sandbox.state
    state.set_faults([{**fault, "charge_after": seconds} for seconds in (20, 5)])
    for text in ("a" * 161, "Hello"):
        with contextlib.suppress(requests.RequestException):
            timed.bulk((NUMBER, text))
    assert state.accepted_messages == [(NUMBER, "a" * 161), (NUMBER, "Hello")]
    balances = []
    for clock.now in (100, 104.9, 105, 119, 120, 200):
        balances.append(state.balance)
    assert balances == [10, 10, 9, 9, 7, 7]
    assert timed.balance().json() == {"Balance": 7}
    state.set_faults([{**fault, "charge_after": 5}])
    with contextlib.suppress(requests.RequestException):
        timed.bulk((NUMBER, "Hello"))
    state.reset()
    clock.now += 30
    assert state.balance == 10


def test_credits_that_are_still_to_be_charged_are_not_free(timed, clock):
    """Neither a request nor somebody else can use what is still to be charged."""
    state = timed.sandbox.state
    state.set_faults([{"kind": "none", "charge_after": 5}, {"kind": "spend", "amount": 3, "on": "balance"}])
    timed.bulk(*((NUMBER, f"text {number}") for number in range(8)))
    assert timed.bulk(*((NUMBER, f"text {number}") for number in range(3))).status_code == 403
    assert timed.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 9
    assert timed.balance().json() == {"Balance": 8}
    clock.now += 5
    assert state.balance == 0
