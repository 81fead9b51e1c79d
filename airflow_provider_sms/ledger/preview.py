"""What a ledger knows of a campaign before it is sent, for a plan, which claims nothing and creates no campaign."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import and_, false, select

from airflow_provider_sms.ledger.attempts import of_run
from airflow_provider_sms.ledger.backend import find_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, FORGOTTEN_NUMBER, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import claimant, message, request
from airflow_provider_sms.ledger.transitions import current_state
from airflow_provider_sms.messages.integer_set import key_halves

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import numpy.typing as npt
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

OWN = "own"
"""The state of a message that an earlier leg of this attempt has sent."""
OWN_UNKNOWN = "own unknown"
"""The state of a message that an earlier leg of this attempt may have sent."""
AGAIN = "again"
"""The state of a message that may have been sent, and that is free to be sent again."""
_ROWS_AT_ONCE = 10_000
"""Messages in memory at a time."""


class CampaignPreview:
    """The messages that a campaign holds.

    :param store: the open ledger.
    :param campaign_name: it need not exist.
    :param resends: takes the key of an unknown message, and returns whether it is sent again.
    :param is_own: takes the id of a request, and returns whether an earlier leg of this attempt made it.
    :param who: the attempt that asks; None means one of a task that has sent nothing.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        resends: Callable[[bytes], bool] = lambda _: False,
        is_own: Callable[[int], bool] = lambda _: False,
        *,
        who: Claimant | None = None,
    ) -> None:
        self._store = store
        self._resends = resends
        self._is_own = is_own
        self._id: int | None = None
        self._of_others: ColumnElement[bool] = false()
        self.has_others = False
        """Whether another task, or another run of this one, has sent messages of the campaign, or may have."""
        with store.read() as connection:
            found = find_campaign(connection, campaign_name)
            # Most campaigns hold nothing when they begin: then no key is looked up.
            held = select(message.c.request_id).where(message.c.campaign_id == found).limit(1)
            if found is not None and connection.execute(held).scalar() is not None:
                self._id = found
                self._of_others = request.c.campaign_id == found
                if who is not None:
                    ours = select(claimant.c.id).where(of_run(who))
                    self._of_others = and_(self._of_others, request.c.claimant_id.not_in(ours))
                others = select(request.c.id).where(self._of_others, request.c.state != NOT_SENT).limit(1)
                self.has_others = connection.execute(others).scalar() is not None

    @property
    def any(self) -> bool:
        """Whether the campaign holds any message."""
        return self._id is not None

    def held(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the keys that the campaign holds, each with the state of its request.

        The state is ``accepted`` or ``unknown``, and :data:`OWN` or :data:`OWN_UNKNOWN` where this attempt made the
        request; :data:`AGAIN` where the message is sent again. A message that a live process has claimed may still go
        either way, and counts as unknown.

        :raises LedgerError: when the ledger cannot be read.
        """
        if self._id is None:
            return {}
        now = self._store.clock()
        held: dict[bytes, str] = {}
        with self._store.read() as connection:
            for key, request_id, state, deadline, *_ in self._store.holders(connection, self._id, keys):
                is_lost = current_state(state, deadline, now) == UNKNOWN
                if is_lost and self._resends(bytes(key)):
                    held[bytes(key)] = AGAIN
                    continue
                accepted, unknown = (OWN, OWN_UNKNOWN) if self._is_own(request_id) else (ACCEPTED, UNKNOWN)
                held[bytes(key)] = accepted if state == ACCEPTED else unknown if is_lost else UNKNOWN
        return held

    def blocks_of_others(self) -> Generator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]], None, None]:
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
                yield key_halves([bytes(key) for key in keys]), np.array(numbers, np.int64)
