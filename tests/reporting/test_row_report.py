from __future__ import annotations

import io
import random
from collections import Counter
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.keys import request_of
from support.planning import checked
from support.sending import EVENT, close

from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.requests import RequestRow
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.recipients.numbers import NO_CODE
from airflow_provider_sms.reporting.row_counts import COUNTS, count_rows
from airflow_provider_sms.reporting.row_report import (
    LONGEST_REASON,
    ROWS_AT_ONCE,
    SCHEMA,
    RowStatus,
    status_of,
    write_row_report,
)


def numbers(count, start=0):
    return [str(27_820_000_000 + n) for n in range(start, start + count)]


def table_of(destinations, **columns):
    return pa.table({"destination": pa.array(destinations, pa.string()), **columns})


def check(rows, ledger=None, **how):
    """Check a table as an attempt does that has this ledger."""
    return checked(rows, **{"message": "Hi", "campaign": ledger, **how})


def hold(ledger, table, rows, state=None, seconds=60.0, **fields):
    """Claim the messages of rows in a request, record what became of it, if anything, and return its id."""
    keys = [key for batch in table.spool.batches() for key in batch.columns.column("key").to_pylist()]
    chunk = request_of([keys[row] for row in rows], [None] * len(rows))
    (claim,) = ledger.commit(chunks=[chunk], claim_seconds=seconds)
    if state is not None and claim.request_id is not None:
        close(ledger, claim.request_id, state, **fields)
    return claim.request_id


def report(table, ledger=None, ended=None):
    """Write the report of an attempt, and return its rows, which the summary counts alike."""
    file = io.BytesIO()
    write_row_report(file, table.spool, ledger, ended)
    written = pq.read_table(file)
    assert written.schema.remove_metadata().equals(SCHEMA)
    assert written["row"].to_pylist() == list(range(len(written)))
    rows = written.to_pylist()
    if ledger is not None:
        counted = count_rows(table.spool, table.counts, ledger)
        assert counts(rows) == {name: getattr(counted, name) for name in COUNTS if getattr(counted, name)}
    return rows


def counts(rows):
    return dict(Counter(row["status"] for row in rows))


def test_each_row_says_what_became_of_it(enter, clock):
    """One row for each of the source, in its order, with the request, the event and the time of its message."""
    ledger, table = enter(), check(table_of([*numbers(2), None, "0821", *numbers(1), *numbers(10, 2)]))
    hold(ledger, table, [0, 1, *range(5, 13)], ACCEPTED, event_id=EVENT, messages=10)
    hold(ledger, table, [13, 14], UNKNOWN, reason="the answer was lost")
    found = report(table, ledger)
    at = datetime.fromtimestamp(clock(), timezone.utc)
    accepted = {"status": "accepted", "reason": None, "request_id": 1, "event_id": EVENT, "sent_at": at}
    lost = {"status": "unknown", "reason": "the answer was lost", "request_id": 2, "event_id": None, "sent_at": at}
    none = {"request_id": None, "event_id": None, "sent_at": None}
    assert found[0] == {"row": 0, "destination": "27820000000", **accepted}
    assert found[2] == {"row": 2, "destination": None, "status": "invalid", "reason": "destination: no number", **none}
    length = f"destination: {NO_CODE}"
    assert found[3] == {"row": 3, "destination": "0821", "status": "invalid", "reason": length, **none}
    repeat = {"status": "duplicate", "reason": "the same message as an earlier row", **none}
    assert found[4] == {"row": 4, "destination": "27820000000", **repeat}
    assert found[14] == {"row": 14, "destination": "27820000011", **lost}
    assert counts(found) == {"accepted": 10, "unknown": 2, "duplicate": 1, "invalid": 2}


def test_a_later_try_finds_what_earlier_ones_did(enter):
    """What others sent was sent already, with their request and event; of what is free the reason is the try's end.

    A try that goes on after a wait enters the ledger once more, and is one try.
    """
    ledger, rows = enter(1), table_of(numbers(30))
    table = check(rows)
    hold(ledger, table, range(10), ACCEPTED, event_id=EVENT)
    hold(ledger, table, range(10, 20), UNKNOWN)
    hold(ledger, table, range(20, 30), NOT_SENT)
    for same in (ledger, enter(1)):
        found = report(table, same, "403: no credit")
        assert counts(found) == {"accepted": 10, "unknown": 10, "not_sent": 10}
        assert [found[29][name] for name in ("reason", "request_id", "sent_at")] == ["403: no credit", None, None]
    retry = enter(2)
    table = check(rows, retry)
    hold(retry, table, range(20, 30), ACCEPTED, event_id=EVENT + 3)
    found = report(table, retry)
    assert counts(found) == {"already_sent": 10, "unknown": 10, "accepted": 10}
    assert (found[0]["event_id"], found[29]["event_id"]) == (EVENT, EVENT + 3)


