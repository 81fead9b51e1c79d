from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.composed import composed
from support.keys import request_of
from support.sending import claimant, failing

from airflow_provider_sms.exceptions import (
    LedgerError,
    NotSentError,
    RefusedError,
    ThrottledError,
    UnknownOutcomeError,
)
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

TOKEN = "sandbox-token-0123"
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

    def send(self, try_number=1, *, ledger=None, on_unknown="fail", chunk_size=10, **options):
        """Send, and count."""
        self.ledger, spool = ledger or self._enter(try_number), self.table.spool
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


def test_a_later_try_finds_what_earlier_ones_did(campaign, service):
    """A try's report counts as its summary does: what others sent was sent already, with their request and event."""
    send = campaign(table_of(numbers(30)))
    service.script = [None, failing(LOST), failing(REFUSED)]
    words = str(send.send(1, concurrency=1).error)
    rows = send.report()
    assert counts(rows) == send.counts == {"accepted": 10, "unknown": 10, "not_sent": 10}
    assert [rows[29][name] for name in ("reason", "request_id", "sent_at")] == [words, None, None]
    send.send(2)
    rows = send.report()
    assert counts(rows) == send.counts == {"already_sent": 10, "unknown": 10, "accepted": 10}
    assert (rows[0]["event_id"], rows[29]["event_id"]) == (EVENT, EVENT + 3)


def test_what_was_sent_again_belongs_to_the_request_that_holds_it(campaign, service):
    """A message of a superseded request is reported with the later one."""
    send = campaign(table_of(numbers(10)))
    service.script = [failing(LOST)]
    send.send(on_unknown="resend")
    rows = send.report()
    assert {(row["status"], row["request_id"]) for row in rows} == {("accepted", 2)}
    assert counts(rows) == send.counts


def test_what_was_superseded_and_not_sent_again_is_unknown(campaign, service):
    """It may have been sent, though no request holds it."""
    send = campaign(table_of(numbers(15)))
    service.script = [failing(LOST), None, failing(REFUSED)]
    send.send(on_unknown="resend", concurrency=1)
    rows = send.report()
    assert counts(rows) == send.counts == {"accepted": 5, "unknown": 10}
    assert (rows[0]["request_id"], rows[0]["reason"]) == (
        None,
        "a request that had it may have been sent, and it was not sent again yet",
    )


@pytest.mark.parametrize("event_id", [2**63 - 1, -(2**63) + 1, 2**53 + 1, 0])
def test_event_ids_are_exact(campaign, service, event_id):
    """All 64 bits of an event id arrive."""
    service.script = [lambda s, messages, number: replace(s.take(messages, number), event_id=event_id)]
    send = campaign(table_of(numbers(1)))
    send.send()
    assert [row["event_id"] for row in send.report()] == [event_id]


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


def test_a_request_of_which_nothing_was_taken_is_not_sent(campaign, service):
    """Nobody was taken: every row says so, and is free to be sent again."""
    service.script = [lambda s, messages, number: s.take(messages, number, left_out=len(messages))]
    send = campaign(table_of([*numbers(9), "27820000003"], name=[f"n{n}" for n in range(10)]), message="Hi {name}")
    send.send()
    rows = send.report()
    assert counts(rows) == send.counts == {"not_sent": 10}
    assert {row["request_id"] for row in rows} == {None}


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


def test_a_try_that_waited_counts_what_it_sent_before(campaign, enter):
    """A try that goes on after a wait enters the ledger once more, and is one try; the next one is another."""
    send = campaign(table_of(numbers(10)))
    send.send(2)
    assert counts(send.report(ledger=enter(2))) == {"accepted": 10}
    assert counts(send.report(ledger=enter(3))) == {"already_sent": 10}


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


@pytest.mark.slow
def test_a_block_may_be_of_any_number_of_requests(campaign, enter):
    """Requests of one message each are all found, though a database takes only so many parameters."""
    send, ledger = campaign(table_of(numbers(2500))), enter()
    ledger.commit(chunks=[chunk_of(send, [number]) for number in numbers(2500)])
    rows = send.write(ledger=ledger)
    assert [row["request_id"] for row in rows] == list(range(1, 2501))


def test_a_ledger_that_cannot_be_read_ends_the_report(campaign, monkeypatch):
    """Without it nothing true can be said of a row."""

    def gone(keys):
        raise LedgerError("disk is gone")

    send = campaign(table_of(numbers(10)))
    send.send()
    monkeypatch.setattr(send.ledger, "look", gone)
    with pytest.raises(LedgerError, match="disk is gone"):
        send.report()


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


def test_many_small_files_make_few_row_groups(campaign, tmp_path):
    """Row groups are of a size that readers like, whatever the source's files; rows count through all of them."""
    (tmp_path / "people").mkdir()
    for number in range(30):
        pq.write_table(table_of(numbers(7, 7 * number)), tmp_path / "people" / f"{number:02}.parquet")
    send = campaign(str(tmp_path / "people"))
    send.send()
    file = io.BytesIO()
    write_row_report(file, send.table.spool, ledger=send.ledger, ended=None)
    assert pq.ParquetFile(file).metadata.num_row_groups == 1
    assert pq.read_table(file)["destination"].to_pylist() == numbers(210)


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


@pytest.mark.parametrize(("mine", "status"), [(True, "accepted"), (False, "already_sent")])
def test_a_message_of_which_the_balance_told_says_so(mine, status):
    """There is no response to look at, so the row has the sum that stands for it."""
    words = "The balance fell by 100, exactly what request 7 costs: it was taken."
    record = RequestRow(7, "c", "bulk", ACCEPTED, 1, None, 1, 1.5, 2.5, None, words, "d", "t", "r", -1, 1)
    told = record._replace(evidence=KeptEvidence("charged", words, 3.0))
    assert status_of(told, mine=mine) == RowStatus(status, words, 7, None, 2_500_000)


def test_a_message_that_a_person_called_sent_has_no_reason():
    """Whatever the balance told: the reason in the ledger is still why the request was unknown."""
    record = RequestRow(7, "c", "bulk", ACCEPTED, 1, None, 1, 1.5, 2.5, None, "timeout", "d", "t", "r", -1, 1)
    for evidence in (None, KeptEvidence("undecided", "No balance is known before it.", 3.0)):
        assert status_of(record._replace(evidence=evidence), mine=True).reason is None


def test_a_recorded_reason_keeps_its_figures():
    """Its numbers were masked before it was recorded: a status beside a code is no number of a person."""
    reason = "bulkmessages: the service refused the request (HTTP 400, 10042): no route to 2782*****01"
    record = RequestRow(7, "c", "bulk", UNKNOWN, 1, None, 0, 1.5, 2.5, None, reason, "d", "t", "r", -1, 1)
    assert status_of(record, mine=True).reason == reason
