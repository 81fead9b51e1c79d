from __future__ import annotations

import io
import json
import random
from collections import Counter
from datetime import datetime, timezone
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.composed import composed
from support.keys import request_of
from support.sending import claimant, failing

from airflow_provider_sms.exceptions import NotSentError, RefusedError, ThrottledError, UnknownOutcomeError
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, UNKNOWN
from airflow_provider_sms.ledger.requests import RequestRow
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.spool import Status, messages_to_send
from airflow_provider_sms.planning.check import CheckedTable
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.recipients.numbers import NO_CODE
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.reporting.row_counts import COUNTS, count_rows
from airflow_provider_sms.reporting.row_report import (
    LONGEST_REASON,
    ROWS_AT_ONCE,
    SCHEMA,
    RowStatus,
    status_of,
    write_row_report,
)
from airflow_provider_sms.sending.attempt_loop import send
from airflow_provider_sms.service.responses import parse_send_response
from airflow_provider_sms.stop_flag import StopFlag

LOST = UnknownOutcomeError("the answer was lost")
REFUSED = RefusedError("403: credit insufficient", status=403)
EVENT = 9_007_199_254_740_993
"""The event id of the first request of the service: no float holds it."""


def numbers(count, start=0):
    return [str(27_820_000_000 + n) for n in range(start, start + count)]


def table_of(destinations, **columns):
    return pa.table({"destination": pa.array(destinations, pa.string()), **columns})


class Campaign:
    """A table, sent by one try after the other, with a report after each."""

    def __init__(self, table, store, sender, enter, message="Hi"):
        self.composer = Composer(message, None)
        self._store = store
        self._sender = sender
        self._enter = enter
        self.table = CheckedTable(self.composer, Prices())
        self.table.read(open_source(table), StopFlag())
        self.check()

    def check(self, ledger=None, on_unknown="fail"):
        """Decide the status of each row, as it is in the ledger now."""
        campaign = ledger or CampaignReader(self._store, "c", claimant())
        self.table.counts.clear()
        self.table.decide(StopFlag(), None, campaign, resends=on_unknown == "resend")

    def send(self, try_number=1, *, on_unknown="fail", chunk_size=10, **options):
        """Send, and count."""
        self.ledger, spool = self._enter(try_number), self.table.spool
        self.check(self.ledger, on_unknown)
        sending = self._sender(self.ledger, on_unknown=on_unknown, **options)
        sending.sender.noted.update(self.table.held_by)
        table = partial(messages_to_send, spool, StopFlag(), chunk_size)
        free = partial(table, most=Status.AGAIN, are_free=lambda keys: self.ledger.look(keys).are_free)
        send(sending.sender, sending.settle, table(), free)
        self.error = sending.error
        return self

    @property
    def counts(self):
        """The seven counts of the summary, without those that are 0."""
        found = count_rows(self.table.spool, self.table.counts, self.ledger)
        return {name: getattr(found, name) for name in COUNTS if getattr(found, name)}

    def report(self, **how):
        """Write the report of the last try, and give its rows."""
        return self.write(**{"ledger": self.ledger, "ended": self.error and str(self.error), **how})

    def write(self, **how):
        file = io.BytesIO()
        write_row_report(file, self.table.spool, **{"ended": None, **how})
        rows = pq.read_table(file)
        assert rows.schema.remove_metadata().equals(SCHEMA)
        assert rows["row"].to_pylist() == list(range(len(rows)))
        return rows.to_pylist()


@pytest.fixture
def campaign(store, sender, enter):
    def campaign(table, **how):
        return Campaign(table, store, sender, enter, **how)

    return campaign


def counts(rows):
    return dict(Counter(row["status"] for row in rows))


def partly(messages):
    """Script an answer that took so many messages."""

    def step(service, submitted, number):
        service.take(submitted, number)
        body = {"Cost": 1, "RemainingBalance": 9, "EventId": EVENT + number, "Messages": messages, "Parts": messages}
        return parse_send_response(json.dumps(body).encode())

    return step


