"""What a ledger knows of a campaign before it is sent, for a plan, which claims nothing and creates no campaign."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import and_, select

from airflow_provider_sms.ledger.attempts import of_run, of_task
from airflow_provider_sms.ledger.campaigns import find_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, FORGOTTEN_NUMBER, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.request_queries import superseded_keys
from airflow_provider_sms.ledger.schema import attempt, message, request, superseded
from airflow_provider_sms.ledger.transitions import current_state
from airflow_provider_sms.messages.keys import key_halves
from airflow_provider_sms.messages.spool import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    import numpy.typing as npt
    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

GROUP_DESTINATION = -1
"""Stands for a group among destinations, which are numbers."""
HeldBlock: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]"
_ROWS_AT_ONCE = 10_000
"""Messages in memory at a time."""


class CampaignPreview:
    """The messages that a campaign holds.

    :param campaign_name: it need not exist.
    :param claimants: the processes of the attempt that asks; none in a dry run, which is not in the ledger.
    :param who: the attempt that asks.
    :param resends: whether messages whose outcome is unknown are sent again.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        claimants: Collection[int] = (),
        *,
        who: Claimant,
        resends: bool = False,
    ) -> None:
        self._store = store
        self._resends = resends
        self._claimants = claimants
        self._of_others = request.c.attempt_id.not_in(select(attempt.c.id).where(of_run(who)))
        self.held_by: set[int] = set()
        """Requests without an outcome that hold messages of the table."""
        self._id = store.fetch(lambda connection: _find_used(connection, campaign_name))

    def held(self, keys: Sequence[bytes]) -> dict[bytes, Status]:
        """Return the keys that the campaign holds or may have sent, each with what that means for its row.

        A message that a live process has claimed may still go either way, and counts as unknown. One of a superseded
        request is sent again, whatever the policy is by now.
        """
        if self._id is None:
            return {}
        campaign_id, now = self._id, self._store.clock()

        def read(connection: Connection) -> dict[bytes, Status]:
            held: dict[bytes, Status] = {}
            for key, holder, state, deadline, claimant_id, *_ in self._store.holders(connection, campaign_id, keys):
                if state == ACCEPTED:
                    held[bytes(key)] = Status.ACCEPTED if claimant_id in self._claimants else Status.ALREADY_SENT
                    continue
                self.held_by.add(holder)
                is_lost = current_state(state, deadline, now) == UNKNOWN
                held[bytes(key)] = Status.AGAIN if is_lost and self._resends else Status.UNKNOWN
            again = superseded_keys(connection, campaign_id, [key for key in keys if key not in held])
            return {**held, **dict.fromkeys(again, Status.AGAIN)}

        return self._store.fetch(read)

    def has_others(self) -> bool:
        """Return whether another task, or another run of this one, has sent messages of the campaign, or may have."""
        others = and_(request.c.campaign_id == self._id, request.c.state != NOT_SENT, self._of_others)
        return self._store.fetch(lambda connection: _is_any(connection, select(request.c.id).where(others)))

    def blocks_of_others(self) -> Generator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], None, None]:
        """Yield the messages that other tasks and other runs hold in the campaign, a block at a time.

        Mapped copies of this task count as this task. There is no index of numbers, which would make every claim
        slower: every message of the campaign is read.

        :returns: half of each key, and the destinations as numbers. Groups and forgotten people are left out.
        """
        of_others = select(request.c.id).where(request.c.campaign_id == self._id, self._of_others)
        query = select(message.c.message_key, message.c.destination).where(
            message.c.campaign_id == self._id,
            message.c.destination > FORGOTTEN_NUMBER,
            message.c.request_id.in_(of_others),
        )
        for keys, numbers in _blocks(self._store, query):
            yield key_halves(b"".join(keys))[:, 0], np.array(numbers, np.int64)


def _find_used(connection: Connection, campaign_name: str) -> int | None:
    """Return the id of a campaign that holds any message: most hold none when they begin, and no key is looked up."""
    found = find_campaign(connection, campaign_name)
    held = (select(table.c.request_id).where(table.c.campaign_id == found) for table in (message, superseded))
    return found if any(_is_any(connection, each) for each in held) else None


def _is_any(connection: Connection, query: Select[Any]) -> bool:
    return connection.scalar(query.limit(1)) is not None


def claims_of_task(store: LedgerBackend, campaign_id: int, who: Claimant) -> Generator[HeldBlock, None, None]:
    """Yield the messages that attempts of a task instance hold in any campaign, or may have sent, a block at a time.

    A message may come more than once. Those of a request that was not sent do not come.

    :param campaign_id: the campaign that is about to be sent.
    :returns: half of each key, the destinations as numbers, and whether they belong to that campaign.
    """
    theirs = select(request.c.id).join(attempt).where(of_task(who))
    for table, requests in ((message, theirs), (superseded, theirs.where(request.c.state != NOT_SENT))):
        # By their requests: the campaign may hold many times as many messages of other tasks.
        columns = (table.c[name] for name in ("message_key", "destination", "campaign_id"))
        for keys, numbers, campaigns in _blocks(store, select(*columns).where(table.c.request_id.in_(requests))):
            destinations = [GROUP_DESTINATION if number is None else number for number in numbers]
            is_here = np.array(campaigns, np.int64) == campaign_id
            yield key_halves(b"".join(keys))[:, 0], np.array(destinations, np.int64), is_here


def _blocks(store: LedgerBackend, query: Select[Any]) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query as columns, a block at a time."""
    with (
        store.read() as connection,
        closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
    ):
        for block in rows.partitions(_ROWS_AT_ONCE):
            yield list(zip(*block, strict=True))
