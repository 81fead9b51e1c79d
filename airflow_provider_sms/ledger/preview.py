"""A look at what a ledger knows of a campaign, by whoever claims nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.ledger.schema import campaign, contact_group, message
from airflow_provider_sms.ledger.transitions import current_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.frequency_cap import FrequencyCap


class CampaignPreview:
    """What is held in a campaign, and who was texted too recently.

    :param store: the open ledger.
    :param campaign_name: it need not exist.
    :param cap: how often a person may be texted; None: as often as they are in the source.
    :param resends: says of an unknown request whether its messages are sent again.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        cap: FrequencyCap | None = None,
        resends: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._store = store
        self._cap = cap
        self._resends = resends
        self._id: int | None = None
        self._group: int | None = None
        with store.read() as connection:
            found = connection.execute(select(campaign.c.id).where(campaign.c.name == campaign_name)).scalar()
            # Nothing is held in most campaigns when they begin: then nothing need be looked up.
            its = select(message.c.request_id).where(message.c.campaign_id == found).limit(1)
            if found is not None and connection.execute(its).scalar() is not None:
                self._id = found
            if cap is not None:
                self._group = connection.execute(
                    select(contact_group.c.id).where(contact_group.c.name == cap.group)
                ).scalar()

    @property
    def any(self) -> bool:
        """Whether anything is held."""
        return self._id is not None

    @property
    def caps(self) -> bool:
        """Whether anybody may have been texted too recently."""
        return self._group is not None

    def held(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Give those of the keys that are not free, and how their requests stand: ``accepted`` or ``unknown``.

        What another process has claimed may go either way; it is among the unknown.

        :raises LedgerError: when the ledger cannot be read.
        """
        if self._id is None:
            return {}
        now = self._store.clock()
        held: dict[bytes, str] = {}
        with self._store.read() as connection:
            for key, request_id, state, deadline, *_ in self._store.holders(connection, self._id, keys):
                if current_state(state, deadline, now) == UNKNOWN and self._resends(request_id):
                    continue
                held[bytes(key)] = ACCEPTED if state == ACCEPTED else UNKNOWN
        return held

    def capped(self, destinations: Sequence[str]) -> set[str]:
        """Give those of the destinations that were texted too recently.

        :param destinations: digits with country code.
        :raises LedgerError: when the ledger cannot be read.
        """
        if self._cap is None or self._group is None:
            return set()
        since = self._store.clock() - self._cap.min_seconds
        with self._store.read() as connection:
            return {str(each) for each in self._store.contacts_since(connection, self._group, since, destinations)}
