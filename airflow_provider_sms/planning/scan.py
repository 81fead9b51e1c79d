"""The scan of a table: every row is read and checked before the first request, and sent as it was checked.

:class:`Scan` is the one pass over the source: it counts and prices rows, compares them with the ledger, and keeps them
in a :class:`.CheckedSpool`, of which :func:`outgoing_blocks` yields the messages.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import InvalidRowsError, StoppedError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.preview import AGAIN, OWN, OWN_UNKNOWN
from airflow_provider_sms.messages.blocks import Block, BlockBuilder
from airflow_provider_sms.messages.integer_set import DiskBackedIntegers, key_halves
from airflow_provider_sms.messages.keys import Fingerprint
from airflow_provider_sms.messages.prepared import count_reasons, list_rejected
from airflow_provider_sms.messages.spool import CheckedSpool
from airflow_provider_sms.planning.changed_texts import TableKeys, count_repeats
from airflow_provider_sms.planning.estimate import Estimate
from airflow_provider_sms.recipients.columns import integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.messages.prepare import Preparation
    from airflow_provider_sms.messages.prepared import PreparedBatch, RejectedRow
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.recipients.batches import Source
    from airflow_provider_sms.stop_flag import StopFlag

MAX_EXAMPLES = 10
"""Invalid rows that an error names: a table without one valid row takes no more memory."""
BLOCK_ROWS = 10_000
"""Rows of a batch, and of the blocks at the beginning of a table."""
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Bytes of texts in a block, which is held in memory."""
ROWS_TO_BLOCK = 4
"""Rows read so far for each row of a block: blocks grow with the table."""


