from __future__ import annotations

import pytest
from sqlalchemy import text
from support.sending import chunk_of, people

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.forget import forget_number
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.requests import texted

PERSON, *OTHERS = people(4)
NUMBER = PERSON.destination


def claim(ledger, messages):
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=60.0)[0].request_id


def send(ledger, people, state=ACCEPTED):
    request_id = claim(ledger, people)
    ledger.commit(outcomes=[Outcome(request_id, state)])
    return request_id


@pytest.fixture
def forget(store):
    """Forget the person, and return what was found and what was removed."""

    def forget():
        found = texted(store, NUMBER)
        messages = sum(row.messages for row in found)
        return messages, forget_number(store, NUMBER, {row.campaign for row in found})

    return forget


@pytest.fixture
def rows(store):
    def rows(query):
        with store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    return rows


def test_a_number_goes_out_of_messages(store, enter, forget, rows):
    """Everybody else stays as they are, and a second look finds nothing."""
    send(enter(), [PERSON, *OTHERS])
    send(enter(campaign="d"), [PERSON])
    assert forget() == (2, 2)
    others = [(int(m.destination),) for m in OTHERS]
    assert rows("SELECT destination FROM sms_message WHERE destination > 0 ORDER BY destination") == others
    assert texted(store, NUMBER) == []


@pytest.mark.parametrize("state", [None, ACCEPTED, UNKNOWN])
def test_a_message_stays_claimed_without_its_number(enter, forget, state):
    """The key alone keeps the message from going out twice, whatever its request's state."""
    ledger = enter()
    request_id = send(ledger, [PERSON], state) if state else claim(ledger, [PERSON])
    forget()
    again = enter(2)
    assert claim(again, [PERSON]) is None
    assert again.holders([PERSON.key])[PERSON.key].request_id == request_id


def test_a_request_that_is_open_gets_its_outcome_as_before(enter, forget):
    """Its process records it by the request's number; released, the message is free, and no row is left of it."""
    ledger = enter()
    first, second = claim(ledger, [PERSON]), claim(ledger, OTHERS)
    forget()
    ledger.commit(outcomes=[Outcome(first, NOT_SENT), Outcome(second, ACCEPTED)])
    assert ledger.holders([PERSON.key]) == {}


@pytest.mark.parametrize("is_superseded", [True, False])
def test_a_number_goes_out_of_what_was_superseded_or_decided(store, enter, forget, rows, is_superseded):
    """Those messages are on record with their numbers; once forgotten, they are still free, and return as before."""
    ledger = enter()
    lost = send(ledger, [PERSON, *OTHERS], UNKNOWN)
    if is_superseded:
        ledger.supersede([lost])
    else:
        resolve(store, lost, NOT_SENT, "ann")
    again = send(enter(2), [PERSON])
    assert forget() == (2, 2)
    assert rows("SELECT request_id FROM sms_superseded WHERE destination = 0") == [(lost,)]
    assert rows("SELECT destination, request_id FROM sms_message") == [(0, again)]
    ledger.commit(outcomes=[Outcome(lost, ACCEPTED)])
    assert ledger.holders([PERSON.key, OTHERS[0].key])[OTHERS[0].key].request_id == lost
    assert texted(store, NUMBER) == []


def test_a_retry_of_the_same_table_finds_nothing_changed(enter, forget):
    """What an earlier attempt holds is compared by key; a forgotten number equals that of no row."""
    send(enter(), [PERSON, *OTHERS])
    forget()
    ((_, destinations, _),) = enter(2).earlier()
    assert sorted(destinations.tolist()) == [0, *(int(m.destination) for m in OTHERS)]
