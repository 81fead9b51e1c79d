"""What a look at every message of a table finds, before the first is sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_sms.exceptions import ChangedSourceError, InvalidRowsError, StoppedError
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.messages.keys import BATCH_DIGEST_BYTES, Fingerprint, batch_digest, message_keys
from airflow_provider_sms.messages.outgoing import Block, BlockBuilder
from airflow_provider_sms.planning.changed_texts import TableKeys
from airflow_provider_sms.planning.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.messages.prepare import Preparation
    from airflow_provider_sms.messages.prepared import PreparedBatch, RejectedRow
    from airflow_provider_sms.planning.limits import Limits
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.recipients.sources import Source
    from airflow_provider_sms.stop_flag import StopFlag


SAMPLES = 3


class Scan:
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
        look: CampaignPreview | None = None,
        *,
        keyed_by_text: bool = True,
    ) -> None:
        self.measure = Estimate(prices)
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

    def _less_held(self, look: CampaignPreview, prepared: PreparedBatch) -> PreparedBatch:
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


MAX_EXAMPLES = 10
BLOCK_ROWS = 10_000
MAX_BLOCK_ROWS = 100_000
MAX_BLOCK_BYTES = 20 * 1024 * 1024
"""Of texts."""
ROWS_TO_BLOCK = 4
"""How many times as many rows were read as a block has."""


@dataclass(slots=True)
class CheckedTable:
    """What a look at every row found.

    :param invalid: rows that cannot be texted.
    :param reasons: why, and how many rows each.
    :param examples: the first invalid rows.
    :param digests: of the batches that were read, one after the other: 16 bytes for 10,000 rows.
    """

    rows: int = 0
    invalid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[RejectedRow] = field(default_factory=list)
    digests: bytearray = field(default_factory=bytearray)

    def explain(self) -> str:
        """Say how many rows are invalid and why; numbers are masked."""
        reasons = "; ".join(f"{count} times {reason}" for reason, count in self.reasons.most_common())
        examples = "; ".join(
            f"row {r.row}, column {r.column}: {r.reason}" + (f" ({r.value})" if r.value else "") for r in self.examples
        )
        return (
            f"{self.invalid} of {self.rows} rows cannot be texted: {reasons}. Rows count from 0; the first: {examples}"
        )


def check_table(
    source: Source,
    preparation: Preparation,
    table: CheckedTable,
    stop: StopFlag,
    *,
    survey: Scan | None = None,
    limits: Limits | None = None,
) -> None:
    """Look at every row, and send nothing.

    :param table: filled with what is found, as far as it gets.
    :param stop: ends the look early.
    :param survey: gets the messages; None: nobody needs them.
    :param limits: end the look where there are too many rows; None: none are too many.
    :raises StoppedError: when it did.
    :raises ColumnError: when a column is missing.
    :raises SourceError: when the source cannot be read.
    :raises TemplateError: when the template does not fit a column.
    :raises LimitError: when there are too many rows.
    """
    preparation.check(source.schema)
    for batch in source.batches(preparation.columns, BLOCK_ROWS):
        checked = preparation.prepare(batch, table.rows)
        if survey is not None:
            survey.add(checked)
        table.digests += batch_digest(checked)
        if stop.is_set():
            raise StoppedError("Told to stop while the rows were checked; nothing was sent")
        table.rows += checked.num_rows
        table.invalid += len(checked.rejected)
        table.reasons.update(rejected.reason for rejected in checked.rejected)
        table.examples.extend(checked.rejected[: MAX_EXAMPLES - len(table.examples)])
        if limits is not None:
            limits.check_rows(table.rows)


def require_sendable(table: CheckedTable, *, skip_invalid: bool) -> None:
    """Refuse a table that must not be sent.

    :param skip_invalid: leave invalid rows out, where at least one is valid.
    :raises InvalidRowsError: says how many, why and which.
    """
    if table.invalid and not skip_invalid:
        raise InvalidRowsError(
            f"{table.explain()}. Nothing was sent. Mend the rows, or set on_invalid='skip' to leave them out"
        )
    if table.invalid and table.invalid == table.rows:
        raise InvalidRowsError(f"{table.explain()}. Nothing was sent, since no row is valid")


def rows_of_block(read: int) -> int:
    """Give how many rows a block is to have: more with each that was read, since the ledger's tree grows with them.

    :param read: rows of the source up to the end of the block.
    """
    return min(read // ROWS_TO_BLOCK, MAX_BLOCK_ROWS)


def outgoing_blocks(
    source: Source,
    preparation: Preparation,
    expected: CheckedTable,
    stop: StopFlag,
    *,
    keep_order: bool = False,
    suppressed: SuppressedNumbers | None = None,
) -> Iterator[Block]:
    """Read the table once more, and give its messages.

    A ledger is a tree of keys, and keys are random: a claim writes a page of it for each message, unless messages are
    claimed in the order of their keys. So beyond the first rows they come in blocks that are, each by itself, ordered
    so. The blocks grow with the tree, up to a bound.

    Each batch is compared with what the check read in its place before its first message is given.

    :param expected: what the check found.
    :param stop: ends the gathering of a larger block early.
    :param keep_order: give the messages in the order of the source.
    :param suppressed: numbers that are left out; None: none.
    :raises ChangedSourceError: when the source has changed since: nobody planned, or approved, what it holds now.
    """
    rows = 0
    digests = _split(expected.digests)
    gathering = BlockBuilder()
    for batch in source.batches(preparation.columns, BLOCK_ROWS):
        prepared = preparation.prepare(batch, rows)
        if batch_digest(prepared) != next(digests, None):
            raise ChangedSourceError(_changed(rows))
        rows += prepared.num_rows
        sendable = prepared if suppressed is None else prepared.keeping(~suppressed.mask(prepared.destination_column))
        gathering.add(sendable, len(prepared.keys) - len(sendable.keys))
        wanted = BLOCK_ROWS if keep_order else rows_of_block(rows)
        if gathering.rows >= wanted or gathering.nbytes >= MAX_BLOCK_BYTES or stop.is_set():
            yield gathering.block(rows, by_key=not keep_order and rows > BLOCK_ROWS)
            gathering = BlockBuilder()
    if next(digests, None) is not None:
        raise ChangedSourceError(_changed(rows))
    if gathering.rows:
        yield gathering.block(rows, by_key=not keep_order and rows > BLOCK_ROWS)


def _split(digests: bytearray) -> Iterator[bytes]:
    for start in range(0, len(digests), BATCH_DIGEST_BYTES):
        yield bytes(digests[start : start + BATCH_DIGEST_BYTES])


def _changed(row: int) -> str:
    return (
        f"The source has changed since it was checked, at row {row} or after it (rows count from 0). What it holds now "
        "was neither planned nor approved, so this try sent nothing of it. Let nothing write to the source while a "
        "task sends it. The next try checks and plans the whole source anew"
    )
