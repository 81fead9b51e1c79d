from __future__ import annotations

import fcntl
import json
import logging
import signal
import stat
import time
from contextlib import closing

import pytest
from sqlalchemy import text
from support.forwarder import Forwarder
from support.stoppable import attempt, started

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.execution import ledger_session
from airflow_provider_sms.execution.ledger_session import record_files
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.recovery import files_in
from airflow_provider_sms.sending import flush

NUMBERS = [str(27_820_000_000 + n) for n in range(40)]
TOKEN = "sandbox-token-0123"
KILLED_AFTER = 5.0
"""Seconds after which Airflow kills a process that it told to stop."""


def wait_until(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


@pytest.fixture
def way(postgres_ledger_url, ledger_path, airflow_home, tmp_path, monkeypatch):
    """The network between tasks and their ledger on a server."""
    url = postgres_ledger_url
    with Forwarder(f"{url.query['host']}/.s.PGSQL.5432") as way:
        server = {"conn_type": "postgres", "host": way.host, "port": way.port, "schema": url.database}
        monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", json.dumps({**server, "login": url.username}))
        monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "sms_ledger")
        monkeypatch.setenv("AIRFLOW__SMS__RECOVERY_PATH", str(tmp_path / "recovery"))
        yield way


@pytest.fixture
def folder(ledger_path, sms_default, monkeypatch):
    """The folder of this machine's recovery files; a ledger that fails is given up at once."""
    monkeypatch.setattr(flush, "FLUSH_WAITS", ())
    return ledger_path.parent / "recovery"


JOB = {"numbers": NUMBERS[:20], "campaign": "spring", "chunk_size": 10, "concurrency": 1}


def leave_a_file(monkeypatch, folder, **job):
    """Let an attempt be answered once, and lose its ledger then; return the file that it leaves."""
    commit, commits = CampaignLedger.commit, []

    def fail_after_the_first(ledger, **arguments):
        commits.append(arguments)
        if len(commits) == 1:
            return commit(ledger, **arguments)
        raise LedgerError("gone")

    def fail(*_):
        raise LedgerError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(CampaignLedger, "commit", fail_after_the_first)
        patched.setattr(CampaignLedger, "finish", fail)
        attempt(**{**JOB, **job}, try_number=1)
    (path,) = files_in(folder)
    return path


def test_the_next_attempt_records_what_the_last_one_left(folder, monkeypatch, witnessed, caplog):
    """Before it looks for earlier attempts: what was answered counts as sent, and is in no doubt."""
    path = leave_a_file(monkeypatch, folder)
    caplog.set_level(logging.INFO)
    summary = attempt(**JOB, try_number=2)
    assert (summary["already_sent"], summary["accepted"], summary["unknown"]) == (10, 10, 0)
    assert (set(witnessed().values()), files_in(folder)) == ({1}, [])
    assert f"Recorded what an earlier attempt kept in {path}, of campaign spring: request 1 is accepted" in caplog.text


def test_a_task_of_another_campaign_records_it_too(folder, monkeypatch):
    """Whoever wrote it: the machine may run no other attempt of that task."""
    leave_a_file(monkeypatch, folder)
    attempt(**{**JOB, "campaign": "summer"}, try_number=1)
    assert files_in(folder) == []
    with closing(open_ledger(None)) as store, store.read() as connection:
        assert connection.execute(text("SELECT DISTINCT state FROM sms_request")).scalars().all() == ["accepted"]


def test_a_file_has_no_text_and_no_token(folder, monkeypatch):
    """A response quotes somebody's text; the file has none of it."""
    path = leave_a_file(monkeypatch, folder, text="Dear Thandi")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_text()
    assert NUMBERS[0] in content
    assert "Thandi" not in content
    assert TOKEN not in content


