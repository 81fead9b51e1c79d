from __future__ import annotations

import pytest
from support.keys import request_of, sent_again
from support.sending import claimant, people

from airflow_provider_sms.ledger.backend import PATIENCE_SECONDS
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, UNKNOWN, Outcome

CLAIM_SECONDS = 60.0
PERSON = people(1)[0]


def claim(ledger, messages):
    """Claim messages in one request, and return its id."""
    chunk = request_of([m.key for m in messages], [m.destination for m in messages])
    return ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)[0].request_id


def held(ledger, message=PERSON):
    """Return who holds a message, in the eyes of an attempt."""
    return ledger.holders([message.key])[message.key]


def test_the_holder_is_the_request_that_claimed_the_message(enter):
    """A message is found under its own request; one that nobody has claimed is missing."""
    ledger, messages = enter(), people(3)
    first, second = claim(ledger, messages[:1]), claim(ledger, messages[1:2])
    found = ledger.holders([m.key for m in messages])
    assert {key: holder.request_id for key, holder in found.items()} == {
        messages[0].key: first,
        messages[1].key: second,
    }


def test_many_keys_are_looked_up_in_pieces(enter):
    """A look-up is not bounded by the number of parameters of a statement."""
    ledger = enter()
    messages = people(2500)
    claim(ledger, messages[::2])
    assert {m.key for m in messages[::2]} == ledger.holders([m.key for m in messages]).keys()


def test_holders_say_whose_a_claim_is(enter):
    """A try tells its own claims from those of others."""
    first, second = enter(1), enter(2)
    claim(first, people(1))
    assert (held(first).mine, held(second).mine) == (True, False)


def test_a_claim_is_its_makers_until_its_deadline(enter, clock):
    """Until the deadline a process may still live; past it the request is unknown, whoever made it."""
    claim(enter(1), people(1))
    other, claimed_at = enter(2), clock.now
    clock.now = claimed_at + CLAIM_SECONDS - 1
    assert held(other).state == CLAIMED
    clock.now = claimed_at + CLAIM_SECONDS + 1
    assert held(other).state == UNKNOWN


def test_another_attempts_outcome_is_awaited_for_a_bounded_time(enter, clock):
    """Its process may be cut off from the ledger; of one's own requests, one knows the outcome first."""
    first, second = enter(1), enter(1)
    claim(first, people(1))
    began = clock.now
    found = []
    until = CLAIM_SECONDS + PATIENCE_SECONDS
    for after in (0.0, until - 1, until + 1):
        clock.now = began + after
        found.append((held(first).awaited, held(second).awaited))
    assert found == [(False, True), (False, True), (False, False)]


@pytest.mark.parametrize("state", [ACCEPTED, UNKNOWN])
def test_a_recorded_outcome_is_not_awaited(enter, state):
    """No later attempt need look again."""
    first, second = enter(1), enter(1)
    request_id = claim(first, people(1))
    first.commit(outcomes=[Outcome(request_id, state)])
    assert (held(second).state, held(second).awaited) == (state, False)


def test_a_campaign_need_not_exist(store, enter):
    """A dry run looks without a trace; where nothing was claimed yet, nothing need be looked up."""
    enter()
    for name in ("c", "never seen"):
        reader = CampaignReader(store, name, claimant())
        assert (reader.is_used(), reader.holders([PERSON.key]), sent_again(reader, [PERSON])) == (False, {}, set())
    claim(enter(), people(1))
    reader = CampaignReader(store, "c", claimant())
    assert (reader.is_used(), held(reader).mine) == (True, False)
