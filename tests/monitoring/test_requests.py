from __future__ import annotations

import pytest
from support.sending import people
from support.told import tell

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.transitions import supersede
from airflow_provider_sms.monitoring.campaigns import list_campaigns
from airflow_provider_sms.monitoring.requests import requests, texted_twice, unknown_requests


def number(ledger):
    return list_campaigns(ledger, may_see=lambda _: True, limit=1).campaigns[0].id


def test_requests_come_newest_first_in_pages_with_whole_event_ids(store, ledger):
    """An event id has 64 bits, and all of its digits are kept."""
    ids = tell(store, claims=[(2, "accepted"), (3, "unknown"), (4, "accepted")])
    first = requests(ledger, number(ledger), limit=2)
    rest = requests(ledger, number(ledger), limit=2, before=first[-1].id)
    assert [line.id for line in [*first, *rest]] == ids[::-1]
    assert first[0].event_id == 2**62 + ids[2]
    assert (rest[0].submitted, rest[0].cost, rest[0].try_number) == (2, "3.0", 1)
    assert [line.id for line in requests(ledger, number(ledger), state="unknown")] == [ids[1]]


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
    assert [line.id for line in requests(ledger, number(ledger), state=state)] == found
    assert [line.id for line in requests(ledger, number(ledger), state=state, limit=1)] == found[:1]


def test_unknown_requests_have_their_number_of_people(store, ledger):
    """Lapsed claims are among them; requests that may still be under way are not."""
    (early,) = tell(store, claims=[(5, "claimed")], clock=lambda: 1_000.0)
    (lost, _) = tell(store, try_number=2, claims=[(3, "unknown"), (2, "claimed")], first=10)
    found = unknown_requests(ledger, number(ledger))
    assert [(each.id, each.people) for each in found] == [(early, 5), (lost, 3)]
    assert found[0].reason.startswith("no outcome was recorded")
    assert found[1].reason == "the answer was lost"


def test_unknown_requests_have_what_the_balance_tells_of_them(store, ledger):
    """It is shown where a person decides; most requests were never judged."""
    first, _ = tell(store, claims=[(3, "unknown"), (2, "unknown")])
    evidence = KeptEvidence("not_charged", f"Request {first} was not charged for.", 1_700_000_000.0)
    note_evidence(store, "spring", {first: evidence})
    assert [each.evidence for each in unknown_requests(ledger, number(ledger))] == [evidence, None]


def test_requests_that_texted_people_twice_are_reported(enter, store, open_reader):
    """A request that was accepted after a person had freed its messages is named, with the one that has them."""
    ledger = enter()
    (first,) = claim(ledger, people(2))
    ledger.commit(outcomes=[Outcome(first, UNKNOWN)])
    resolve(store, first, NOT_SENT, "ann")
    (second,) = claim(ledger, people(2))
    ledger.commit(outcomes=[Outcome(second, ACCEPTED)])
    assert texted_twice(open_reader(), 1) == []
    ledger.commit(outcomes=[Outcome(first, ACCEPTED)])
    assert texted_twice(open_reader(), 1) == [
        f"Request {first}: texted twice: 2 of its messages went out with request {second}, too."
    ]


def claim(ledger, messages):
    chunk = Chunk([m.key for m in messages], [m.destination for m in messages])
    return [each.request_id for each in ledger.commit(chunks=[chunk], claim_seconds=60.0)]
