from __future__ import annotations

import pytest
from support.told import tell

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.requests import named_requests, unknown_requests


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()


def test_an_event_id_has_all_of_its_digits(store):
    """It has 64 bits."""
    ids = tell(store, claims=[(2, "accepted"), (3, "unknown")])
    first, second = named_requests(store, ids)
    assert first.event_id == 2**62 + ids[0]
    assert (second.submitted, second.cost, second.try_number) == (3, None, 1)


def test_a_request_has_the_state_that_it_is_in(store):
    """A request past its deadline is unknown and not claimed, whatever state is stored."""
    (lapsed,) = tell(store, claims=[(1, "claimed")], clock=lambda: 1_000.0)
    ids = tell(store, try_number=2, claims=[(1, "accepted"), (1, "not_sent"), (1, "claimed")], first=10)
    assert [each.state for each in named_requests(store, [lapsed, *ids])] == [
        "unknown",
        "accepted",
        "not_sent",
        "claimed",
    ]


def test_unknown_requests_have_their_number_of_people(store, ledger):
    """Lapsed claims are among them; requests that may still be under way are not."""
    (early,) = tell(store, claims=[(5, "claimed")], clock=lambda: 1_000.0)
    (lost, _) = tell(store, try_number=2, claims=[(3, "unknown"), (2, "claimed")], first=10)
    found = unknown_requests(ledger, "spring")
    assert [(each.request_id, each.messages) for each in found] == [(early, 5), (lost, 3)]
    assert found[0].reason.startswith("no outcome was recorded")
    assert found[1].reason == "the answer was lost"


def test_unknown_requests_have_what_the_balance_tells_of_them(store, ledger):
    """It is shown where a person decides; most requests were never judged."""
    first, _ = tell(store, claims=[(3, "unknown"), (2, "unknown")])
    evidence = KeptEvidence("not_charged", f"Request {first} was not charged for.", 1_700_000_000.0)
    note_evidence(store, "spring", {first: evidence})
    assert [each.evidence for each in unknown_requests(ledger, "spring")] == [evidence, None]