def test_each_row_says_what_became_of_it(campaign, service, clock):
    """One row for each of the source, in its order, with the request, the event and the time of its message."""
    rows = [*numbers(2), None, "0821", *numbers(1), *numbers(10, 2)]
    send = campaign(table_of(rows))
    service.script = [None, failing(LOST)]
    send.send(concurrency=1)
    found = send.report()
    at = datetime.fromtimestamp(clock(), timezone.utc)
    accepted = {"status": "accepted", "reason": None, "request_id": 1, "event_id": EVENT, "sent_at": at}
    unknown = {"status": "unknown", "reason": str(LOST), "request_id": 2, "event_id": None, "sent_at": at}
    none = {"request_id": None, "event_id": None, "sent_at": None}
    assert found[0] == {"row": 0, "destination": "27820000000", **accepted}
    assert found[2] == {"row": 2, "destination": None, "status": "invalid", "reason": "destination: no number", **none}
    length = f"destination: {NO_CODE}"
    assert found[3] == {"row": 3, "destination": "0821", "status": "invalid", "reason": length, **none}
    repeat = {"status": "duplicate", "reason": "the same message as an earlier row", **none}
    assert found[4] == {"row": 4, "destination": "27820000000", **repeat}
    assert found[14] == {"row": 14, "destination": "27820000011", **unknown}
    assert counts(found) == send.counts == {"accepted": 10, "unknown": 2, "duplicate": 1, "invalid": 2}


def test_a_later_try_finds_what_earlier_ones_did(campaign, service, enter):
    """A try's report counts as its summary does: what others sent was sent already, with their request and event.

    A try that goes on after a wait enters the ledger once more, and is one try.
    """
    send = campaign(table_of(numbers(30)))
    service.script = [None, failing(LOST), failing(REFUSED)]
    words = str(send.send(1, concurrency=1).error)
    rows = send.report()
    assert counts(rows) == send.counts == {"accepted": 10, "unknown": 10, "not_sent": 10}
    assert counts(send.report(ledger=enter(1))) == counts(rows)
    assert [rows[29][name] for name in ("reason", "request_id", "sent_at")] == [words, None, None]
    send.send(2)
    rows = send.report()
    assert counts(rows) == send.counts == {"already_sent": 10, "unknown": 10, "accepted": 10}
    assert (rows[0]["event_id"], rows[29]["event_id"]) == (EVENT, EVENT + 3)


def test_what_was_superseded_is_reported_with_the_request_that_holds_it_now(campaign, service):
    """What was not sent again is unknown: it may have been sent, though no request holds it."""
    send = campaign(table_of(numbers(25)))
    service.script = [failing(LOST), failing(LOST), None, None, failing(REFUSED)]
    send.send(on_unknown="resend", concurrency=1)
    rows = send.report()
    assert counts(rows) == send.counts == {"accepted": 15, "unknown": 10}
    found = {(row["status"], row["request_id"], row["reason"]) for row in rows}
    vain = "a request that had it may have been sent, and it was not sent again yet"
    assert found == {("accepted", 3, None), ("accepted", 4, None), ("unknown", None, vain)}


def test_messages_of_a_request_that_was_taken_in_part_are_accepted(campaign, service):
    """Who was left out is not known; the reason says how many, also at a later try, which does not send them."""
    service.script = [partly(7)]
    send = campaign(table_of(numbers(20)))
    send.send(concurrency=1)
    words = "the service took 7 of the request's 10 messages, and does not say which"
    for ledger, status in ((send.ledger, "accepted"), (None, "already_sent")):
        rows = (send if ledger else send.send(2)).report()
        assert counts(rows) == send.counts == {status: 20}
        assert [row["reason"] for row in rows] == [words] * 10 + [None] * 10


