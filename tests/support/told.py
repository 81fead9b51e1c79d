"""A ledger as tasks leave it: campaigns, requests, and the progress of attempts."""

from __future__ import annotations

import hashlib

from airflow_provider_sms.ledger.attempts import note_progress, register
from airflow_provider_sms.ledger.campaigns import open_pause, require_campaign
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from support.keys import request_of
from support.sending import answer, claimant

CLAIM_SECONDS = 60.0


def tell(store, campaign="spring", try_number=1, *, state="ended", claims=(), first=0, clock=None, note=None, **who):
    """Act as an attempt: claim requests, record outcomes, and note progress.

    :param claims: number of messages and outcome of each request; ``claimed`` leaves a request open.
    :param first: index of the first recipient.
    :param note: progress beside the state; empty for the state alone.
    :param who: fields of the claimant.
    :returns: the ids of the requests.
    """
    task = claimant(try_number, **who)
    claimant_id = register(store, task)
    ledger = CampaignLedger(store, campaign, task, claimant_id=claimant_id, clock=clock)
    ids = []
    for count, becomes in claims:
        people = [f"2782{number:07d}" for number in range(first, first + count)]
        first += count
        chunk = request_of([key(campaign, person) for person in people], people)
        (claim,) = ledger.commit(chunks=[chunk], claim_seconds=CLAIM_SECONDS)
        ids.append(claim.request_id)
        if becomes != "claimed":
            ledger.commit(outcomes=[outcome(claim.request_id, becomes, count)])
    note_progress(store, campaign, claimant_id, state, **(note or {}))
    return ids


def key(campaign, person):
    return hashlib.blake2b(f"{campaign}|{person}".encode(), digest_size=16).digest()


def outcome(request_id, state, messages):
    if state != ACCEPTED:
        return Outcome(request_id, state, reason={UNKNOWN: "the answer was lost", NOT_SENT: "refused"}[state])
    told = answer(2**62 + request_id, messages)
    return Outcome(
        request_id,
        ACCEPTED,
        http_status=200,
        event_id=told.event_id,
        messages=told.messages,
        parts=told.parts,
        cost=str(told.cost),
        response="{}",
    )


def pause_of(store, name):
    """Return the pause that holds of a campaign, or None."""
    return store.fetch(lambda connection: open_pause(connection, require_campaign(connection, name)))
