"""What a ledger knows of a campaign before it is sent, for a plan, which claims nothing and creates no campaign."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import and_, false, select

from airflow_provider_sms.ledger.attempts import of_run
from airflow_provider_sms.ledger.backend import find_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, FORGOTTEN_NUMBER, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.request_queries import superseded_keys
from airflow_provider_sms.ledger.schema import claimant, message, request
from airflow_provider_sms.ledger.transitions import current_state
from airflow_provider_sms.messages.keys import key_halves
from airflow_provider_sms.messages.spool import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence

    import numpy.typing as npt
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

_ROWS_AT_ONCE = 10_000
"""Messages in memory at a time."""


class CampaignPreview:
    """The messages that a campaign holds.

    :param store: the open ledger.
    :param campaign_name: it need not exist.
    :param claimants: those that made the attempt that asks.
    :param resends: whether messages whose outcome is unknown are sent again.
    :param who: the attempt that asks; None means one of a task that has sent nothing.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        claimants: Collection[int] = (),
        *,
        resends: bool = False,
        who: Claimant | None = None,
    ) -> None:
        self._store = store
        self._resends = resends
        self._claimants = claimants
        self.held_by: set[int] = set()
        """Requests without an outcome that hold messages of the table."""
        self._id: int | None = None
        self._has_superseded = False
        self._of_others: ColumnElement[bool] = false()
        self.has_others = False
        """Whether another task, or another run of this one, has sent messages of the campaign, or may have."""
        with store.read() as connection:
            found = find_campaign(connection, campaign_name)
            # Most campaigns hold nothing when they begin: then no key is looked up.
            held = select(message.c.request_id).where(message.c.campaign_id == found).limit(1)
            given_up = (
                select(request.c.id).where(request.c.campaign_id == found, request.c.state == SUPERSEDED).limit(1)
            )
            self._has_superseded = found is not None and connection.execute(given_up).scalar() is not None
            if found is not None and (self._has_superseded or connection.execute(held).scalar() is not None):
                self._id = found
                self._of_others = request.c.campaign_id == found
                if who is not None:
                    ours = select(claimant.c.id).where(of_run(who))
                    self._of_others = and_(self._of_others, request.c.claimant_id.not_in(ours))
                others = select(request.c.id).where(self._of_others, request.c.state != NOT_SENT).limit(1)
                self.has_others = connection.execute(others).scalar() is not None

    def held(self, keys: Sequence[bytes]) -> dict[bytes, Status]:
        """Return the keys that the campaign holds or may have sent, each with what that means for its row.

        A message that a live process has claimed may still go either way, and counts as unknown. One of a superseded
        request is sent again, whatever the policy is by now.

        :raises LedgerError: when the ledger cannot be read.
        """
        if self._id is None:
            return {}
        now = self._store.clock()
        held: dict[bytes, Status] = {}
        with self._store.read() as connection:
            for key, holder, state, deadline, claimant_id, *_ in self._store.holders(connection, self._id, keys):
                if state == ACCEPTED:
                    held[bytes(key)] = Status.ACCEPTED if claimant_id in self._claimants else Status.ALREADY_SENT
                    continue
                self.held_by.add(holder)
                is_lost = current_state(state, deadline, now) == UNKNOWN
                held[bytes(key)] = Status.AGAIN if is_lost and self._resends else Status.UNKNOWN
            if self._has_superseded:
                again = superseded_keys(connection, self._id, [key for key in keys if key not in held])
                held.update(dict.fromkeys(again, Status.AGAIN))
        return held

    def blocks_of_others(self) -> Generator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], None, None]:
        """Yield the messages that other tasks and other runs hold in the campaign, a block at a time.

        Mapped copies of this task count as this task. There is no index of numbers, which would make every claim
        slower: where others hold any message, every message of the campaign is read.

        :returns: half of each key, and the destinations as numbers. Groups and forgotten people are left out.
        :raises LedgerError: when the ledger cannot be read.
        """
        if not self.has_others:
            return
        query = select(message.c.message_key, message.c.destination).where(
            message.c.campaign_id == self._id,
            message.c.destination > FORGOTTEN_NUMBER,
            message.c.request_id.in_(select(request.c.id).where(self._of_others)),
        )
        with (
            self._store.read() as connection,
            closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
        ):
            for block in rows.partitions(_ROWS_AT_ONCE):
                keys, numbers = zip(*block, strict=True)
                yield key_halves(b"".join(keys))[:, 0], np.array(numbers, np.int64)
