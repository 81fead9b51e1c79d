"""The row report: the status of each row of the source, in the source's order, as Parquet."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.keys import key_bytes
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.reporting.row_counts import COUNT_OF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.requests import RequestRow
    from airflow_provider_sms.messages.spool import CheckedRows, CheckedSpool

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
LONGEST_REASON = 300
"""Characters of a reason, which is repeated in each of its rows."""

OPEN = "claimed, and no outcome was recorded yet"


class RowStatus(NamedTuple):
    """The status of a row, as the report shows it; times are microseconds since the epoch."""

    status: str
    reason: str | None = None
    request_id: int | None = None
    event_id: int | None = None
    sent_at: int | None = None


_WHY = {
    Status.DUPLICATE: "the same message as an earlier row",
    Status.SUPPRESSED: "the number is on a list of numbers that must not be texted",
}
_AGAIN = RowStatus(UNKNOWN, "a request that had it may have been sent, and it was not sent again yet")


def write_row_report(file: IO[bytes], spool: CheckedSpool, ledger: CampaignLedger | None, ended: str | None) -> None:
    """Write the status of each checked row, as Parquet; where this raises, what was written looks like a whole report.

    :param ledger: of the attempt; None for a dry run, whose rows are as they were checked.
    :param ended: why sending ended early, the reason of rows that are ``not_sent``; None means that it did not.
    """
    free = RowStatus(NOT_SENT, mask_numbers_in(ended)[:LONGEST_REASON] if ended else None)
    waiting: list[pa.RecordBatch] = []
    with ParquetWriter(file, SCHEMA) as writer:
        for checked in spool.batches():
            waiting.append(_reported(checked, ledger, free))
            if sum(map(len, waiting)) >= ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)
                waiting.clear()
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting), ROWS_AT_ONCE)


def _reported(checked: CheckedRows, ledger: CampaignLedger | None, free: RowStatus) -> pa.RecordBatch:
    """Return the report's rows of checked ones."""
    # Many rows share few statuses: each row has the number of its status.
    numbers: dict[RowStatus, int] = {}
    which = [numbers.setdefault(each, len(numbers)) for each in _statuses(checked, ledger, free)]
    taken = pa.array(which, pa.int32())
    columns = [
        pa.array([status[position] for status in numbers], SCHEMA.field(name).type).take(taken)
        for position, name in enumerate(RowStatus._fields)
    ]
    rows = pa.array(range(checked.first, checked.first + len(which)), pa.int64())
    return pa.RecordBatch.from_arrays([rows, checked.columns.column("destination"), *columns], schema=SCHEMA)


def _statuses(checked: CheckedRows, ledger: CampaignLedger | None, free: RowStatus) -> Iterator[RowStatus]:
    held = iter(() if ledger is None else _held(checked, ledger, free))
    columns = (checked.columns.column(name).to_pylist() for name in ("column", "reason"))
    for status, column, reason in zip(checked.statuses.tolist(), *columns, strict=True):
        if status == Status.INVALID:
            yield RowStatus(COUNT_OF[status], mask_numbers_in(f"{column}: {reason}")[:LONGEST_REASON])
        elif ledger is not None and status < Status.SUPPRESSED:
            yield next(held)
        else:
            yield free if status == Status.FREE else RowStatus(COUNT_OF[status], _WHY.get(status))


def _held(checked: CheckedRows, ledger: CampaignLedger, free: RowStatus) -> list[RowStatus]:
    """Return the statuses of the messages, by who holds them."""
    _, messages = checked.where(checked.statuses < Status.SUPPRESSED)
    held = ledger.look(key_bytes(messages.column("key")))
    records = ledger.requests(held.requests)
    by_request = {0: free, **{each: status_of(its, mine=held.requests[each].mine) for each, its in records.items()}}
    pairs = zip(held.request_ids.tolist(), held.again.tolist(), strict=True)
    return [_AGAIN if again else by_request[request_id] for request_id, again in pairs]


def status_of(record: RequestRow, *, mine: bool) -> RowStatus:
    """Return the status of the messages that a request, perhaps of this attempt, holds.

    A response counts the messages that the service took and does not list them: all messages of a request that was
    accepted in part are accepted.
    """
    # Not masked again: its figures are this package's own, such as an HTTP status beside the service's code.
    reason = record.reason[:LONGEST_REASON] if record.reason else None
    unknown = RowStatus(UNKNOWN, reason, record.request_id, record.event_id, _microseconds(record.claimed_at))
    if record.state == CLAIMED:
        return unknown._replace(reason=OPEN)
    if record.state != ACCEPTED:
        return unknown
    # Where the balance told what became of a request, its words are the reason.
    told = reason if record.evidence is not None and record.reason == record.evidence.words else None
    if record.taken is not None and record.taken < record.submitted:
        unit = by_count(record.submitted, "message")
        told = f"the service took {record.taken} of the request's {record.submitted} {unit}, and does not say which"
    status = ACCEPTED if mine else "already_sent"
    return unknown._replace(status=status, reason=told, sent_at=_microseconds(record.finished_at))


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000_000)