def test_files_that_do_not_fit_end_no_attempt(folder, monkeypatch, caplog):
    """One of another ledger, a damaged one and one that cannot be read stay, and the log says why."""
    path = leave_a_file(monkeypatch, folder)
    foreign, damaged, unreadable = (path.with_name(f"sms-outcomes-{digit * 16}-{digit * 16}.json") for digit in "012")
    kept = json.loads(path.read_text())
    kept["origin"]["claimant"]["run_id"] = "other"
    foreign.write_text(json.dumps(kept))
    damaged.write_text(NUMBERS[0])
    unreadable.mkdir()
    summary = attempt(**JOB, try_number=2)
    assert (summary["already_sent"], summary["accepted"]) == (10, 10)
    assert files_in(folder) == [foreign, damaged, unreadable]
    for left, why in (
        (foreign, "does not have the attempt"),
        (damaged, "damaged"),
        (unreadable, "cannot be read: Is a directory"),
    ):
        (line,) = (each.getMessage() for each in caplog.records if f"The outcomes in {left}" in each.getMessage())
        assert why in line
    assert NUMBERS[0] not in caplog.text


def test_a_file_that_another_task_records_first_is_no_news(folder, monkeypatch, caplog):
    """Two tasks of a machine begin at once, and both find it: the second one says nothing of a file that is gone."""
    path = leave_a_file(monkeypatch, folder)
    with closing(open_ledger(None)) as store:
        monkeypatch.setattr(ledger_session, "files_in", lambda _: [path, path])
        caplog.clear()
        record_files(store)
    assert not path.exists()
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_what_a_killed_process_left_half_written_is_removed(folder, monkeypatch):
    """It may hold numbers, and no other file ever gets its name. What a live process is writing stays."""
    path = leave_a_file(monkeypatch, folder)
    left, live, other = (
        folder / f".{name}.{digit * 16}.partial" for name, digit in ((path.name, "0"), (path.name, "1"), ("notes", "2"))
    )
    for each in (left, live, other):
        each.write_text(NUMBERS[0])
    with closing(open_ledger(None)) as store, live.open() as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        record_files(store)
    assert sorted(folder.iterdir()) == sorted([live, other])


def test_a_file_that_cannot_be_removed_is_recorded_all_the_same(folder, monkeypatch, caplog):
    """As one of another user in a folder of theirs: the log says what is true of it."""
    path = leave_a_file(monkeypatch, folder)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    caplog.clear()
    with closing(open_ledger(None)) as store:
        with monkeypatch.context() as patched:
            patched.setattr(type(path), "unlink", refuse)
            record_files(store)
        with store.read() as connection:
            assert connection.execute(text("SELECT DISTINCT state FROM sms_request")).scalars().all() == ["accepted"]
    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert warnings == [f"{path} is recorded, and cannot be removed: Permission denied. It holds numbers"]


def test_a_ledger_that_cannot_be_written_to_leaves_a_file(folder, monkeypatch, caplog):
    """The attempt goes on, and says itself what is wrong with its ledger."""
    path = leave_a_file(monkeypatch, folder)
    with closing(open_ledger(None)) as store:
        monkeypatch.setattr(CampaignLedger, "finish", lambda *_: (_ for _ in ()).throw(LedgerError("gone")))
        record_files(store)
    assert f"The outcomes in {path} are not recorded. gone" in caplog.text
    assert files_in(folder) == [path]


@pytest.mark.slow
def test_a_process_that_is_killed_while_its_ledger_is_silent_loses_no_answer(
    way, sms_default, sandbox, witnessed, tmp_path
):
    """Told to stop, it keeps what it was answered in a file before Airflow kills it; the next attempt records that."""
    job = {"numbers": NUMBERS, "campaign": "spring", "chunk_size": 10, "concurrency": 2}
    sandbox.state.set_faults([{"kind": "delay", "seconds": 1.5, "times": 2}])
    with started(**job, try_number=1) as process:
        wait_until(lambda: len(sandbox.state.accepted) == 20)
        way.fall_silent()
        # Until both responses have come, and the ledger is waited for.
        time.sleep(2.0)
        process.send_signal(signal.SIGTERM)
        time.sleep(KILLED_AFTER)
    way.drop()
    way.speak()
    with closing(open_ledger(None)) as store, store.read() as connection:
        before = connection.execute(text("SELECT state FROM sms_request ORDER BY id")).scalars().all()
    summary = attempt(**job, try_number=2)
    assert before == ["claimed", "claimed"]
    assert (summary["already_sent"], summary["accepted"], summary["unknown"]) == (20, 20, 0)
    assert set(witnessed().values()) == {1}
    assert list((tmp_path / "recovery").iterdir()) == []
