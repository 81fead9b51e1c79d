from __future__ import annotations

import stat
from datetime import datetime
from unittest.mock import Mock

import orjson
import pytest

from airflow_provider_sms.sandbox.contract import group_members

NUMBER, NOWHERE = "27821234567", "27991234567"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "witness.jsonl"


def lines_of(log):
    return [orjson.loads(line) for line in log.read_bytes().splitlines()]


def test_every_accepted_message_is_a_line(start, log):
    """With event, request, index, number, text, kind, parts and time; what was refused leaves none."""
    client = start(log=log, groups=["one"], balance=6)
    first = client.bulk((NOWHERE, "Nowhere"), (NUMBER, "Grüße\n")).json()["EventId"]
    second = client.group("Hello", "one").json()["EventId"]
    assert [client.bulk((NUMBER, text)).status_code for text in ("", "Hello")] == [400, 403]
    members = group_members("one")
    lines = lines_of(log)
    times = [datetime.fromisoformat(line.pop("at")) for line in lines]
    names = ("event_id", "request", "index", "destination", "content", "kind", "parts")
    expected = [(first, 1, 1, NUMBER, "Grüße\n", "bulk", 1)]
    expected += [(second, 2, place, number, "Hello", "group", 1) for place, number in enumerate(members)]
    assert lines == [dict(zip(names, values, strict=True)) for values in expected]
    assert all(time.utcoffset() is not None for time in times)


def test_only_its_owner_may_read_the_file(start, log):
    """The witness holds numbers and texts, so no other user may read it; the next sandbox appends to it."""
    for _ in range(2):
        start(log=log).bulk((NUMBER, "Hello"))
    assert (stat.S_IMODE(log.stat().st_mode), len(lines_of(log))) == (0o600, 2)


def test_what_the_witness_cannot_hold_is_not_accepted(start, log, monkeypatch, capfd):
    """The connection ends, nothing is accepted or charged, and the error is printed."""
    client = start(log=log)

    full_disk = Mock(writelines=Mock(side_effect=OSError(28, "No space left on device")))
    client.sandbox.state.close()
    monkeypatch.setattr(client.sandbox.state, "_witness", full_disk)
    with client.connect() as connection:
        client.raw_send(connection, (NUMBER, "Hello"))
        assert connection.recv(1) == b""
    assert (client.sandbox.state.balance, client.sandbox.state.accepted) == (1000, [])
    assert "No space left on device" in capfd.readouterr().err
