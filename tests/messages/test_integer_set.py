from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.messages import integer_set
from airflow_provider_sms.messages.integer_set import DiskBackedIntegers, are_in

integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9))


@given(integers, integers)
def test_each_is_looked_up(ordered, values):
    """A value is in an array or not, whatever the order in which it is asked for."""
    found = are_in(np.array(sorted(ordered), np.int64), np.array(values, np.int64))
    assert [value in ordered for value in values] == found.tolist()


KINDS = {np.int64: st.integers(-(2**63), 2**63 - 1), np.uint64: st.integers(0, 2**64 - 1)}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def anonymous_kilobytes():
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))


@pytest.mark.parametrize("most_in_memory", [0, 3, 100], ids=["in a file", "some", "in memory"])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_integers_come_back(kind, most_in_memory, data):
    """In memory or in a file, all integers come back in order, and can be counted, looked up and added to."""
    values = st.lists(KINDS[kind] | st.integers(0, 5))
    batches = data.draw(st.lists(values, max_size=4))
    asked = data.draw(values)
    with DiskBackedIntegers(kind, most_in_memory) as integers:
        added = []
        for batch in batches:
            integers.add(np.array(batch, kind))
            added += batch
            assert sorted(added) == integers.sorted().tolist()
        assert (len(added), len(set(added))) == (len(integers), integers.count_distinct())
        assert [value in added for value in asked] == integers.contains(np.array(asked, kind)).tolist()


def test_what_was_added_may_change():
    """An array that was added is the caller's again."""
    values = np.arange(3, dtype=np.int64)
    with DiskBackedIntegers(np.int64) as integers:
        integers.add(values)
        values[:] = 7
        assert integers.sorted().tolist() == [0, 1, 2]


@pytest.mark.parametrize("times", [1, 3], ids=["at the end of a run", "within a run"])
def test_distinct_ones_are_counted_across_pieces(times):
    """Runs of equal integers count once, wherever a piece of the count ends."""
    values = np.repeat(np.arange(1_000_001, dtype=np.int64), times)
    with DiskBackedIntegers(np.int64) as integers:
        integers.add(values)
        assert integers.count_distinct() == 1_000_001


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), min_size=1), more=integers)
def test_a_large_file_is_counted_in_parts(values, more):
    """Whatever the integers and the bounds between parts, each counts once, and more can be added afterwards."""
    with (
        patch.multiple(integer_set, _AT_ONCE=4, _MOST_PARTS=3, _SAMPLE=2),
        DiskBackedIntegers(np.int64, 0) as counted,
    ):
        counted.add(np.array(values, np.int64))
        assert counted.count_distinct() == len(set(values))
        counted.add(np.array(more, np.int64))
        assert counted.count_distinct() == len({*values, *more})
        assert counted.sorted().tolist() == sorted([*values, *more])


def test_a_large_file_is_not_mapped_to_be_counted(temporary):
    """The count of a table's messages takes the memory of a part: all of a mapped file would count as the task's."""
    with DiskBackedIntegers(np.uint64) as integers:
        integers.add(np.random.default_rng(1).integers(0, 2**63, 1_500_000).astype(np.uint64))
        assert integers.count_distinct() == 1_500_000
        assert integers._ordered is None


def test_nothing_is_seen_in_the_folder(temporary):
    """The file has no name while it is in use, and is gone without a word when it is closed or forgotten."""
    integers = DiskBackedIntegers(np.uint64, 0)
    integers.add(np.arange(10, dtype=np.uint64))
    ordered = integers.sorted()
    assert list(temporary.iterdir()) == []
    integers.close()
    integers.close()
    assert (len(integers), integers.count_distinct()) == (0, 0)
    assert list(range(10)) == ordered.tolist()
    forgotten = DiskBackedIntegers(np.uint64, 0)
    forgotten.add(ordered)
    del forgotten
    gc.collect()  # a file that was left open would be a warning, and so an error
    assert list(temporary.iterdir()) == []


def test_a_few_need_no_file(temporary):
    """A small table needs no room in the folder for temporary files: there may be none."""
    temporary.rmdir()
    with DiskBackedIntegers(np.int64) as integers:
        integers.add(np.arange(100_000, dtype=np.int64))
        assert integers.count_distinct() == 100_000
        with pytest.raises(FileNotFoundError):
            integers.add(np.arange(1, dtype=np.int64))


def test_millions_take_no_memory_of_their_own():
    """Memory that the system cannot write out does not grow with the integers."""
    integers = DiskBackedIntegers(np.uint64)
    before, most = anonymous_kilobytes(), 0
    generator = np.random.default_rng(1)
    for _ in range(40):
        integers.add(generator.integers(0, 2**63, 100_000, np.uint64))
    for look in (integers.sorted, integers.count_distinct):
        look()
        most = max(most, anonymous_kilobytes() - before)
    integers.close()
    assert most < 16_000  # of 32,000 that they are
