from __future__ import annotations

import pytest
from support.keys import sent_again
from support.sending import claim, claimant, close, people

from airflow_provider_sms.ledger.backend import PATIENCE_SECONDS
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, SUPERSEDED, UNKNOWN

CLAIM_SECONDS = 60.0
PERSON = people(1)[0]


def held(ledger, message=PERSON):
    """Return who holds a message, in the eyes of an attempt."""
    return ledger.holders([message.key])[message.key]


def test_many_keys_are_looked_up_in_pieces(enter):
    """A look-up is not bounded by the number of parameters of a statement."""
    ledger = enter()
    messages = people(2500)
    claim(ledger, messages[::2])
    assert {m.key for m in messages[::2]} == ledger.holders([m.key for m in messages]).keys()


def test_a_claim_is_its_makers_until_its_deadline_and_then_awaited_for_a_bounded_time(enter, clock):
    """Past it the request is unknown; its process may be cut off from the ledger, and knows its own outcome first."""
    first, second = enter(1), enter(1)
    claim(first, [PERSON])
    began, found = clock.now, []
    for after in (
        CLAIM_SECONDS - 1,
        CLAIM_SECONDS + 1,
        CLAIM_SECONDS + PATIENCE_SECONDS - 1,
        CLAIM_SECONDS + PATIENCE_SECONDS + 1,
    ):
        clock.now = began + after
        found.append((held(second).state, held(second).awaited, held(first).awaited))
    assert found == [(CLAIMED, True, False), (UNKNOWN, True, False), (UNKNOWN, True, False), (UNKNOWN, False, False)]


@pytest.mark.parametrize(("reads", "task"), [("earlier", "t"), ("blocks_of_others", "other")])
@pytest.mark.parametrize("ends", [ACCEPTED, SUPERSEDED])
def test_a_message_that_moves_while_it_is_looked_for_is_found(enter, ends, reads, task):
    """A late response gives it back to its request, or a resend takes it away, between two reads of a task."""
    ledger = enter()
    moves, other, _ = (claim(ledger, people(1, n)) for n in range(3))
    for each in (moves, other):
        close(ledger, each, UNKNOWN)
    ledger.supersede([other if ends == SUPERSEDED else moves])
    blocks = getattr(enter(2, task_id=task), reads)()
    found = [next(blocks)]
    ledger.supersede([moves]) if ends == SUPERSEDED else close(ledger, moves)
    assert int(PERSON.destination) in {each for _, numbers, *_ in [*found, *blocks] for each in numbers.tolist()}


def test_a_campaign_need_not_exist(store, enter):
    """A dry run looks without a trace; where nothing was claimed yet, nothing need be looked up."""
    enter()
    for name in ("c", "never seen"):
        reader = CampaignReader(store, name, claimant())
        assert (reader.is_used(), reader.holders([PERSON.key]), sent_again(reader, [PERSON])) == (False, {}, set())
    claim(enter(), people(1))
    reader = CampaignReader(store, "c", claimant())
    assert (reader.is_used(), held(reader).mine) == (True, False)
