"""The row report: the status of each row of the source, in the source's order, as Parquet."""

from __future__ import annotations

import logging
from collections import Counter
from typing import IO, TYPE_CHECKING

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import NOT_SENT, UNKNOWN
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.reporting.row_status import (
    ALREADY_SENT,
    DUPLICATE,
    INVALID,
    SUPPRESSED,
    RowStatus,
    short,
    status_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.spool import CheckedRows, CheckedSpool

log = logging.getLogger(__name__)

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("destination", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("request_id", pa.int64()),
        pa.field("event_id", pa.int64()),
        pa.field("sent_at", pa.timestamp("us", "UTC")),
    ]
)
"""The report's columns: a contract with its readers."""

ROWS_AT_ONCE = 50_000
"""Rows of a row group, which is held in memory until it is written: many small files would otherwise make many."""

NO_LEDGER = "the ledger could not be read, so the outcome is not known"

_CHECKED = {
    Status.DUPLICATE: RowStatus(DUPLICATE, "the same message as an earlier row"),
    Status.SUPPRESSED: RowStatus(SUPPRESSED, "the number is on a list of numbers that must not be texted"),
    Status.ALREADY_SENT: RowStatus(ALREADY_SENT),
    Status.UNKNOWN: RowStatus(UNKNOWN),
    Status.AGAIN: RowStatus(UNKNOWN),
}
"""The statuses of rows that need no look into the ledger or, from already sent on, get none."""
_LOST = RowStatus(UNKNOWN, NO_LEDGER)
_AGAIN = RowStatus(UNKNOWN, "a request that had it may have been sent, and it was not sent again yet")


def write_row_report(
    file: IO[bytes],
    spool: CheckedSpool,
    *,
    ledger: CampaignLedger | None,
    ended: str | None = None,
    nothing_sent: bool = False,
) -> Counter[str]:
    """Write the status of each checked row.

    The counts are those of the attempt's summary.

    :param file: open for writing, binary; it stays open. It needs no ``seek``. Where this raises, it holds a report of
        some of the rows, which looks like a complete one: see :func:`.whole_file`.
    :param spool: the rows, each with its status.
    :param ledger: of the attempt; None where there is none, or it cannot be read.
    :param ended: why sending ended early, the reason of rows that are ``not_sent``; None means that it did not.
    :param nothing_sent: whether the attempt ended before it claimed anything. Otherwise messages are ``unknown``
        without a ledger.
    :returns: rows by status.
    """
    rows = _Rows(ledger, RowStatus(NOT_SENT, short(ended)), nothing_sent=nothing_sent)
    waiting: list[pa.RecordBatch] = []
    held_back = 0
    with ParquetWriter(file, SCHEMA) as writer:
        for checked in spool.batches():
            waiting.append(rows.reported(checked))
            held_back += len(checked.statuses)
            if held_back >= ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)
                waiting, held_back = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)
    return rows.counts


class _Rows:
    """Makes the report's rows of checked ones, and counts them.

    :param unclaimed: the status of messages that no request holds.
    :param nothing_sent: whether messages are as they were checked while there is no ledger; else they are unknown.
    """

    def __init__(self, ledger: CampaignLedger | None, unclaimed: RowStatus, *, nothing_sent: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._ledger = ledger
        self._unclaimed = unclaimed
        self._nothing_sent = nothing_sent

    def reported(self, checked: CheckedRows) -> pa.RecordBatch:
        """Return the report's rows of checked ones."""
        # Many rows share few statuses: each row has the number of its status.
        numbers: dict[RowStatus, int] = {}
        which = [numbers.setdefault(each, len(numbers)) for each in self._statuses(checked)]
        statuses = list(numbers)
        for number, count in Counter(which).items():
            self.counts[statuses[number].status] += count
        taken = pa.array(which, pa.int32())
        columns = [
            pa.array([status[position] for status in statuses], SCHEMA.field(name).type).take(taken)
            for position, name in enumerate(RowStatus._fields)
        ]
        rows = pa.array(range(checked.first, checked.first + len(which)), pa.int64())
        return pa.RecordBatch.from_arrays([rows, checked.columns.column("destination"), *columns], schema=SCHEMA)

    def _statuses(self, checked: CheckedRows) -> Iterator[RowStatus]:
        held, requests, again = self._look_up(checked)
        columns = (checked.columns.column(name).to_pylist() for name in ("key", "column", "reason"))
        for status, key, column, reason in zip(checked.statuses.tolist(), *columns, strict=True):
            if status == Status.INVALID:
                yield RowStatus(INVALID, short(f"{column}: {reason}"))
            elif status in (Status.DUPLICATE, Status.SUPPRESSED):
                yield _CHECKED[status]
            elif key in held:
                yield requests[held[key]]
            elif key in again:
                yield _AGAIN
            elif self._ledger is not None:
                yield self._unclaimed
            else:
                yield _CHECKED.get(status, self._unclaimed) if self._nothing_sent else _LOST

    def _look_up(self, checked: CheckedRows) -> tuple[Mapping[bytes, int], Mapping[int, RowStatus], Collection[bytes]]:
        if self._ledger is None:
            return {}, {}, ()
        _, messages = checked.where(checked.statuses < Status.SUPPRESSED)
        try:
            keys = messages.column("key").to_pylist()
            held, records = self._ledger.records(keys)
            again = self._ledger.superseded([key for key in keys if key not in held])
        except LedgerError as error:
            log.warning("The report goes on without the ledger from row %d on: %s", checked.first, error)
            self._ledger, self._nothing_sent = None, False
            return {}, {}, ()
        return held, {record.request_id: status_of(record) for record in records}, again