def test_what_was_superseded_is_reported_with_the_request_that_holds_it_now(enter):
    """What was not sent again is unknown: it may have been sent, though no request holds it."""
    ledger, table = enter(), check(table_of(numbers(25)))
    lost = hold(ledger, table, range(20), UNKNOWN)
    hold(ledger, table, range(20, 25), ACCEPTED)
    ledger.supersede([lost])
    hold(ledger, table, range(10, 20), ACCEPTED)
    found = report(table, ledger)
    assert counts(found) == {"accepted": 15, "unknown": 10}
    vain = "a request that had it may have been sent, and it was not sent again yet"
    assert {(row["status"], row["request_id"], row["reason"]) for row in found} == {
        ("accepted", 2, None),
        ("accepted", 3, None),
        ("unknown", None, vain),
    }


def test_messages_of_a_request_that_was_taken_in_part_are_accepted(enter):
    """Who was left out is not known; the reason says how many, also at a later try, which does not send them."""
    ledger, table = enter(1), check(table_of(numbers(20)))
    hold(ledger, table, range(10), ACCEPTED, messages=7)
    hold(ledger, table, range(10, 20), ACCEPTED, messages=10)
    words = "the service took 7 of the request's 10 messages, and does not say which"
    for its, status in ((ledger, "accepted"), (enter(2), "already_sent")):
        found = report(check(table_of(numbers(20)), its), its)
        assert counts(found) == {status: 20}
        assert [row["reason"] for row in found] == [words] * 10 + [None] * 10


def in_pieces(table, chance):
    """The same table, in as many chunks as chance has it: so it is read in small blocks."""
    cuts = sorted(chance.sample(range(1, len(table)), chance.randint(0, 9)))
    pieces = [table.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    return pa.concat_tables(pieces)


@pytest.mark.parametrize("seed", range(6))
def test_every_report_counts_as_the_summary_does(enter, clock, seed):
    """Whatever became of whichever requests, of whichever try: each row is under the status that counted it."""
    chance = random.Random(seed)
    rows = table_of([chance.choice(numbers(70)) if chance.random() < 0.9 else None for _ in range(100)])
    ends = [None, ACCEPTED, ACCEPTED, UNKNOWN, NOT_SENT]
    for try_number in range(1, 4):
        ledger, other = enter(try_number), enter(try_number, task_id="other")
        table = check(in_pieces(rows, chance), ledger, resends=chance.random() < 0.5)
        texted = [row for row, number in enumerate(rows["destination"].to_pylist()) if number]
        for _ in range(chance.randint(0, 12)):
            its, end = chance.choice([ledger, ledger, other]), chance.choice(ends)
            request_id = hold(its, table, chance.sample(texted, 7), end)
            if end == UNKNOWN and request_id is not None and chance.random() < 0.5:
                its.supersede([request_id])
            clock.now += chance.choice([0, 0, 0, 30])
        assert len(report(table, ledger)) == 100


def test_a_claim_without_an_outcome_is_unknown(enter, clock):
    """Whether its deadline has passed changes the reason and nothing else."""
    mine, other, table = enter(2), enter(1), check(table_of(numbers(10)))
    hold(other, table, range(4))
    hold(other, table, range(4, 6), seconds=6.0)
    hold(mine, table, range(6, 10))
    clock.now += 30
    found = report(table, mine)
    assert counts(found) == {"unknown": 10}
    assert [found[row]["reason"] for row in (0, 4, 6)] == [
        "claimed, and no outcome was recorded yet",
        LAPSED,
        "claimed, and no outcome was recorded yet",
    ]
    assert {row["sent_at"].timestamp() for row in found} == {clock.now - 30}


def test_a_task_that_failed_before_it_sent_anything_sent_nothing():
    """Rows that were refused before the first claim are not sent, and say why; there is no ledger to ask yet."""
    words = f"1 of 5 rows cannot be texted: 27821234567. {'Mend the rows. ' * 100}"
    found = report(check(table_of([*numbers(3), *numbers(1), "x"])), ended=words)
    assert counts(found) == {"not_sent": 3, "duplicate": 1, "invalid": 1}
    assert {row["reason"] for row in found[:3]} == {words.replace("27821234567", "2782*****67")[:LONGEST_REASON]}


def test_a_dry_run_reports_rows_as_they_were_checked():
    """It has no ledger of its own: what the check found there is what it says, and the rest is not sent."""
    table = check(table_of([*numbers(6), *numbers(1), "x"]))
    found = (Status.FREE, Status.AGAIN, Status.UNKNOWN, Status.ALREADY_SENT, Status.SUPPRESSED)
    table.spool.statuses[: len(found)] = found
    statuses = [row["status"] for row in report(table, ended="a dry run sends nothing")]
    assert statuses[:5] == ["not_sent", "unknown", "unknown", "already_sent", "suppressed"]
    assert statuses[5:] == ["not_sent", "duplicate", "invalid"]


@pytest.mark.parametrize("rows", [[], [{"destination": None}] * 3], ids=["no rows", "no numbers"])
def test_a_source_without_anybody_gives_a_report(rows):
    """A table that is empty, or has no value at all, gives a file with all columns."""
    assert [(row["destination"], row["status"]) for row in report(check(rows))] == [(None, "invalid")] * len(rows)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([27820000000, 12, None, -27820000001]), ["27820000000", "12", None, "-27820000001"]),
        (pa.array([27820000000.0, 0.5, float("nan"), 1e20]), ["27820000000", "0.5", None, "1e+20"]),
        (pa.array([" +27 82 000 0000", "  x ", "  ", "2.78E+10"]), ["27820000000", "  x ", None, "2.78E+10"]),
        (pa.nulls(2), [None, None]),
    ],
    ids=["integers", "floats", "text", "null"],
)
def test_numbers_are_cleaned_or_as_they_were_written(column, expected):
    """What cannot be read as a number stands there as the source has it, so that it can be found and mended."""
    assert [row["destination"] for row in report(check(pa.table({"destination": column})))] == expected


