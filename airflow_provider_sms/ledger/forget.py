"""Forgetting one person: their number goes out of the ledger, and the claims on their messages stay.

What keeps a message from going out twice is its key, a digest of 16 bytes. So each message stays with the request that
holds it, under its key, and only its number is replaced by one that nobody has. Responses are redacted when they are
stored. In a module of its own, since a purge forgets whole campaigns.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from airflow_provider_sms.ledger.backend import campaign_lock, in_pieces
from airflow_provider_sms.ledger.model import FORGOTTEN_NUMBER
from airflow_provider_sms.ledger.schema import campaign, message, superseded

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sms.ledger.backend import LedgerBackend


def forget_number(store: LedgerBackend, digits: str, campaign_names: Collection[str]) -> int:
    """Take a number out of campaigns, and return how many messages have lost it. Reads every message of these."""
    forgotten = 0
    for name, table in product(campaign_names, (message, superseded, message)):  # a late response moves some back
        here = table.c.campaign_id == select(campaign.c.id).where(campaign.c.name == name).scalar_subquery()
        to_it = and_(here, table.c.destination == int(digits))
        # Without the campaign's lock: there is no index of numbers.
        with store.read() as connection:
            keys = connection.scalars(select(table.c.message_key).where(to_it)).all()
        for some in in_pieces(keys):
            change = update(table).where(to_it, table.c.message_key.in_(some)).values(destination=FORGOTTEN_NUMBER)
            with store.write(campaign_lock(name)) as connection:
                forgotten += connection.execute(change).rowcount
    return forgotten
