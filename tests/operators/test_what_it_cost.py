from __future__ import annotations

from contextlib import closing

import pytest
from support.reported import counts

from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.requests import unknown_requests


@pytest.mark.parametrize("prices", [{"276": 0.5, "27": 1, "": 3}, {"27": 1}], ids=["by prefix", "one price"])
def test_a_cost_that_is_not_known_is_the_least(send, people, sandbox, prices):
    """The log says so, and of how many requests; once a person says it was sent, the evidence counts."""
    balance = sandbox.state.balance
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    ran = send(people(400), campaign="spring", cost_per_part=prices)
    assert (ran.state, ran.summary["unknown"]) == ("failed", 100)
    assert ran.summary["cost"] == 300.0
    assert "4 requests, 300 parts, cost at least 300.0, and what 1 request cost is not known" in ran.log
    with closing(open_ledger(None)) as store:
        known = counts(store, "spring")
        assert (known.cost, known.of_unknown_cost) == (300, 1)
        (lost,) = unknown_requests(store)
        resolve(store, lost.request_id, "accepted", "ann")
        known = counts(store, "spring")
        assert (known.cost, known.of_unknown_cost) == (balance - sandbox.state.balance, 0)
