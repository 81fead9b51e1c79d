"""From a table of recipients to messages: every row is checked first, and only then is the table read to be sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import ChangedSourceError, InvalidRowsError, StoppedError
from airflow_provider_sms.messages.fingerprint import BATCH_DIGEST_BYTES, batch_digest
from airflow_provider_sms.sending.blocks import Block, Gathering

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.messages.prepare import Preparation
    from airflow_provider_sms.messages.prepared import RejectedRow
    from airflow_provider_sms.messages.sources import Source
    from airflow_provider_sms.messages.suppression import SuppressedNumbers
    from airflow_provider_sms.sending.plan import Limits
    from airflow_provider_sms.sending.stop import StopSignal
    from airflow_provider_sms.sending.survey import Survey

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
    stop: StopSignal,
    *,
    survey: Survey | None = None,
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
    stop: StopSignal,
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
    gathering = Gathering()
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
            gathering = Gathering()
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
