from __future__ import annotations

import errno
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import orjson
import pytest

NUMBER, OTHER, NOWHERE = "27821234567", "27831234567", "27991234567"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "witness.jsonl"


def lines_of(log):
    return [orjson.loads(line) for line in log.read_bytes().splitlines()]


def test_every_accepted_message_is_a_line(start, log):
    """The witness has event, request, index, number, text, kind and time of each accepted message, and nothing else."""
    client = start(log=log, groups={"one": [OTHER]})
    first = client.bulk((NOWHERE, "Nowhere"), (NUMBER, "Grüße\n")).json()
    second = client.group("Hello", "one").json()
    lines = lines_of(log)
    times = [datetime.fromisoformat(line.pop("at")) for line in lines]
    expected = [
        {
            "event_id": first["EventId"],
            "request": 1,
            "index": 1,
            "destination": NUMBER,
            "content": "Grüße\n",
            "kind": "bulk",
        },
        {
            "event_id": second["EventId"],
            "request": 2,
            "index": 0,
            "destination": OTHER,
            "content": "Hello",
            "kind": "group",
        },
    ]
    assert expected == lines
    assert all(time.utcoffset() is not None for time in times)


def test_refused_requests_leave_no_line(start, log):
    """A request that was refused, for its form or for lack of credit, is not in the witness."""
    client = start(log=log, balance=0)
    client.bulk((NUMBER, ""))
    client.bulk((NUMBER, "Hello"))
    assert lines_of(log) == []


def test_the_file_is_appended_to(start, log):
    """A sandbox that is started again keeps the lines of the earlier one."""
    for _ in range(2):
        start(log=log).bulk((NUMBER, "Hello"))
    assert len(lines_of(log)) == 2


def test_only_its_owner_may_read_the_file(start, log):
    """The witness holds numbers and texts, so no other user may read it."""
    start(log=log)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_response_waits_for_the_disk_and_nothing_else_does(start, log, monkeypatch):
    """The response to a send follows write and fsync; meanwhile other requests are served."""
    syncing, go_on, synced = threading.Event(), threading.Event(), []

    def slow_disk(descriptor):
        synced.append(os.fstat(descriptor).st_size)
        syncing.set()
        assert go_on.wait(10)

    monkeypatch.setattr(os, "fsync", slow_disk)
    client = start(log=log)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.bulk, (NUMBER, "One"), (NUMBER, "Two"))
        assert syncing.wait(10)
        balance = start().balance()
        same_sandbox = client.balance()
        waiting = not answer.done()
        go_on.set()
        assert answer.result().status_code == 200
    assert (balance.status_code, same_sandbox.status_code, waiting) == (200, 200, True)
    assert [log.stat().st_size] == synced


def test_a_request_is_one_write_and_one_fsync(start, log, monkeypatch):
    """A request of any size causes one write and one fsync."""
    calls, write, fsync = [], os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *arguments: calls.append("write") or write(*arguments))
    monkeypatch.setattr(os, "fsync", lambda *arguments: calls.append("fsync") or fsync(*arguments))
    start(log=log).bulk(*((NUMBER, f"text {index}") for index in range(100)))
    assert calls == ["write", "fsync"]
    assert len(lines_of(log)) == 100


def test_a_full_disk_accepts_nothing(start, log, monkeypatch):
    """When the witness cannot be written, the request gets 500, and is neither accepted nor charged."""

    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    client = start(log=log)
    monkeypatch.setattr(os, "fsync", full_disk)
    answer = client.bulk((NUMBER, "Hello"))
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (500, "Witness")
    assert (client.sandbox.state.balance, client.sandbox.state.accepted_messages) == (1000, [])


def test_parallel_requests_keep_their_lines_apart(start, log):
    """The lines of simultaneous requests stay whole, request by request, in the order of the memory."""
    client = start(log=log)
    with ThreadPoolExecutor(8) as pool:
        texts = [[(NUMBER, f"{request}-{index}") for index in range(20)] for request in range(16)]
        list(pool.map(lambda messages: client.bulk(*messages), texts))
    lines = lines_of(log)
    assert client.sandbox.state.accepted_messages == [(line["destination"], line["content"]) for line in lines]
    ids = [line["event_id"] for line in lines]
    assert sorted(ids) == ids
    assert list(range(20)) * 16 == [line["index"] for line in lines]


def test_a_file_that_cannot_be_opened_is_an_error_at_the_start(start, tmp_path):
    """A sandbox that cannot open its witness does not start."""
    with pytest.raises(FileNotFoundError):
        start(log=tmp_path / "missing" / "witness.jsonl")
