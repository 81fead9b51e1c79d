from __future__ import annotations

import pytest
from support.told import tell

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.requests import newest_requests, unknown_requests
from airflow_provider_sms.ledger.transitions import supersede
from airflow_provider_sms.monitoring.campaigns import list_campaigns


@pytest.fixture
def ledger(store, open_reader):
    return open_reader()


def number(ledger):
    return list_campaigns(ledger, may_see=lambda _: True, limit=1).campaigns[0].id


def test_requests_come_newest_first_in_pages_with_whole_event_ids(store, ledger):
    """An event id has 64 bits, and all of its digits are kept."""
    ids = tell(store, claims=[(2, "accepted"), (3, "unknown"), (4, "accepted")])
    first = newest_requests(ledger, number(ledger), limit=2)
    rest = newest_requests(ledger, number(ledger), limit=2, before=first[-1].request_id)
    assert [line.request_id for line in [*first, *rest]] == ids[::-1]
    assert first[0].event_id == 2**62 + ids[2]
    assert (rest[0].submitted, rest[0].cost, rest[0].try_number) == (2, "3.0", 1)
    assert [line.request_id for line in newest_requests(ledger, number(ledger), state="unknown")] == [ids[1]]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (None, [6, 5, 4, 3, 2, 1]),
        ("accepted", [2]),
        ("claimed", [5]),
        ("not_sent", [4]),
        ("superseded", [6]),
        ("unknown", [3, 1]),
        ("no such state", []),
    ],
)
def test_requests_are_found_by_the_state_that_they_are_in(store, ledger, state, found):
    """A request past its deadline is unknown and not claimed, whatever state is stored."""
    tell(store, claims=[(1, "claimed")], clock=lambda: 1_000.0)
    claims = [(1, "accepted"), (1, "unknown"), (1, "not_sent"), (1, "claimed"), (1, "unknown")]
    ids = tell(store, try_number=2, claims=claims, first=10)
    with store.write(1) as connection:
        supersede(connection, 1, ids[-1:], store.clock())
    assert [line.request_id for line in newest_requests(ledger, number(ledger), state=state)] == found
    assert [line.request_id for line in newest_requests(ledger, number(ledger), state=state, limit=1)] == found[:1]


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
