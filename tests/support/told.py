"""A ledger as tasks leave it: campaigns, requests, and the progress of attempts."""

from __future__ import annotations

from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.campaigns import open_pause, require_campaign
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from support.sending import claim, claimant, close, people

REASONS = {UNKNOWN: "the answer was lost", NOT_SENT: "refused"}


def tell(store, campaign="spring", try_number=1, *, state="ended", claims=(), first=0, clock=None, note=None, **who):
    """Act as an attempt: claim requests, record outcomes, and note progress; return the ids of the requests.

    :param claims: number of messages and outcome of each request; ``claimed`` leaves a request open.
    :param first: index of the first recipient.
    :param note: progress beside the state.
    :param who: fields of the claimant.
    """
    task = claimant(try_number, **who)
    claimant_id = register(store, task)
    ledger = CampaignLedger(store, campaign, task, claimant_id=claimant_id, clock=clock)
    ids = []
    for count, becomes in claims:
        request_id = claim(ledger, people(count, first))
        first += count
        ids.append(request_id)
        if becomes == ACCEPTED:
            took = {"event_id": 2**62 + request_id, "messages": count, "parts": count, "cost": str(1.5 * count)}
            close(ledger, request_id, http_status=200, response="{}", **took)
        elif becomes != "claimed":
            close(ledger, request_id, becomes, reason=REASONS[becomes])
    note_progress(store, campaign, claimant_id, state, **(note or {}))
    return ids


def pause_of(store, name):
    """Return the pause that holds of a campaign, or None."""
    return store.fetch(lambda connection: open_pause(connection, require_campaign(connection, name)))
