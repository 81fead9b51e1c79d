"""Who holds a message: the request that has it, and what this attempt may still expect of that request.

A claim is unique, so at most one request holds a message. The look-up writes nothing, and decides nothing: what happens
to a message that is held is up to :mod:`airflow_provider_sms.sending.settle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.ledger.transitions import current_state, may_be_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend


class Holder(NamedTuple):
    """A request, as one that holds a message, and how it stands now.

    :param state: ``claimed`` only while its process may still post it.
    :param mine: whether this attempt made it.
    :param awaited: whether another process, whichever attempt it runs, may still record its outcome, even if its claim
        has lapsed.
    """

    request_id: int
    state: str
    mine: bool = False
    awaited: bool = False


class Holders:
    """The requests that hold messages of a campaign, as one attempt sees them.

    :param campaign_id: the campaign's id in the ledger.
    :param claimant_id: this process.
    :param claimants: those that made this attempt.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_id: int,
        claimant_id: int,
        claimants: Collection[int],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._campaign_id = campaign_id
        self._claimant_id = claimant_id
        self._claimants = claimants
        self._clock = clock

    def request_ids(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Return the id of the request that holds each message, by message key; a key that is free is missing."""
        return {key: request_id for key, request_id, *_ in self._store.holders(connection, self._campaign_id, keys)}

    def find(self, connection: Connection, keys: Sequence[bytes], *, patience: float) -> dict[bytes, Holder]:
        """Return the request that holds each message, by message key; a key that is free is missing.

        :param patience: how long after its claim the outcome of another attempt's request is expected, in seconds.
        """
        rows = self._store.holders(connection, self._campaign_id, keys)
        return {key: self.of_row(row, patience=patience) for key, *row in rows}

    def of_row(self, row: Sequence[Any], *, patience: float) -> Holder:
        """Return how a request stands.

        :param row: its id, state, deadline, claimant, and when it was claimed and finished.
        """
        request_id, state, deadline, claimant_id, claimed_at, finished_at = row
        now, is_of_others = self._clock(), claimant_id != self._claimant_id
        return Holder(
            request_id,
            current_state(state, deadline, now),
            claimant_id in self._claimants,
            is_of_others and may_be_recorded(finished_at, claimed_at, deadline, now=now, seconds=patience),
        )
