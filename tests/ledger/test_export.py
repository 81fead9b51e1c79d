from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from datetime import datetime, timezone

import pyarrow.parquet as pq
import pytest
from support.sending import claimant, people

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger import export
from airflow_provider_sms.ledger.account import CHARGED, KeptEvidence
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.decisions import ask, close_by_balance, resolve
from airflow_provider_sms.ledger.export import SCHEMA, export_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.sqlite import open_sqlite

EXPORTER = """
import sys
from pathlib import Path
from airflow_provider_sms.ledger import export
from airflow_provider_sms.ledger.sqlite import open_sqlite

batch = export._batch

def slow(block):
    print("exporting", flush=True)
    sys.stdin.readline()
    return batch(block)

export._batch = slow
export.export_campaign(open_sqlite(Path(sys.argv[1])), "c", Path(sys.argv[2]))
"""
EVENT = 9_007_199_254_740_993


def claim_all(ledger, requests):
    chunks = [Chunk([m.key for m in messages], [m.destination for m in messages]) for messages in requests]
    return [claimed.request_id for claimed in ledger.commit(chunks=chunks, claim_seconds=60.0)]


def claim(ledger, messages):
    return claim_all(ledger, [messages])[0]


def send(ledger, messages, state=ACCEPTED, **fields):
    request_id = claim(ledger, messages)
    ledger.commit(outcomes=[Outcome(request_id, state, **fields)])
    return request_id


@pytest.fixture
def file(tmp_path):
    return tmp_path / "campaign.parquet"


def test_a_row_says_all_that_is_known_of_a_message(store, enter, clock, file):
    """Number, what became of it and why, which request and event, when, and who sent it, in their types."""
    ledger = enter(3, map_index=2)
    clock.now += 0.25
    request_id = claim(ledger, people(1))
    clock.now += 2
    ledger.commit(outcomes=[Outcome(request_id, ACCEPTED, event_id=EVENT)])
    assert export_campaign(store, "c", file) == 1
    table = pq.read_table(file)
    assert table.schema == SCHEMA
    assert table.to_pylist() == [
        {
            "destination": people(1)[0].destination,
            "state": "accepted",
            "reason": None,
            "request_id": request_id,
            "event_id": EVENT,
            "claimed_at": datetime.fromtimestamp(1_000_000.25, timezone.utc),
            "finished_at": datetime.fromtimestamp(1_000_002.25, timezone.utc),
            "dag_id": "d",
            "task_id": "t",
            "run_id": "r",
            "map_index": 2,
            "try_number": 3,
        }
    ]


def test_each_message_that_is_held_is_a_row(store, enter, file):
    """Accepted, unknown and lapsed are there, each with its reason; what was not sent and other campaigns are not."""
    ledger = enter()
    send(ledger, people(3))
    send(ledger, people(2, 10), UNKNOWN, reason="read timeout")
    send(ledger, people(4, 20), NOT_SENT)
    claim(ledger, people(1, 30))
    send(enter(campaign="other"), people(7))
    assert export_campaign(store, "c", file) == 6
    rows = pq.read_table(file).to_pylist()
    assert [(row["state"], row["reason"]) for row in rows] == [
        *[("accepted", None)] * 3,
        *[("unknown", "read timeout")] * 2,
        ("unknown", LAPSED),
    ]
    assert {row["destination"] for row in rows} == {m.destination for m in people(3) + people(2, 10) + people(1, 30)}


@pytest.mark.parametrize("asked", [False, True], ids=["unasked", "asked"])
def test_what_a_person_calls_accepted_has_no_reason(store, enter, clock, file, asked):
    """It is unknown no more. Its time is when it was called unknown, or else that of its claim."""
    ledger = enter()
    ids = [send(ledger, people(1), UNKNOWN, reason="read timeout"), claim(ledger, people(1, 10))]
    claimed_at = clock.now
    clock.now += 100
    if asked:
        for try_number in (1, 2):
            who = claimant(try_number, task_id=f"asks {try_number}")
            ask(store, "c", who, register(store, who), ids)
    for request_id in ids:
        resolve(store, request_id, ACCEPTED, "ann")
    assert export_campaign(store, "c", file) == 2
    rows = pq.read_table(file).to_pylist()
    assert [(row["state"], row["reason"]) for row in rows] == [("accepted", None)] * 2
    assert {row["finished_at"] for row in rows} == {datetime.fromtimestamp(claimed_at, timezone.utc)}


def test_what_the_balance_calls_accepted_has_its_words(store, enter, clock, file):
    """They are all that tells why it counts as accepted."""
    request_id = send(enter(), people(1), UNKNOWN, reason="read timeout")
    evidence = KeptEvidence(CHARGED, "the balance fell by what it costs", clock.now)
    close_by_balance(store, "c", {request_id: (ACCEPTED, evidence)})
    export_campaign(store, "c", file)
    [row] = pq.read_table(file).to_pylist()
    assert (row["state"], row["reason"]) == ("accepted", "the balance fell by what it costs")


