from __future__ import annotations

import time

import pytest
from support.keys import request_of
from support.planning import checked
from support.sending import claimant, people

from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN, Outcome
from airflow_provider_sms.messages.spool import Status

ROWS = [{"destination": each.destination, "text": "Hi"} for each in people(5)]
KEYS = [key for rows in checked(ROWS).spool.batches() for key in rows.columns.column("key").to_pylist()]


@pytest.mark.parametrize("resends", [False, True])
def test_a_row_has_the_status_of_who_holds_its_message(store, enter, resends):
    """What was sent, what may have been, and what is under way; of this campaign only.

    Where unknown messages are resent, those of a request that is lost are to be sent, and no others.
    """
    for place, (campaign, state) in enumerate([("c", ACCEPTED), ("c", UNKNOWN), ("c", None), ("other", ACCEPTED)]):
        ledger = enter(campaign=campaign, clock=time.time)
        chunk = request_of(KEYS[place : place + 1], [None])
        (claim,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
        if state is not None:
            ledger.commit(outcomes=[Outcome(claim.request_id, state)])
    table = checked(ROWS, campaign=CampaignReader(store, "c", claimant()), resends=resends)
    lost = Status.AGAIN if resends else Status.UNKNOWN
    assert [status for rows in table.spool.batches() for status in rows.statuses.tolist()] == [
        Status.ALREADY_SENT,
        lost,
        Status.UNKNOWN,
        Status.FREE,
        Status.FREE,
    ]
    assert len(table.held_by) == 2
