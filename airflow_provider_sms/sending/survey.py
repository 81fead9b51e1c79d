"""What a look at every message of a table finds, before the first is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.messages.fingerprint import Fingerprint
from airflow_provider_sms.messages.keys import message_keys
from airflow_provider_sms.messages.measure import Measure
from airflow_provider_sms.sending.claims import ACCEPTED
from airflow_provider_sms.sending.earlier import TableKeys

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_provider_sms.messages.prepared import PreparedBatch
    from airflow_provider_sms.messages.prices import Prices
    from airflow_provider_sms.messages.suppression import SuppressedNumbers
    from airflow_provider_sms.sending.look import CampaignLook

SAMPLES = 3


class Survey:
    """Counts, prices and tells apart the messages of a table, a batch at a time.

    :param prices: of a part.
    :param suppressed: numbers that are not texted; None: none.
    :param look: what the ledger knows of the campaign; None: nothing is asked of it.
    :param keyed_by_text: whether a message's key says what its text is.
    """

    def __init__(
        self,
        prices: Prices,
        suppressed: SuppressedNumbers | None = None,
        look: CampaignLook | None = None,
        *,
        keyed_by_text: bool = True,
    ) -> None:
        self.measure = Measure(prices)
        self.keys = TableKeys()
        """Of every message whose number is not suppressed."""
        self.fingerprint = Fingerprint()
        self.samples: list[tuple[str, str]] = []
        """The destinations and texts of the first that are to be sent."""
        self.suppressed = self.capped = self.already_sent = self.unknown = 0
        self._suppressed = suppressed
        self._look = look
        self._keyed_by_text = keyed_by_text
        self._free = self.keys if look is None else TableKeys()
        self._free_rows = 0

    @property
    def duplicate(self) -> int:
        """Messages that repeat another one which is to be sent. Asked once, at the end."""
        return self._free_rows - self._free.count_distinct()

    def add(self, prepared: PreparedBatch) -> None:
        """Take in the messages of a batch.

        :raises LedgerError: when the ledger cannot be read.
        :raises InputError: there is no price for a number.
        """
        # By the text, whatever identifies a message: another text is another plan.
        by_text = self._keyed_by_text
        self.fingerprint.add(
            prepared.keys if by_text else message_keys(prepared.destination_column, prepared.content_column)
        )
        prepared = self._less_suppressed(prepared)
        self.keys.add(prepared.keys)
        if self._look is not None:
            prepared = self._less_held(self._look, prepared)
            self._free.add(prepared.keys)
        self._free_rows += len(prepared.keys)
        once = _once(prepared)
        self.measure.add(once.destination_column, once.content_column, once.row_column)
        if len(self.samples) < SAMPLES:
            some = prepared.keeping(np.arange(len(prepared.keys)) < SAMPLES - len(self.samples))
            self.samples += zip(some.destinations, some.contents, strict=True)

    def close(self) -> None:
        """Forget the messages; the counts stay."""
        self.keys.close()
        self._free.close()

    def _less_suppressed(self, prepared: PreparedBatch) -> PreparedBatch:
        if self._suppressed is None:
            return prepared
        suppressed = self._suppressed.mask(prepared.destination_column)
        self.suppressed += int(np.count_nonzero(suppressed))
        return prepared.keeping(~suppressed)

    def _less_held(self, look: CampaignLook, prepared: PreparedBatch) -> PreparedBatch:
        held = look.held(prepared.keys)
        if held:
            states = [held.get(key) for key in prepared.keys]
            sent = states.count(ACCEPTED)
            self.already_sent += sent
            self.unknown += len(states) - states.count(None) - sent
            prepared = prepared.keeping(np.array([state is None for state in states], np.bool_))
        destinations = prepared.destinations if look.caps else []
        if capped := look.capped(destinations):
            free = np.array([destination not in capped for destination in destinations], np.bool_)
            self.capped += len(free) - int(np.count_nonzero(free))
            prepared = prepared.keeping(free)
        return prepared


def _once(prepared: PreparedBatch) -> PreparedBatch:
    """Leave out what repeats an earlier message of the batch."""
    halves: npt.NDArray[np.uint64] = np.frombuffer(b"".join(prepared.keys), np.uint64)[::2]
    _, first = np.unique(halves, return_index=True)
    if len(first) == len(halves):
        return prepared
    is_first = np.zeros(len(halves), np.bool_)
    is_first[first] = True
    return prepared.keeping(is_first)
