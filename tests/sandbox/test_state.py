from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

NUMBER = "27821234567"


def test_the_balance_falls_by_the_cost(client):
    """A pre-paid balance falls by exactly the cost of a send."""
    before = client.balance().json()
    client.bulk((NUMBER, "a" * 161))
    assert (before, client.balance().json()) == ({"Balance": 1000}, {"Balance": 998})


def test_a_balance_that_does_not_suffice_refuses_the_whole_request(start):
    """Credit for one of two messages gets 403: neither is accepted, and the balance stays."""
    client = start(balance=1)
    answer = client.bulk((NUMBER, "One"), (NUMBER, "Two"))
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (403, "InsufficientCredits")
    assert client.sandbox.state.accepted_messages == []
    assert client.balance().json() == {"Balance": 1}


def test_a_balance_may_be_spent_to_the_last_credit(start):
    """A balance equal to the cost is enough."""
    client = start(balance=Decimal("0.35"))
    assert client.bulk(("27601234567", "Hello")).json()["RemainingBalance"] == 0


def test_a_post_paid_account_always_reports_a_million(start):
    """Nothing is deducted from a post-paid account, even one without credit: it reports 1000000 before and after."""
    client = start(post_paid=True, balance=0)
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 1000000
    assert client.balance().json() == {"Balance": 1000000}
    assert client.sandbox.state.balance == 1000000


def test_parallel_requests_never_overspend(start):
    """Of sixteen requests at once with credit for five, exactly five are accepted."""
    client = start(balance=5)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda n: client.bulk((NUMBER, f"text {n}")).status_code, range(16)))
    assert sorted(statuses) == [200] * 5 + [403] * 11
    assert (client.sandbox.state.balance, len(client.sandbox.state.accepted_messages)) == (0, 5)


def test_the_responses_to_parallel_requests_form_one_chain(start):
    """Each response has the balance right after its own charge: in the order of the event ids, none is left out."""
    client = start(balance=Decimal("60.05"))
    numbers = ("27821234567", "27601234567", "27711234567", "447700900123")

    def send(place):
        return client.bulk(*((numbers[(place + step) % 4], f"text {place}") for step in range(1 + place % 3))).json()

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(send, range(24)), key=lambda answer: answer["EventId"])
    balance = Decimal("60.05")
    for answer in answers:
        balance -= Decimal(str(answer["Cost"]))
        assert Decimal(str(answer["RemainingBalance"])) == balance
    assert client.sandbox.state.balance == balance
    order = [message.event_id for message in client.sandbox.state.accepted]
    assert order == sorted(order)


def test_snapshots_differ_exactly_when_something_happened(client, state):
    """Every event changes the snapshot, which stays equal without one."""
    steps = [
        lambda: client.bulk((NUMBER, "Hello")),
        lambda: state.set_balance(5),
        lambda: state.spend(0.5),
        lambda: state.top_up(0.5),
        lambda: state.set_post_paid(True),
        lambda: state.set_faults([{"kind": "none", "times": 2}]),
        lambda: state.faults.take("send"),
        lambda: state.faults.take("send"),
        lambda: state.set_faults([{"kind": "none", "persistent": True}]),
        state.reset,
    ]
    snapshots = [state.snapshot()]
    for step in steps:
        step()
        snapshots.append(state.snapshot())
        assert snapshots[-1] == state.snapshot()
    assert not [pair for pair in itertools.pairwise(snapshots) if pair[0] == pair[1]]


def test_using_a_persistent_fault_does_not_change_the_snapshot(state):
    """A persistent fault is the same before and after a request meets it."""
    state.set_faults([{"kind": "none", "persistent": True}])
    before = state.snapshot()
    state.faults.take("send")
    assert before == state.snapshot()
