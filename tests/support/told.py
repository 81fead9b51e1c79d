"""A ledger as tasks leave it: campaigns, their requests, and what their tries said."""

from __future__ import annotations

import hashlib

from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.campaign import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.progress import note_progress
from support.sending import answer, claimant

CLAIM_SECONDS = 60.0


def tell(store, campaign="spring", try_number=1, *, state="ended", claims=(), first=0, clock=None, note=None, **who):
    """Be a try: claim requests, let things become of them, and say how it stands.

    :param claims: of each request, how many messages, and what becomes of it; ``claimed`` leaves it open.
    :param first: number of the first person.
    :param note: what it says with its state; empty for a state alone.
    :param who: of the claimant.
    :returns: the ids of the requests.
    """
    task = claimant(try_number, **who)
    claimant_id = register(store, task)
    ledger = CampaignLedger(store, campaign, task, claimant_id=claimant_id, clock=clock)
    ids = []
    for count, becomes in claims:
        people = [f"2782{number:07d}" for number in range(first, first + count)]
        first += count
        chunk = Chunk([key(campaign, person) for person in people], people)
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