def in_pieces(table, chance):
    """The same table, in as many chunks as chance has it: so it is read in small blocks."""
    cuts = sorted(chance.sample(range(1, len(table)), chance.randint(0, 9)))
    pieces = [table.slice(start, end - start) for start, end in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    return pa.concat_tables(pieces)


def anything(chance):
    """What a request may come to."""
    taken = chance.randint(0, 9)
    return chance.choice(
        [
            None,
            failing(LOST),
            failing(LOST, accepted=True),
            failing(NotSentError("connection refused")),
            failing(ThrottledError("429", retry_after=0.001)),
            partly(taken),
            *[failing(REFUSED)] * (chance.random() < 0.3),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_report_counts_as_the_summary_does(campaign, service, seed):
    """Whatever happens to whichever requests, in whichever try: each row is under the status that counted it."""
    chance = random.Random(seed)
    people = [chance.choice(numbers(70)) if chance.random() < 0.9 else None for _ in range(100)]
    send = campaign(in_pieces(table_of(people), chance))
    for try_number in range(1, 4):
        stop = StopFlag()
        ends = chance.choice([None, None, len(service.requests) + chance.randint(0, 6)])
        service.before_each = lambda messages, ends=ends, stop=stop: (
            stop.set() if ends == len(service.requests) else None
        )
        service.script = [anything(chance) for _ in range(chance.randint(0, 12))]
        on_unknown = chance.choice(["fail", "fail", "resend"])
        send.send(try_number, stop=stop, concurrency=chance.randint(1, 3), on_unknown=on_unknown, chunk_size=7)
        assert counts(send.report()) == send.counts


def test_a_claim_without_an_outcome_is_unknown(campaign, enter, clock):
    """Whether its deadline has passed changes the reason and nothing else."""
    send = campaign(table_of(numbers(10)))
    mine, other = enter(2), enter(1)
    other.commit(chunks=[chunk_of(send, numbers(4))], claim_seconds=60)
    other.commit(chunks=[chunk_of(send, numbers(2, 4))], claim_seconds=6)
    mine.commit(chunks=[chunk_of(send, numbers(4, 6))], claim_seconds=60)
    clock.now += 30
    found = send.write(ledger=mine)
    assert counts(found) == {"unknown": 10}
    assert [found[row]["reason"] for row in (0, 4, 6)] == [
        "claimed, and no outcome was recorded yet",
        LAPSED,
        "claimed, and no outcome was recorded yet",
    ]
    assert {row["sent_at"].timestamp() for row in found} == {clock.now - 30}


def test_a_task_that_failed_before_it_sent_anything_sent_nothing(campaign):
    """Rows that were refused before the first claim are not sent, and say why; there is no ledger to ask yet."""
    send = campaign(table_of([*numbers(3), *numbers(1), "x"]))
    words = f"1 of 5 rows cannot be texted: 27821234567. {'Mend the rows. ' * 100}"
    found = send.write(ledger=None, ended=words)
    assert counts(found) == {"not_sent": 3, "duplicate": 1, "invalid": 1}
    assert {row["reason"] for row in found[:3]} == {words.replace("27821234567", "2782*****67")[:LONGEST_REASON]}


def test_a_dry_run_reports_rows_as_they_were_checked(campaign):
    """It has no ledger of its own: what the check found there is what it says, and the rest is not sent."""
    send = campaign(table_of([*numbers(6), *numbers(1), "x"]))
    found = (Status.FREE, Status.AGAIN, Status.UNKNOWN, Status.ALREADY_SENT, Status.SUPPRESSED)
    send.table.spool.statuses[: len(found)] = found
    statuses = [row["status"] for row in send.write(ledger=None, ended="a dry run sends nothing")]
    assert statuses[:5] == ["not_sent", "unknown", "unknown", "already_sent", "suppressed"]
    assert statuses[5:] == ["not_sent", "duplicate", "invalid"]


@pytest.mark.parametrize("rows", [[], [{"destination": None}] * 3], ids=["no rows", "no numbers"])
def test_a_source_without_anybody_gives_a_report(campaign, rows):
    """A table that is empty, or has no value at all, gives a file with all columns."""
    send = campaign(rows)
    found = send.write(ledger=None)
    assert [(row["destination"], row["status"]) for row in found] == [(None, "invalid")] * len(rows)


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
def test_numbers_are_cleaned_or_as_they_were_written(campaign, column, expected):
    """What cannot be read as a number stands there as the source has it, so that it can be found and mended."""
    send = campaign(pa.table({"destination": column}))
    send.send()
    assert [row["destination"] for row in send.report()] == expected


def test_a_row_that_lacks_a_value_keeps_its_number(campaign):
    """The reason names the column to blame, and the number is cleaned, since nothing is wrong with it."""
    send = campaign(table_of(["+27 82 000 0000"], name=pa.nulls(1, pa.string())), message="Hi {name}")
    (row,) = send.write(ledger=None)
    assert [row[name] for name in ("destination", "status", "reason")] == ["27820000000", "invalid", "name: no value"]


def test_long_reports_are_written_as_they_are_made(campaign):
    """Rows leave the memory in row groups of a bounded size, through a file that can only be written to."""

    class Pipe(io.RawIOBase):
        taken = io.BytesIO()

        def writable(self):
            return True

        def write(self, data):
            return self.taken.write(data)

    count = 2 * ROWS_AT_ONCE + 1
    send = campaign(table_of(numbers(count)))
    pipe = Pipe()
    write_row_report(pipe, send.table.spool, None, None)
    metadata = pq.ParquetFile(pipe.taken).metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 1]


def chunk_of(send, destinations):
    """What a try would claim of these people."""
    (batch,) = open_source(table_of(destinations)).batches()
    prepared = composed(send.composer, batch)
    return request_of(prepared.keys, prepared.destinations)


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
