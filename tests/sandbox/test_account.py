from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

NUMBER = "27821234567"


def test_a_balance_that_does_not_suffice_refuses_the_whole_request(start):
    """Credit for one of two messages gets 403: neither is accepted. A balance may be spent to the last credit."""
    client = start(balance=1)
    response = client.bulk((NUMBER, "One"), (NUMBER, "Two"))
    assert (response.status_code, response.json()["errors"][0]["errorCode"]) == (403, "InsufficientCredits")
    assert (client.sandbox.state.accepted, client.balance().json()) == ([], {"Balance": 1})
    assert client.bulk((NUMBER, "One")).json()["RemainingBalance"] == 0


def test_a_post_paid_account_always_reports_a_million(start):
    """Nothing is deducted from it, also without credit or by somebody else; then pre-paid resumes."""
    client = start(post_paid=True, balance=0)
    state = client.sandbox.state
    state.set_faults([{"kind": "spend", "amount": 7, "on": "balance"}])
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 1000000
    assert (client.balance().json(), state.balance) == ({"Balance": 1000000}, 1000000)
    state.post_paid = False
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
