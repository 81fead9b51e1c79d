from __future__ import annotations

from contextlib import closing

import pytest
from support.reported import counts

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.requests import unknown_requests

PREFIXES = {"276": 0.5, "27": 1, "": 3}
LOST = {"kind": "drop_after"}


@pytest.fixture
def paid(sandbox):
    """Return the credits that the account was charged since the test began."""
    before = sandbox.state.balance
    return lambda: float(before - sandbox.state.balance)


@pytest.mark.parametrize("second", ["drop_after", "drop_before"])
def test_one_lost_request_after_another_with_prices_by_prefix(send, people, sandbox, paid, short_claims, second):
    """A charge that the balance has shown, with nothing else open, is that request's; what falls later is another's."""
    sandbox.state.set_faults([*[{"kind": "none"}] * 4, LOST, {"kind": "none"}, {"kind": second}])
    ran = send(people(1200), on_unknown="reconcile", cost_per_part=PREFIXES)
    assert (ran.state, ran.summary["accepted"], ran.summary["reconciled"]) == ("success", 1200, 200)
    assert ran.summary["cost"] == paid()


@pytest.mark.parametrize("prices", [PREFIXES, {"27": 1}], ids=["by prefix", "one price"])
def test_a_cost_that_is_not_known_is_the_least(send, people, sandbox, paid, prices):
    """The log says so, and of how many requests; once a person says it was sent, the evidence counts."""
    sandbox.state.set_faults([{"kind": "none"}, LOST])
    ran = send(people(400), campaign="spring", cost_per_part=prices)
    assert (ran.state, ran.summary["unknown"]) == ("failed", 100)
    assert ran.summary["cost"] == 300.0
    assert "4 requests, 300 parts, cost at least 300.0, and nothing is known of 1 request" in ran.log
    with closing(open_ledger(None)) as store:
        known = counts(store, "spring")
        assert (known.cost, known.of_unknown_cost) == (300, 1)
        (lost,) = unknown_requests(store)
        resolve(store, lost.request_id, "accepted", "ann")
        known = counts(store, "spring")
        assert (known.cost, known.of_unknown_cost) == (paid(), 0)
