"""Who holds a message: the request that has it, and what this attempt may still expect of that request.

A claim is unique, so at most one request holds a message. The look-up writes nothing, and decides nothing: what happens
to a message that is held is up to :mod:`airflow_provider_sms.sending.pending`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.ledger.transitions import current_state, may_be_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend


class Holder(NamedTuple):
    """The request that holds a message.

    :param state: ``claimed`` (its process may still live), ``accepted`` or ``unknown``.
    :param mine: whether this leg of this attempt made the request.
    :param of_earlier_leg: whether an earlier leg of this attempt made it.
    :param awaited: whether another process, whichever attempt it runs, may still record its outcome, even if its claim
        has lapsed.
    """

    request_id: int
    state: str
    mine: bool
    of_earlier_leg: bool = False
    awaited: bool = False


class Holders:
    """The requests that hold messages of a campaign, as one leg of an attempt sees them.

    :param campaign_id: the campaign's id in the ledger.
    :param claimant_id: the claimant of this leg.
    :param earlier_legs: the claimants of the attempt's earlier legs.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_id: int,
        claimant_id: int,
        earlier_legs: Collection[int],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._claimant_id = claimant_id
        self._earlier_legs = earlier_legs
        self._clock = clock

    def request_ids(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Return the id of the request that holds each message, by message key; a key that is free is missing."""
        return {key: request_id for key, request_id, *_ in self._store.holders(connection, self._campaign_id, keys)}

    def find(self, connection: Connection, keys: Sequence[bytes], *, patience: float) -> dict[bytes, Holder]:
        """Return the request that holds each message, by message key; a key that is free is missing.

        :param patience: how long after its claim the outcome of another attempt's request is expected, in seconds.
        """
        now = self._clock()
        return {
            key: Holder(
                request_id,
                current_state(state, deadline, now),
                claimant_id == self._claimant_id,
                claimant_id in self._earlier_legs,
                claimant_id != self._claimant_id
                and may_be_recorded(finished_at, claimed_at, deadline, now=now, seconds=patience),
            )
            for key, request_id, state, deadline, claimant_id, claimed_at, finished_at in self._store.holders(
                connection, self._campaign_id, keys
            )
        }
