"""A campaign's messages as a Parquet file: evidence of who was texted when, for an auditor or a complaint."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import and_, case, select

from airflow_provider_sms.atomic_file import whole_file
from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.account import BALANCE
from airflow_provider_sms.ledger.backend import require_campaign
from airflow_provider_sms.ledger.forget import FORGOTTEN
from airflow_provider_sms.ledger.model import ACCEPTED, FORGOTTEN_NUMBER
from airflow_provider_sms.ledger.schema import claimant, decision, message, request
from airflow_provider_sms.ledger.transitions import reason_at, state_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_sms.ledger.backend import LedgerBackend

ROWS_AT_ONCE = 50_000
"""Messages in memory at a time, and in a row group of the file."""

_TIME = pa.timestamp("us", tz="UTC")

SCHEMA = pa.schema(
    [
        # Text, since spreadsheets show long integers with an exponent. Null for the message to a group, and a word for
        # a person who was forgotten.
        ("destination", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("request_id", pa.int64()),
        ("event_id", pa.int64()),
        ("claimed_at", _TIME),
        ("finished_at", _TIME),
        ("dag_id", pa.string()),
        ("task_id", pa.string()),
        ("run_id", pa.string()),
        ("map_index", pa.int32()),
        ("try_number", pa.int32()),
    ]
)
"""One row for each message that a request of the campaign holds."""

_BY_A_PERSON = and_(
    request.c.state == ACCEPTED,
    select(decision.c.id)
    .where(decision.c.request_id == request.c.id, decision.c.decision == ACCEPTED, decision.c.decided_by != BALANCE)
    .exists(),
)
"""Whether a person called a request accepted. Its reason is still that for which it was unknown."""


def export_campaign(store: LedgerBackend, name: str, path: Path, *, overwrite: bool = False) -> int:
    """Write a campaign's messages to a Parquet file, which appears complete or not at all.

    :param path: its folder must exist. The file is readable by its owner only: it holds numbers.
    :param overwrite: whether an existing file is replaced.
    :returns: how many messages.
    :raises InputError: the ledger has no such campaign, or the file exists or cannot be written.
    :raises LedgerError: when the ledger cannot be read.
    """
    now = store.clock()
    query = (
        select(
            message.c.destination,
            state_at(now),
            case((and_(request.c.messages.is_(None), _BY_A_PERSON), None), else_=reason_at(now)),
            request.c.id,
            request.c.event_id,
            request.c.claimed_at,
            request.c.finished_at,
            request.c.messages,
            request.c.submitted,
            claimant.c.dag_id,
            claimant.c.task_id,
            claimant.c.run_id,
            claimant.c.map_index,
            claimant.c.try_number,
        )
        .select_from(message.join(request, request.c.id == message.c.request_id).join(claimant))
        .order_by(request.c.id)
    )
    rows = 0
    with store.read() as connection:
        query = query.where(request.c.campaign_id == require_campaign(connection, name))
        streaming = connection.execution_options(yield_per=ROWS_AT_ONCE)
        with (
            _appearing(path, overwrite=overwrite) as file,
            pq.ParquetWriter(file, SCHEMA, compression="zstd") as out,
            closing(streaming.execute(query)) as found,
        ):
            for block in found.partitions(ROWS_AT_ONCE):
                out.write_batch(_batch([tuple(row) for row in block]))
                rows += len(block)
    return rows


def _batch(block: list[tuple[Any, ...]]) -> pa.RecordBatch:
    destination, state, reason, request_id, event_id, claimed, finished, taken, submitted, *rest = zip(
        *block, strict=True
    )
    columns = [
        list(map(_written, destination)),
        state,
        list(map(_reason, state, reason, taken, submitted)),
        request_id,
        event_id,
        _moments(claimed),
        _moments(finished),
        *rest,
    ]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _reason(state: str, reason: str | None, taken: int | None, submitted: int) -> str | None:
    """Return why a message is unknown, or may not have been taken although its request was accepted.

    :param taken: how many messages of the request the service took; None where it did not say.
    """
    if state == ACCEPTED and taken is not None and taken < submitted:
        return f"the service took {taken} of the request's {submitted} {by_count(submitted, 'message')}"
    return reason


def _written(number: int | None) -> str | None:
    if number is None:
        return None
    return FORGOTTEN if number == FORGOTTEN_NUMBER else str(number)


def _moments(seconds: tuple[float | None, ...]) -> list[datetime | None]:
    return [None if each is None else datetime.fromtimestamp(each, timezone.utc) for each in seconds]


@contextmanager
def _appearing(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Open the file, which appears once it is complete; its errors are raised as the command's own."""
    try:
        _refuse_existing(path, overwrite=overwrite)
        with whole_file(path, overwrite=overwrite) as file:
            yield file
    except FileExistsError:
        raise InputError(f"{path} is there already") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or type(error).__name__}") from None


def _refuse_existing(path: Path, *, overwrite: bool) -> None:
    if path.is_dir() or (os.path.lexists(path) and not overwrite):
        raise FileExistsError
