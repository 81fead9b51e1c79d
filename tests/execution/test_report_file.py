from __future__ import annotations

import os
import threading
import time
from collections import Counter
from errno import ENOSPC
from importlib import import_module
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import Asset, ObjectStoragePath

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.execution import report_file
from airflow_provider_sms.execution.report_file import report_path, write_report
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.reporting.summary import COUNTS


def counts(ran):
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def statuses(path):
    return dict(Counter(pq.read_table(path)["status"].to_pylist()))


@pytest.fixture
def report(tmp_path):
    return tmp_path / "reports" / "report.parquet"


FOLDERS = ["FOLDER/lists/*.parquet", "FOLDER/lists", "file://FOLDER/lists", "local://FOLDER/lists"]


@pytest.mark.parametrize(
    ("source", "suppress", "report"),
    [
        *(("FOLDER/people-3.parquet", lists, "FOLDER/lists/june.parquet") for lists in FOLDERS),
        *(
            (source, None, "FOLDER/people-3.parquet")
            for source in ("FOLDER/people-3.parquet", "FOLDER", "FOLDER/*.pa*")
        ),
        *((source, None, "FOLDER/more.parquet") for source in ("FOLDER", "FOLDER/*.parquet")),
        ("FOLDER/people-3.parquet", None, "file://FOLDER/people-3.parquet"),
        ("file://FOLDER/people-3.parquet", None, "FOLDER/people-3.parquet"),
        (Asset("file://FOLDER/people-3.parquet"), None, "FOLDER/people-3.parquet"),
        ("~/people-3.parquet", None, "FOLDER/people-3.parquet"),
        ("FOLDER", None, "~/rows.parquet"),
    ],
)
def test_a_report_is_never_written_over_or_among_what_is_read(
    send, people, witnessed, tmp_path, monkeypatch, source, suppress, report
):
    """The next attempt would read it as recipients, or leave out everybody whom it names; however they are written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lists").mkdir()
    pq.write_table(pa.table({"mobile": ["27820000009"]}), tmp_path / "lists" / "old.parquet")
    before = Path(people(3)).read_bytes()
    uri = getattr(source, "uri", source).replace("FOLDER", str(tmp_path))
    suppress = suppress and suppress.replace("FOLDER", str(tmp_path))
    given = Asset(uri) if isinstance(source, Asset) else uri
    ran = send(given, report=report.replace("FOLDER", str(tmp_path)), suppress=suppress)
    assert (ran.state, witnessed(), Path(people(3)).read_bytes() == before) == ("failed", {}, True)
    assert "would be written over the source or the suppress list, or among their files. Choose another path" in ran.log


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (str, "FOLDER/27820000001/{{ run_id }}.parquet"),
        (str, "~/reports/rows.parquet"),
        (str, "file://FOLDER/rows.parquet"),
        (str, "file:FOLDER/rows.parquet"),
        (Path, "FOLDER/{{ run_id }}.parquet"),
        (ObjectStoragePath, "FOLDER/{{ run_id }}.parquet"),
    ],
)
def test_a_report_may_be_written_in_many_ways(send, people, tmp_path, monkeypatch, kind, form):
    """A templated path, a path object or a file URI; only its owner may read it; the log masks a number in its name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    placed = form.replace("FOLDER", str(tmp_path / "reports"))
    ran = send(Path(people(2)), report=kind(placed))
    written = Path(ran.summary["report"])
    rendered = placed.replace("{{ run_id }}", ran.run_id).replace("~", str(tmp_path))
    assert (ran.state, written) == ("success", Path(rendered.removeprefix("file://").removeprefix("file:")))
    assert (statuses(written), written.stat().st_mode & 0o777) == ({"accepted": 2}, 0o600)
    assert "Wrote the status of each row to " in ran.log
    assert "/27820000001/" not in ran.log


def test_a_number_in_the_name_of_a_report_is_masked_in_errors(tmp_path):
    """The error that a report cannot be written, and that it would be written over the source."""
    path = tmp_path / "27820000001.parquet"
    error = write_report(path / "no-folder", None, None, None)
    assert ("2782*****01.parquet" in str(error), "27820000001" in str(error)) == (True, False)
    with pytest.raises(InputError, match=r"2782\*{5}01\.parquet"):
        report_path(str(path), str(path), None)


