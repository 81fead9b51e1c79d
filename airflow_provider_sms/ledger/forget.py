"""Forgetting one person: their number goes out of the ledger, and the claims on their messages stay.

What keeps a message from going out twice is its key, a digest of 16 bytes. So each message stays with the request that
holds it, under its key, and only its number is replaced by one that nobody has. Responses are redacted when they are
stored.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select, update

from airflow_provider_sms.ledger.backend import campaign_lock, in_pieces
from airflow_provider_sms.ledger.model import CLAIMED, FORGOTTEN_NUMBER, UNKNOWN
from airflow_provider_sms.ledger.schema import campaign, message, request, superseded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend


class NumberTraces(NamedTuple):
    """What a ledger holds of a number.

    :param open_requests: requests with a message to it that are unknown or may be under way.
    """

    keys: Mapping[str, Sequence[bytes]]
    open_requests: int

    @property
    def messages(self) -> int:
        """How many messages to it there are."""
        return sum(map(len, self.keys.values()))


def find_number(store: LedgerBackend, digits: str) -> NumberTraces:
    """Return what the ledger holds of a number. Reads every message of the ledger."""
    keys: defaultdict[str, list[bytes]] = defaultdict(list)
    open_requests: set[int] = set()
    with store.read() as connection:
        for table in (message, superseded):
            held = table.join(campaign, campaign.c.id == table.c.campaign_id).join(
                request, request.c.id == table.c.request_id
            )
            query = select(campaign.c.name, table.c.message_key, request.c.id, request.c.state).select_from(held)
            for name, key, request_id, state in connection.execute(query.where(table.c.destination == int(digits))):
                keys[name].append(bytes(key))
                if state in (CLAIMED, UNKNOWN):
                    open_requests.add(request_id)
    return NumberTraces(keys, len(open_requests))


def forget_number(store: LedgerBackend, digits: str, traces: NumberTraces) -> int:
    """Take a number out of the ledger. What was claimed since it was looked for is not touched.

    :param traces: what the ledger holds of it.
    :returns: how many messages have lost it.
    """
    forgotten = 0
    for name, keys in traces.keys.items():
        its_id = select(campaign.c.id).where(campaign.c.name == name).scalar_subquery()
        for some in in_pieces(keys):
            with store.write(campaign_lock(name)) as connection:
                for table in (message, superseded):
                    this = and_(table.c.campaign_id == its_id, table.c.message_key.in_(some))
                    change = update(table).where(this, table.c.destination == int(digits))
                    forgotten += connection.execute(change.values(destination=FORGOTTEN_NUMBER)).rowcount
    return forgotten
