from __future__ import annotations

import contextlib
from decimal import Decimal

import pytest
import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.errors import RefusalError
from airflow_provider_sms.sandbox.request_bodies import SendRequest
from airflow_provider_sms.sandbox.state import SandboxState

NUMBER = "27821234567"


class Clock:
    """A clock that stands still until a test sets it."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def timed(start, clock):
    """Return a client of a sandbox with this test's clock, and a balance of 10."""
    return start(clock=clock, balance=10)


LATE = [
    {"kind": "late_charge"},
    {"kind": "drop_after"},
    {"kind": "truncated"},
    {"kind": "foreign"},
    {"kind": "delay"},
    {"kind": "status", "status": 502, "accepted": True},
]


@pytest.mark.parametrize("fault", LATE, ids=lambda fault: fault["kind"])
def test_a_late_charge_falls_due_after_its_seconds(timed, clock, fault):
    """With ``charge_after``, the message is accepted at once, and the balance falls once, when the seconds are over."""
    state = timed.sandbox.state
    state.set_faults([{**fault, "charge_after": 5}])
    with contextlib.suppress(requests.RequestException):
        timed.bulk((NUMBER, "Hello"))
    assert (state.accepted_messages, timed.balance().json()) == ([(NUMBER, "Hello")], {"Balance": 10})
    clock.now += 4.9
    assert state.balance == 10
    clock.now += 0.1
    assert (timed.balance().json(), state.balance) == ({"Balance": 9}, 9)
    clock.now += 100
    assert state.balance == 9


def test_the_answer_has_the_balance_before_its_late_charge(timed, clock):
    """The response has the balance of its own moment; a later response also misses what fell due meanwhile."""
    timed.sandbox.state.set_faults([{"kind": "late_charge", "charge_after": 5}])
    late = timed.bulk((NUMBER, "One")).json()
    early = timed.bulk((NUMBER, "Two")).json()
    clock.now += 5
    last = timed.bulk((NUMBER, "Three")).json()
    assert [(answer["Cost"], answer["RemainingBalance"]) for answer in (late, early, last)] == [(1, 10), (1, 9), (1, 7)]


def test_late_charges_fall_due_in_the_order_of_their_time(timed, clock):
    """A charge that is due earlier is deducted earlier, whichever request came first."""
    state = timed.sandbox.state
    state.set_faults([{"kind": "late_charge", "charge_after": 20}, {"kind": "late_charge", "charge_after": 5}])
    timed.bulk((NUMBER, "a" * 161))
    timed.bulk((NUMBER, "Hello"))
    balances = []
    for clock.now in (100, 105, 119, 120):
        balances.append(state.balance)
    assert balances == [10, 9, 9, 7]


def test_credits_that_are_still_to_be_charged_are_not_free(timed, clock):
    """Neither a request, nor somebody else, nor a new balance can use what is still to be charged."""
    state = timed.sandbox.state
    state.set_faults([{"kind": "late_charge", "charge_after": 5}])
    timed.bulk(*((NUMBER, f"text {number}") for number in range(8)))
    assert timed.bulk(*((NUMBER, f"text {number}") for number in range(3))).status_code == 403
    with pytest.raises(RefusalError, match="InsufficientCredits"):
        state.spend(3)
    with pytest.raises(ValueError, match=r"the credits that are still to be charged: 8$"):
        state.set_balance(7.5)
    assert timed.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 9
    state.spend(1)
    state.set_faults([{"kind": "spend", "amount": 3, "on": "balance"}])
    assert timed.balance().json() == {"Balance": 8}
    clock.now += 5
    assert state.balance == 0
    state.set_balance(7.5)
    assert state.balance == 7.5


def test_a_reset_forgets_late_charges(timed, clock):
    """After a reset, the balance is the initial one, and no earlier charge falls due."""
    state = timed.sandbox.state
    state.set_faults([{"kind": "late_charge", "charge_after": 5}])
    timed.bulk((NUMBER, "Hello"))
    state.reset()
    clock.now += 5
    assert state.balance == 10


def test_a_late_charge_changes_the_snapshot(timed, clock):
    """An open page shows the balance once a late charge is due, although nothing else happened."""
    state = timed.sandbox.state
    state.set_faults([{"kind": "late_charge", "charge_after": 5}])
    timed.bulk((NUMBER, "Hello"))
    before = state.snapshot()
    clock.now += 5
    assert before != state.snapshot() == state.snapshot()


def test_a_post_paid_account_has_no_late_charges(start, clock):
    """What was sent on a post-paid account is not charged later, even if the account is pre-paid by then."""
    client = start(clock=clock, balance=10, post_paid=True)
    client.sandbox.state.set_faults([{"kind": "late_charge", "charge_after": 5}])
    assert client.bulk((NUMBER, "Hello")).json()["RemainingBalance"] == 1000000
    client.sandbox.state.set_post_paid(False)
    clock.now += 5
    assert client.sandbox.state.balance == 10


@pytest.mark.parametrize("after", [0, 5])
@pytest.mark.parametrize("is_due", [False, True])
def test_a_request_without_a_witness_is_not_charged(clock, monkeypatch, tmp_path, after, is_due):
    """When the witness cannot be written, the charge is undone, whether or not it fell due meanwhile."""
    state = SandboxState(SandboxConfig(balance=Decimal("10.35"), log=tmp_path / "witness.jsonl", clock=clock))
    state.accept(SendRequest("bulk", ((NUMBER, "First"),)), 1, 3)

    def fail(_entries):
        clock.now += 50 * is_due
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state._witness, "append", fail)
    with contextlib.closing(state), pytest.raises(RefusalError, match="Witness"):
        state.accept(SendRequest("bulk", ((NUMBER, "Hello"),)), 2, after)
    clock.now += 50
    assert state.balance == Decimal("9.35")