class Scan:
    """Everything known about a table before the first request, collected a batch at a time.

    :param prices: those of an SMS part.
    :param suppressed: numbers that are not texted; None means no number.
    :param preview: the campaign as the ledger knows it; None means that the ledger is not asked.
    :param keyed_by_text: whether a message's key is made from its text.
    """

    def __init__(
        self,
        prices: Prices,
        suppressed: SuppressedNumbers | None = None,
        preview: CampaignPreview | None = None,
        *,
        keyed_by_text: bool = True,
    ) -> None:
        self.rows = 0
        """Rows of the source that were read."""
        self.invalid = 0
        """Rows that cannot be texted."""
        self.reasons: Counter[str] = Counter()
        """Why rows are invalid, and how many rows for each reason."""
        self.examples: list[RejectedRow] = []
        """The first invalid rows."""
        self.spool = CheckedSpool()
        """The rows that were checked."""
        self.estimate = Estimate(prices)
        """The estimate of the messages to send."""
        self.keys = TableKeys()
        """The keys of all messages but the suppressed ones."""
        self._fingerprint = Fingerprint()
        self._in_order = blake2b()
        """A digest of the messages with their texts, in the order of the rows."""
        self._texts = None if keyed_by_text else TableKeys()
        """The keys of all messages but the suppressed ones, with their texts; None where keys are made from texts."""
        self.suppressed = self.already_sent = self.unknown = 0
        self.repeats = 0
        """People among the recipients of the messages to send who have had another text of the campaign."""
        self.own = 0
        """Of the rows that were already sent, those whose message earlier legs of this attempt sent."""
        self._own = TableKeys()
        """The keys of these messages."""
        self._suppressed = suppressed
        self._preview = preview
        self._people = DiskBackedIntegers(np.int64)
        """The numbers of the messages to send, where others have sent any message of the campaign."""
        self._free = self.keys if preview is None else TableKeys()
        self._free_rows = 0
        self._again = TableKeys()
        """The keys of the messages to send that may have been sent before."""

    @property
    def valid(self) -> int:
        """Rows that can be texted."""
        return self.rows - self.invalid

    @property
    def planned(self) -> TableKeys | None:
        """The keys of the messages to send; None where that is every message that is not suppressed."""
        return None if self._preview is None else self._free

    def plan_id(self) -> str:
        """Return a digest of the messages: 12 hexadecimal digits, whatever the order of the rows.

        Where rows with the same values in the key columns have different texts, the first of them is sent: their order
        is then part of the digest. This sorts all keys: call it once, at the end.
        """
        if self._texts is None or self._texts.count_distinct() == self.keys.count_distinct():
            return self._fingerprint.hexdigest()
        return self._fingerprint.hexdigest([self._in_order.digest()])

    @property
    def duplicate(self) -> int:
        """Duplicates of messages to send. Reading this sorts all keys: do so once, at the end."""
        return self._free_rows - self._free.count_distinct()

    @property
    def own_messages(self) -> int:
        """The messages that earlier legs of this attempt sent and that have a row. Reading this sorts their keys."""
        return self._own.count_distinct()

    @property
    def again(self) -> int:
        """The messages to send that may have been sent before: unknown, as long as they are not sent again."""
        return self._again.count_distinct()

    def read(
        self,
        source: Source,
        preparation: Preparation,
        stop: StopFlag,
        check_rows: Callable[[int], None] | None = None,
    ) -> None:
        """Read and check every row; anything found before an error is kept.

        :param stop: ends the scan early.
        :param check_rows: called after each batch with the number of rows read so far; it raises to end the scan. None
            means no limit.
        :raises StoppedError: the scan was stopped.
        :raises ColumnError: a column is missing.
        :raises SourceError: the source cannot be read.
        :raises TemplateError: the template does not fit a column.
        :raises LedgerError: the ledger cannot be read.
        :raises InputError: there is no price for a number.
        """
        for batch in source.batches(preparation.columns, preparation.check):
            prepared = preparation.prepare(batch, self.rows)
            self.spool.add(prepared)
            self._add_messages(prepared)
            if stop.is_set():
                raise StoppedError("Told to stop while the rows were checked; nothing was sent")
            self.rows += prepared.num_rows
            self.invalid += len(prepared.rejected)
            self.reasons.update(rejected.reason for rejected in prepared.rejected)
            self.examples.extend(prepared.rejected[: MAX_EXAMPLES - len(self.examples)])
            if check_rows is not None:
                check_rows(self.rows)
        self.spool.finish()
        if self._preview is not None:
            self.repeats = count_repeats(self._preview, self.keys, self._people, stop)

    def explain_invalid(self, advice: str = "") -> str:
        """Return how many rows are invalid and why, and the first of them, one per line; numbers are masked.

        :param advice: sentences to put before these rows, without the last full stop.
        """
        return (
            f"{self.invalid} of {self.rows} {by_count(self.rows, 'row')} cannot be texted: "
            f"{count_reasons(self.reasons)}. {f'{advice}. ' if advice else ''}"
            f"{list_rejected(self.examples, self.invalid)}"
        )

    def require_sendable(self, *, skip_invalid: bool) -> None:
        """Refuse a table with invalid rows, or with none that is valid.

        :param skip_invalid: leave invalid rows out, where at least one row is valid.
        :raises InvalidRowsError: names the count, the reasons and the first rows.
        """
        if self.invalid and not skip_invalid:
            advice = "Nothing was sent. Correct the rows, or set on_invalid='skip' to leave them out"
            raise InvalidRowsError(self.explain_invalid(advice))
        if self.invalid and not self.valid:
            raise InvalidRowsError(self.explain_invalid("Nothing was sent, since no row is valid"))

    def close(self) -> None:
        """Release the keys and their room on disk; the counts stay."""
        for each in (self.spool, self.keys, self._texts, self._free, self._own, self._again, self._people):
            if each is not None:
                each.close()

    def _add_messages(self, prepared: PreparedBatch) -> None:
        # Another text is another plan, whatever identifies a message.
        digests = prepared.keys if self._texts is None else prepared.keys_with_texts()
        self._fingerprint.add(digests)
        if self._texts is not None:
            self._in_order.update(b"".join(digests))
        held = {} if self._preview is None else self._preview.held(prepared.keys)
        prepared = self._without_suppressed(prepared, held)
        self.keys.add(prepared.keys)
        if self._texts is not None:
            self._texts.add(digests if len(digests) == len(prepared.keys) else prepared.keys_with_texts())
        if self._preview is not None:
            prepared = self._without_held(prepared, held)
            self._free.add(prepared.keys)
            if self._preview.has_others and prepared.keys:
                self._people.add(integers(prepared.destination_column.cast(pa.int64())))
        self._free_rows += len(prepared.keys)
        once = _without_duplicates(prepared)
        self.estimate.add(once)

    def _without_suppressed(self, prepared: PreparedBatch, held: Mapping[bytes, str]) -> PreparedBatch:
        """Leave out suppressed numbers, but for messages that this attempt posted before their recipients opted out."""
        if self._suppressed is None:
            return prepared
        suppressed = self._suppressed.mask(prepared.destination_column)
        if held:
            states = [held.get(key) for key in prepared.keys]
            suppressed &= np.array([state not in (OWN, OWN_UNKNOWN) for state in states], np.bool_)
        self.suppressed += int(np.count_nonzero(suppressed))
        return prepared.keeping(~suppressed)

    def _without_held(self, prepared: PreparedBatch, held: Mapping[bytes, str]) -> PreparedBatch:
        """Leave out messages that the campaign holds already."""
        if held:
            states = [held.get(key) for key in prepared.keys]
            own = states.count(OWN)
            sent = states.count(ACCEPTED) + own
            self.own += own
            self._own.add([key for key, state in zip(prepared.keys, states, strict=True) if state == OWN])
            self.already_sent += sent
            free = np.array([state in (None, AGAIN) for state in states], np.bool_)
            self.unknown += len(states) - int(np.count_nonzero(free)) - sent
            prepared = prepared.keeping(free)
        self._again.add([key for key in prepared.keys if held.get(key) == AGAIN])
        return prepared


