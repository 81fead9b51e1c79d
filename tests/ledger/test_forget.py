from __future__ import annotations

import pytest
from support.sending import claim, close, people

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.forget import forget_number
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.requests import texted

PERSON, *OTHERS = people(4)
NUMBER = PERSON.destination


def send(ledger, people, state=ACCEPTED):
    request_id = claim(ledger, people)
    close(ledger, request_id, state)
    return request_id


@pytest.fixture
def forget(store):
    """Forget the person, and return what was found and what was removed."""

    def forget():
        found = texted(store, NUMBER)
        messages = sum(row.messages for row in found)
        return messages, forget_number(store, NUMBER, {row.campaign for row in found})

    return forget


def test_a_number_goes_out_of_messages(store, enter, forget, rows):
    """Everybody else stays as they are, and a second look finds nothing."""
    send(enter(), [PERSON, *OTHERS])
    send(enter(campaign="d"), [PERSON])
    assert forget() == (2, 2)
    others = [(int(m.destination),) for m in OTHERS]
    assert rows("SELECT destination FROM sms_message WHERE destination > 0 ORDER BY destination") == others
    assert texted(store, NUMBER) == []


@pytest.mark.parametrize("state", [None, ACCEPTED, UNKNOWN, NOT_SENT])
def test_a_message_stays_claimed_without_its_number(enter, forget, state):
    """The key alone keeps it from going out twice; an outcome that comes later is recorded and releases as before."""
    ledger = enter()
    request_id = send(ledger, [PERSON], state) if state in (ACCEPTED, UNKNOWN) else claim(ledger, [PERSON])
    forget()
    assert claim(enter(2), [PERSON]) is None
    if state == NOT_SENT:
        close(ledger, request_id, NOT_SENT)
    held = ledger.holders([PERSON.key])
    assert [each.request_id for each in held.values()] == ([] if state == NOT_SENT else [request_id])


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
    close(ledger, lost)
    assert ledger.holders([PERSON.key, OTHERS[0].key])[OTHERS[0].key].request_id == lost
    assert texted(store, NUMBER) == []


def test_a_retry_of_the_same_table_finds_nothing_changed(enter, forget):
    """What an earlier attempt holds is compared by key; a forgotten number equals that of no row."""
    send(enter(), [PERSON, *OTHERS])
    forget()
    ((_, destinations, _),) = enter(2).earlier()
    assert sorted(destinations.tolist()) == [0, *(int(m.destination) for m in OTHERS)]
