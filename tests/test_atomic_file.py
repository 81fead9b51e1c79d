from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from airflow_provider_sms.atomic_file import whole_file
from airflow_provider_sms.exceptions import SourceError

WRITER = """
import os, sys
from pathlib import Path
from airflow_provider_sms.atomic_file import whole_file

if sys.argv[2] == "with a hidden name":
    del os.O_TMPFILE  # as where the file system cannot make a file without a name
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"27821234567")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
"""
WAYS = ["without a name", "with a hidden name"]


@pytest.fixture
def write(tmp_path):
    """Start processes that write half of a file, and go on when they are told to."""
    started = []

    def start(way):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "report.parquet"), way]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"writing\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_process_that_is_killed_leaves_nothing(tmp_path, write):
    """Until the file is whole it has no name at all: what a SIGKILL interrupts is gone with its process."""
    process = write("without a name")
    before = names(tmp_path)
    process.send_signal(signal.SIGKILL)
    assert (process.wait(10), before, names(tmp_path)) == (-signal.SIGKILL, [], [])


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path, write):
    """Where a file must have a name from the start, the name is hidden, and the next write of that file removes it."""
    process = write("with a hidden name")
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    (left,) = names(tmp_path)
    others = [f".other.parquet.{'0' * 16}.partial", ".report.parquet.my-own-notes.partial", "report.parquet.partial"]
    for other in others:
        (tmp_path / other).touch()
    with whole_file(tmp_path / "report.parquet") as file:
        file.write(b"whole")
    assert left.startswith(".report.parquet.")
    assert names(tmp_path) == sorted([*others, "report.parquet"])


def test_a_named_pipe_under_a_hidden_name_does_not_hold_up_a_write(tmp_path):
    """Opening a pipe waits for its other end: nobody who may write to the folder can make a task wait for ever."""
    pipe = tmp_path / f".report.parquet.{'0' * 16}.partial"
    os.mkfifo(pipe)
    write = "import sys; from airflow_provider_sms.atomic_file import whole_file\nwith whole_file(sys.argv[1]): pass"
    subprocess.run([sys.executable, "-c", write, str(tmp_path / "report.parquet")], check=True, timeout=10)
    assert names(tmp_path) == [pipe.name, "report.parquet"]


@pytest.mark.parametrize("way", WAYS)
def test_the_file_of_a_live_process_is_not_removed(tmp_path, write, way):
    """Two live copies of a task write one report: each finishes its own, and the last one stands."""
    process = write(way)
    with whole_file(tmp_path / "report.parquet") as file:
        file.write(b"of another process")
    assert (tmp_path / "report.parquet").read_bytes() == b"of another process"
    process.communicate(b"\n", 10)
    assert (process.returncode, names(tmp_path)) == (0, ["report.parquet"])
    assert (tmp_path / "report.parquet").read_bytes() == b"27821234567"


@pytest.mark.parametrize("way", WAYS)
def test_only_its_owner_may_read_the_file(tmp_path, monkeypatch, way):
    """It holds numbers, also while it is written, and whatever the process's umask is."""
    if way == WAYS[1]:
        monkeypatch.delattr(os, "O_TMPFILE")
    mask = os.umask(0)
    try:
        with whole_file(tmp_path / "report.parquet") as file:
            assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)
    assert (tmp_path / "report.parquet").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", ["there", "not there"])
def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path, monkeypatch, way, target):
    """Whoever may write to the folder cannot direct numbers into another file, or have that file replaced."""
    if way == WAYS[1]:
        monkeypatch.delattr(os, "O_TMPFILE")
    aside, path = tmp_path / "aside", tmp_path / "report.parquet"
    if target == "there":
        aside.write_bytes(b"dear to somebody")
    path.symlink_to(aside)
    with whole_file(path) as file:
        file.write(b"whole")
    assert (path.is_symlink(), path.read_bytes(), path.stat().st_mode & 0o777) == (False, b"whole", 0o600)
    assert aside.exists() == (target == "there")


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    """Nothing makes the folder in passing."""
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "nowhere" / "report.parquet"):
        pass


@pytest.mark.parametrize("stored", [False, True], ids=["on this machine", "in an object store"])
def test_a_report_appears_whole_or_not_at_all(tmp_path, stored, airflow_home):
    """A file that cannot be finished leaves the one before it in place, and nothing beside it."""
    from airflow.providers.common.compat.sdk import ObjectStoragePath

    path = tmp_path / "report.parquet"
    path.write_bytes(b"before")
    target = ObjectStoragePath(path.as_uri()) if stored else path

    def fail_midway():
        with whole_file(target) as file:
            file.write(b"half")
            raise SourceError("the source is gone")

    with pytest.raises(SourceError):
        fail_midway()
    assert ([path.read_bytes()], [path]) == ([b"before"], list(tmp_path.iterdir()))
    with whole_file(target) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert ([path.read_bytes()], [path]) == ([b"after"], list(tmp_path.iterdir()))