def _without_duplicates(prepared: PreparedBatch) -> PreparedBatch:
    """Leave out duplicates of earlier messages in the batch."""
    halves = key_halves(prepared.keys)
    _, first = np.unique(halves, return_index=True)
    if len(first) == len(halves):
        return prepared
    is_first = np.zeros(len(halves), np.bool_)
    is_first[first] = True
    return prepared.keeping(is_first)


def rows_of_block(read: int) -> int:
    """Return how many rows a block should have: the more were read, the more, since the ledger's tree has grown.

    :param read: rows of the source up to the end of the block.
    """
    return min(read // ROWS_TO_BLOCK, MAX_BLOCK_ROWS)


def outgoing_blocks(
    spool: CheckedSpool,
    stop: StopFlag,
    *,
    keep_order: bool = False,
    suppressed: SuppressedNumbers | None = None,
) -> Iterator[Block]:
    """Yield the messages of the checked rows.

    A ledger is a tree of keys, and keys are random: a claim writes a page of the tree for each message, unless messages
    are claimed in the order of their keys. So after the first rows, each block is ordered by key. The blocks grow with
    the tree, up to a bound.

    :param stop: ends the collection of a larger block early.
    :param keep_order: yield the messages in the order of the source.
    :param suppressed: numbers that are left out; None means no number.
    """
    rows = 0
    builder = BlockBuilder()
    for prepared in spool.batches():
        rows += prepared.num_rows
        if suppressed is None:
            builder.add(prepared)
        else:
            listed = suppressed.mask(prepared.destination_column)
            builder.add(prepared.keeping(~listed), prepared.keeping(listed).keys)
        wanted = BLOCK_ROWS if keep_order else rows_of_block(rows)
        if builder.rows >= wanted or builder.nbytes >= MAX_BLOCK_BYTES or stop.is_set():
            yield builder.build(rows, by_key=not keep_order and rows > BLOCK_ROWS)
            builder = BlockBuilder()
    if builder.rows:
        yield builder.build(rows, by_key=not keep_order and rows > BLOCK_ROWS)
