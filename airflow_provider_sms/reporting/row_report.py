"""The row report: the status of each row of the source, in the source's order, as Parquet."""

from __future__ import annotations

import logging
from collections import Counter
from operator import itemgetter
from typing import IO, TYPE_CHECKING

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import NOT_SENT, UNKNOWN
from airflow_provider_sms.reporting.row_status import DUPLICATE, INVALID, SUPPRESSED, RequestStatuses, RowStatus, short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import numpy.typing as npt

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.prepared import PreparedBatch
    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.sending.counts import SeenRows

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

REPEATS = "the same message as another row"
NO_LEDGER = "the ledger could not be read, so the outcome is not known"

_REPEAT = RowStatus(DUPLICATE, REPEATS)
_LISTED = RowStatus(SUPPRESSED, "the number is on a list of numbers that must not be texted")
_LOST = RowStatus(UNKNOWN, NO_LEDGER)


def write_row_report(
    file: IO[bytes],
    spool: CheckedSpool,
    *,
    seen: SeenRows,
    ledger: CampaignLedger | None,
    suppressed: SuppressedNumbers | None = None,
    ended: str | None = None,
    nothing_sent: bool = False,
) -> Counter[str]:
    """Write the status of each checked row.

    The counts are those of the attempt's summary, with four exceptions. Rows that the attempt never looked up count
    there as not sent; here they have the status that the ledger knows. A request that was taken in part, by a service
    that does not say which part, has its rows under ``partial``, which the summary divides between accepted and not
    sent. Where the attempt has several legs, rows that repeat a message of an earlier leg are accepted here. And where
    it ends between its plan and its first request, rows that repeat a message to send are not sent here: only a send
    looks up which rows these are.

    :param file: open for writing, binary; it stays open. It needs no ``seek``. Where this raises, it holds a report of
        some of the rows, which looks like a complete one: see :func:`.whole_file`.
    :param seen: the rows that were looked up, from the attempt's counts.
    :param suppressed: the numbers that were left out; None means none.
    :param ledger: of the attempt; None where it cannot be read: valid rows are then ``unknown``.
    :param ended: why sending ended early, the reason of rows that are ``not_sent``; None means that it did not.
    :param nothing_sent: whether the attempt ended before it claimed anything: without a ledger, valid rows are
        ``not_sent``.
    :returns: rows by status.
    """
    unclaimed = RowStatus(NOT_SENT, short(ended))
    rows = _Rows(seen, ledger, unclaimed, unclaimed if nothing_sent else _LOST, suppressed)
    waiting: list[pa.RecordBatch] = []
    first = held_back = 0
    with ParquetWriter(file, SCHEMA) as writer:
        for prepared in spool.batches():
            waiting.append(rows.block(prepared, first))
            first += prepared.num_rows
            held_back += prepared.num_rows
            if held_back >= ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)
                waiting, held_back = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)
    return rows.counts


def _rows_where(mask: Callable[[pa.Array], npt.NDArray[np.bool_]], prepared: PreparedBatch) -> set[int]:
    return set(prepared.row_column[mask(prepared.destination_column)].tolist())


class _Rows:
    """Makes the report's rows of prepared ones, and counts them.

    :param unclaimed: the status of messages that no request holds.
    :param without_ledger: the status of messages while there is no ledger.
    :param suppressed: the numbers that were left out.
    """

    def __init__(
        self,
        seen: SeenRows,
        ledger: CampaignLedger | None,
        unclaimed: RowStatus,
        without_ledger: RowStatus,
        suppressed: SuppressedNumbers | None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._seen = seen
        self._ledger = ledger
        self._unclaimed = unclaimed
        self._without_ledger = without_ledger
        self._suppressed = suppressed

    def block(self, prepared: PreparedBatch, first: int) -> pa.RecordBatch:
        """Return the report's rows of a block.

        :param first: index in the source of the block's first row.
        """
        held, statuses = self._look_up(prepared)
        duplicates = self._seen.duplicates.among(first, prepared.num_rows)
        listed = set() if self._suppressed is None else _rows_where(self._suppressed.mask, prepared)
        unclaimed = self._unclaimed if self._ledger is not None else self._without_ledger
        # Many rows share few statuses: each row has the number of its status.
        numbers: dict[RowStatus, int] = {}
        rows: list[tuple[int, str | None, int]] = []
        for row, key, destination in zip(prepared.rows, prepared.keys, prepared.destinations, strict=True):
            request_id = held.get(key)
            if row in listed and (request_id is None or not statuses[request_id].mine):
                status = _LISTED
            elif row in duplicates:
                status = _REPEAT
            elif request_id is None:
                status = unclaimed
            elif self._is_repeat(row, request_id) and statuses[request_id].mine:
                # Never looked up, and yet this leg of the attempt has claimed its message: for a row before it.
                status = _REPEAT
            else:
                status = statuses[request_id].of(destination)
            rows.append((row, destination, numbers.setdefault(status, len(numbers))))
        for rejected, number in zip(prepared.rejected, prepared.rejected_numbers, strict=True):
            status = RowStatus(INVALID, short(f"{rejected.column}: {rejected.reason}"))
            rows.append((rejected.row, number, numbers.setdefault(status, len(numbers))))
        if prepared.rejected:
            rows.sort(key=itemgetter(0))
        return self._batch(rows, list(numbers))

    def _is_repeat(self, row: int, request_id: int) -> bool:
        return row >= self._seen.until and not self._seen.is_of_earlier_leg(request_id)

    def _look_up(self, prepared: PreparedBatch) -> tuple[Mapping[bytes, int], Mapping[int, RequestStatuses]]:
        if self._ledger is not None:
            try:
                held, records = self._ledger.records(prepared.keys)
            except LedgerError as error:
                log.warning(
                    "The report goes on without the ledger from row %d on: %s",
                    min(prepared.rows),
                    error,
                )
                self._ledger, self._without_ledger = None, _LOST
            else:
                return held, {record.request_id: RequestStatuses(record) for record in records}
        return {}, {}

    def _batch(self, rows: list[tuple[int, str | None, int]], statuses: list[RowStatus]) -> pa.RecordBatch:
        numbers = [number for _, _, number in rows]
        for number, count in Counter(numbers).items():
            self.counts[statuses[number].status] += count
        which = pa.array(numbers, pa.int32())
        columns = [
            pa.array([status[position] for status in statuses], SCHEMA.field(name).type).take(which)
            for position, name in enumerate(RowStatus._fields)
        ]
        own = [pa.array([row[place] for row in rows], SCHEMA.types[place]) for place in (0, 1)]
        return pa.RecordBatch.from_arrays([*own, *columns], schema=SCHEMA)