def test_a_group_has_no_number(store, enter, file):
    """The message of a group is a row without a destination."""
    ledger = enter()
    ledger.commit(chunks=[Chunk([people(1)[0].key], [None])], claim_seconds=60.0)
    assert export_campaign(store, "c", file) == 1
    assert pq.read_table(file).column("destination").to_pylist() == [None]


def test_a_campaign_without_messages_is_a_file_without_rows(store, enter, file):
    """The file is there and has its columns."""
    enter()
    assert (export_campaign(store, "c", file), pq.read_table(file).schema) == (0, SCHEMA)


def test_many_blocks_make_one_file(store, enter, file, monkeypatch):
    """However many blocks are read, each message is there once."""
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 7)
    ledger = enter()
    claim_all(ledger, [people(10, start) for start in range(0, 100, 10)])
    assert export_campaign(store, "c", file) == 100
    destinations = pq.read_table(file).column("destination").to_pylist()
    assert sorted(destinations) == [m.destination for m in people(100)]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_campaign(store, enter, tmp_path, monkeypatch):
    """Four times the messages take about the same memory."""
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 500)
    peaks = []
    for name, count in (("small", 5_000), ("large", 20_000)):
        ledger = enter(campaign=name)
        claim_all(ledger, [people(100, start) for start in range(0, count, 100)])
        export_campaign(store, name, tmp_path / f"{name}-first.parquet")  # what is loaded once is loaded now
        tracemalloc.start()
        export_campaign(store, name, tmp_path / f"{name}.parquet")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


def test_a_file_that_is_there_stays(store, enter, file):
    """Nothing is overwritten unless that is asked for."""
    send(enter(), people(1))
    file.write_text("dear to somebody")
    with pytest.raises(InputError, match="is there already"):
        export_campaign(store, "c", file)
    assert file.read_text() == "dear to somebody"
    assert export_campaign(store, "c", file, overwrite=True) == 1
    assert pq.read_table(file).num_rows == 1


def test_a_file_that_appears_meanwhile_stays(store, enter, file, monkeypatch):
    """Also what somebody else has written while the export ran is not overwritten."""
    send(enter(), people(1))
    batch = export._batch

    def slow(block):
        file.write_text("dear to somebody")
        return batch(block)

    monkeypatch.setattr(export, "_batch", slow)
    with pytest.raises(InputError, match="is there already"):
        export_campaign(store, "c", file)
    assert (file.read_text(), list(file.parent.glob(".*"))) == ("dear to somebody", [])


def test_half_a_file_is_never_seen(store, enter, file, monkeypatch):
    """Until it is whole the file has no name; where the export fails, nothing is left."""
    send(enter(), people(1))
    seen, before = [], set(file.parent.iterdir())

    def failing(block):
        seen.append(set(file.parent.iterdir()) - before)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "_batch", failing)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        export_campaign(store, "c", file)
    assert (seen, set(file.parent.iterdir()) - before) == ([set()], set())


def test_an_export_that_is_killed_leaves_no_numbers(enter, file, tmp_path):
    """A SIGKILL in the middle of an export leaves no file in its folder, whole or in part."""
    (tmp_path / "out").mkdir()
    store = open_sqlite(tmp_path / "own.db")
    send(enter(into=store), people(1))
    store.close()
    command = [sys.executable, "-c", EXPORTER, str(tmp_path / "own.db"), str(tmp_path / "out" / "campaign.parquet")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"exporting\n"
        process.send_signal(signal.SIGKILL)
    assert (process.returncode, list((tmp_path / "out").iterdir())) == (-signal.SIGKILL, [])


def test_a_request_that_was_taken_in_part_says_so(store, enter, file):
    """Its people are not all accepted, and the ledger does not know which are."""
    ledger = enter()
    whole, in_part = claim_all(ledger, [people(1), people(4)[1:]])
    ledger.commit(outcomes=[Outcome(whole, ACCEPTED, messages=1), Outcome(in_part, ACCEPTED, messages=2)])
    send(ledger, people(5)[4:], UNKNOWN, reason="timeout")
    export_campaign(store, "c", file)
    part = "the service took 2 of the request's 3 messages"
    assert pq.read_table(file)["reason"].to_pylist() == [None, part, part, part, "timeout"]


def test_the_file_is_its_owners_alone(store, enter, file):
    """It holds numbers, as the ledger does: others on the machine need not read them."""
    send(enter(), people(1))
    export_campaign(store, "c", file)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["nowhere/campaign.parquet", "."])
def test_a_place_that_cannot_be_written_is_named(store, enter, tmp_path, place):
    """A folder, or a file in a folder that is not there: the error says which."""
    enter()
    with pytest.raises(InputError, match=f"{tmp_path}"):
        export_campaign(store, "c", tmp_path / place, overwrite=place != ".")


def test_a_campaign_that_is_not_there_makes_no_file(store, file):
    """A mistyped name leaves nothing behind."""
    with pytest.raises(InputError, match="no campaign 'sprign'"):
        export_campaign(store, "sprign", file)
    assert not file.exists()