def test_a_report_goes_to_any_object_storage(send, people, airflow_home):
    """A URI is one of Airflow's object storage."""
    memory = fsspec.filesystem("memory")
    import_module(ObjectStoragePath.__module__.replace(".path", ".store")).attach("memory", fs=memory)
    ran = send(people(20), report="memory://reports/report.parquet")
    with ObjectStoragePath("memory://reports/report.parquet").open("rb") as stored:
        assert (ran.state, statuses(stored)) == ("success", {"accepted": 20})
    assert ran.summary["report"] in ("memory://reports/report.parquet", "memory:///reports/report.parquet")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("/proc/0820000001/r.parquet", "report: /proc/0820*****01/r.parquet cannot be written; it must be a file in a"),
        ("FOLDER", "report: FOLDER cannot be written; it must be a file in a folder that this task may make or write"),
        ("nosuch://bucket/r.parquet", "report: no file system for nosuch://; is its Airflow provider installed?"),
        ("{{ none }}", "report is 'None': was there no value to render it from?"),
        ("FOLDER/{{ run_id }}.XLSX", "report is written as Parquet, so its name may not end with .xlsx"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_sent(
    send, people, sandbox, tmp_path, place, says
):
    """The task is not retried, and its error names the argument and what is wrong with it."""
    ran = send(people(20), report=place.replace("FOLDER", str(tmp_path)), retries=1)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert says in ran.log.replace(str(tmp_path), "FOLDER")


def test_a_report_before_the_send_agrees_with_the_plan(send, people, report, sandbox):
    """The check has found which rows cannot be texted or repeat a message, and nobody has been texted."""
    numbers = ["12", *(str(27_820_000_000 + n) for n in range(19))]
    sandbox.state.set_balance(9)
    options = {"on_low_balance": "fail", "on_invalid": "skip", "report": str(report)}
    for dry_run, state in ((False, "failed"), (True, "success")):
        ran = send(people(23, destination=[*numbers, *numbers[-3:]]), "second", dry_run=dry_run, **options)
        assert (ran.state, counts(ran)) == (state, {"not_sent": 19, "duplicate": 3, "invalid": 1})
        assert statuses(report) == counts(ran)
    ran = send(people(20, destination=["12"] * 15 + [numbers[1]] * 5), report=str(report))
    assert (ran.state, statuses(report)) == ("failed", {"invalid": 15, "not_sent": 5})
    assert pq.read_table(report)["reason"].to_pylist()[15] == "other rows cannot be texted"


def test_without_its_ledger_a_try_leaves_the_report_as_it_is(send, people, report, monkeypatch, tmp_path):
    """A try that cannot open its ledger knows nothing of any row; the report of an earlier one is better."""
    send(people(20), report=str(report))
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", str(tmp_path / "no" / "ledger.db"))
    ran = send(people(20), report=str(report))
    assert (ran.state, ran.xcoms, statuses(report)) == ("failed", {}, {"accepted": 20})


def test_a_report_that_fails_in_the_end_is_written_by_the_next_try(send, people, report, sandbox, witnessed):
    """What was sent is sent: the task is retried for its report, texts nobody twice, and writes it."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.5}])

    def lose_the_folder():
        while not sandbox.state.requests:
            time.sleep(0.01)
        report.parent.rmdir()

    thread = threading.Thread(target=lose_the_folder)
    thread.start()
    ran = send(people(20), report=str(report), retries=1)
    thread.join()
    assert (ran.state, ran.tries, statuses(report)) == ("success", 2, {"already_sent": 20})
    assert "the next attempt texts nobody twice" in ran.log
    assert set(witnessed().values()) == {1}


def test_a_ledger_that_fails_in_the_end_leaves_no_report(send, people, report, sandbox, monkeypatch, witnessed):
    """Where the ledger cannot be read once all is sent, the task fails, and nothing is called unsent."""

    def gone(*_):
        raise LedgerError("the disk is gone")

    monkeypatch.setattr(CampaignLedger, "count_responses", gone)
    monkeypatch.setattr(CampaignLedger, "count_accepted", gone)
    monkeypatch.setattr(CampaignLedger, "requests", gone)
    ran = send(people(20), report=str(report))
    assert (ran.state, report.exists(), counts(ran)) == ("failed", False, {"unknown": 20})
    assert ("The rows are counted without the ledger, which cannot be read: the disk is gone" in ran.log) is True
    assert ran.summary["report"] is None


def write_half(file, *_, **__):
    file.write(b"half")
    raise LedgerError("the disk is gone")


def copy_half(source, target):
    target.write(source.read(1))
    raise OSError(ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("stored", "name", "fails", "says"),
    [
        (False, "write_row_report", write_half, "the disk is gone"),
        (False, "shutil.copyfileobj", copy_half, "OSError"),
        (True, "write_row_report", write_half, "the disk is gone"),
    ],
    ids=["on this machine", "when it is copied", "in an object store"],
)
def test_a_report_appears_whole_or_not_at_all(tmp_path, monkeypatch, stored, name, fails, says, airflow_home):
    """A report that cannot be finished leaves the one before it in place, and nothing beside it."""
    path = tmp_path / "report.parquet"
    path.write_bytes(b"before")
    target = ObjectStoragePath(path.as_uri()) if stored else path
    monkeypatch.setattr(report_file, "write_row_report", lambda file, *_, **__: file.write(b"after"))
    with monkeypatch.context() as patch:
        patch.setattr(f"{report_file.__name__}.{name}", fails)
        error = write_report(target, None, None, None)
    assert (error.transient, says in str(error)) == (True, True)
    assert ([path.read_bytes()], [path]) == ([b"before"], list(tmp_path.iterdir()))
    assert write_report(target, None, None, None) is None
    assert ([path.read_bytes()], [path]) == ([b"after"], list(tmp_path.iterdir()))


@pytest.mark.parametrize("target", ["there", "not there"])
def test_a_report_replaces_a_link_and_only_its_owner_may_read_it(tmp_path, monkeypatch, target):
    """Whatever the umask is; whoever may write to the folder cannot direct numbers into another file."""
    monkeypatch.setattr(report_file, "write_row_report", lambda file, *_, **__: file.write(b"whole"))
    aside, path = tmp_path / "aside", tmp_path / "report.parquet"
    if target == "there":
        aside.write_bytes(b"dear to somebody")
    path.symlink_to(aside)
    mask = os.umask(0)
    try:
        assert write_report(path, None, None, None) is None
    finally:
        os.umask(mask)
    assert (path.is_symlink(), path.read_bytes(), path.stat().st_mode & 0o777) == (False, b"whole", 0o600)
    assert aside.exists() == (target == "there")
