from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import SourceUnavailableError
from airflow_provider_sms.planning.integers_on_disk import IntegersOnDisk

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(INTEGERS, max_size=20), max_size=5), st.lists(INTEGERS, max_size=20))
def test_it_holds_what_was_added(pieces, others):
    """In ascending order, each as many times as it was added; and it tells what it holds, and how many differ."""
    every = [value for piece in pieces for value in piece]
    integers = IntegersOnDisk()
    for piece in pieces:
        integers.add(np.array(piece, np.int64))
    assert (integers.sorted().tolist(), len(integers)) == (sorted(every), len(every))
    assert integers.count_distinct() == len({*every})
    asked = np.array([*others, *every], np.int64)
    assert integers.contains(asked).tolist() == [value in every for value in asked.tolist()]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's view of open files")
def test_the_file_has_no_name_and_is_gone_with_the_integers(tmp_path, monkeypatch):
    """Nobody has to close it, though its numbers were looked up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def files():
        return [link for link in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(_target(link))]

    integers = IntegersOnDisk()
    integers.add(np.arange(10))
    assert (list(tmp_path.iterdir()), len(files())) == ([], 1)
    assert integers.contains(np.arange(2)).all()
    del integers
    gc.collect()
    assert files() == []


def _target(link):
    try:
        return link.readlink()
    except OSError:
        return None


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    """The error names the folder and the setting; a retry may get over it."""

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    with pytest.raises(SourceUnavailableError, match=f"cannot be kept in {tmp_path}.* TMPDIR"):
        IntegersOnDisk()