def test_a_row_that_lacks_a_value_keeps_its_number():
    """The reason names the column to blame, and the number is cleaned, since nothing is wrong with it."""
    table = check(table_of(["+27 82 000 0000"], name=pa.nulls(1, pa.string())), message="Hi {name}")
    (row,) = report(table)
    assert [row[name] for name in ("destination", "status", "reason")] == ["27820000000", "invalid", "name: no value"]


def test_long_reports_are_written_as_they_are_made():
    """Rows leave the memory in row groups of a bounded size, through a file that can only be written to."""

    class Pipe(io.RawIOBase):
        taken = io.BytesIO()

        def writable(self):
            return True

        def write(self, data):
            return self.taken.write(data)

    pipe = Pipe()
    write_row_report(pipe, check(table_of(numbers(2 * ROWS_AT_ONCE + 1))).spool, None, None)
    metadata = pq.ParquetFile(pipe.taken).metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 1]


# The status of a request's messages

BALANCE = "The balance fell by 100, exactly what request 7 costs: it was taken."
REFUSAL = "bulkmessages: the service refused the request (HTTP 400, 10042): no route to 2782*****01"


@pytest.mark.parametrize(
    ("state", "reason", "verdict", "told"),
    [
        pytest.param(ACCEPTED, BALANCE, "charged", BALANCE, id="the balance told, and there is no response to look at"),
        pytest.param(ACCEPTED, "timeout", None, None, id="a person said that it was sent"),
        pytest.param(ACCEPTED, "timeout", "undecided", None, id="and the balance told nothing"),
        pytest.param(UNKNOWN, REFUSAL, None, REFUSAL, id="a status beside a code is no number of a person"),
    ],
)
@pytest.mark.parametrize(("mine", "status"), [(True, "accepted"), (False, "already_sent")])
def test_the_reason_of_a_message_is_that_of_its_state(state, reason, verdict, told, mine, status):
    """Why a request was unknown is none once it is accepted; a recorded reason was masked before, and stays so."""
    evidence = KeptEvidence(verdict, BALANCE, 3.0) if verdict else None
    record = RequestRow(7, "c", "bulk", state, 1, None, 1, 1.5, 2.5, None, reason, "d", "t", "r", -1, 1)
    found = status_of(record._replace(evidence=evidence), mine=mine)
    status, at = (status, 2_500_000) if state == ACCEPTED else ("unknown", 1_500_000)
    assert found == RowStatus(status, told, 7, None, at)
