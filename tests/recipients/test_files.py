from __future__ import annotations

import datetime as dt
import threading
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.files import rebatched
from airflow_provider_sms.recipients.parquet import PARQUET
from airflow_provider_sms.recipients.paths import DataFile
from airflow_provider_sms.recipients.sources import open_source

ROWS = 400_000


def write(path, values, **options):
    pq.write_table(pa.table({"a": values}), path, **options)
    return path


def values_of(batches):
    return [value for batch in batches for value in batch["a"].to_pylist()]


@given(sizes=st.lists(st.integers(0, 20)), batch_size=st.integers(1, 15))
def test_batches_of_one_size(sizes, batch_size):
    """Whatever the sizes of batches, the rows come in their order in batches of one size, but for the last."""
    schema = pa.schema([("a", pa.string())])
    values = [[f"{n}.{row}" for row in range(size)] for n, size in enumerate(sizes)]
    given_batches = [pa.RecordBatch.from_pydict({"a": each}, schema) for each in values]
    found = list(rebatched(given_batches, batch_size))
    assert values_of(given_batches) == values_of(found)
    assert all(len(batch) == batch_size for batch in found[:-1])
    assert all(0 < len(batch) <= batch_size for batch in found[-1:])


def test_many_small_files(tmp_path):
    """Files of a few rows each are read in whole batches, in the order of their names, and share one schema."""
    for n in range(100):
        write(tmp_path / f"{n:03}.parquet", [f"{n}.{row}" for row in range(n % 4)])
    source = open_source(tmp_path)
    batches = list(source.batches(["a"], 60))
    assert [len(batch) for batch in batches] == [60, 60, 30]
    assert values_of(batches) == [f"{n}.{row}" for n in range(100) for row in range(n % 4)]
    assert len({id(part.schema) for part in source._parts}) == 2  # no rows, no type


@pytest.mark.parametrize("row_group_size", [1, 7, 1000])
def test_row_groups_of_any_size(tmp_path, row_group_size):
    """How the rows lie in row groups does not show."""
    source = open_source(write(tmp_path / "a.parquet", range(1000), row_group_size=row_group_size))
    batches = list(source.batches(["a"], 300))
    assert [len(batch) for batch in batches] == [300, 300, 300, 100]
    assert values_of(batches) == list(range(1000))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_row_group_is_not_held(tmp_path, kind):
    """Of a row group only a small part is in memory, however large it is."""
    values = pa.array([f"A text that is long enough to weigh something: {n}" for n in range(ROWS)], kind)
    path = write(tmp_path / "a.parquet", values, row_group_size=ROWS, use_dictionary=False, compression="none")
    size = values.nbytes
    del values
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_source(path).batches(["a"]):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < size / 4


def test_dictionaries_are_read_as_plain_text(tmp_path):
    """Of a dictionary column only the text is read: else each batch would bring the dictionary of all rows."""
    zone = dt.timezone(dt.timedelta(hours=2))
    columns = {
        "a": pa.array(["x", None, "y"]).dictionary_encode(),
        "b": pa.array(["x", None, "y"], pa.large_string()).dictionary_encode(),
        "c": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([7, 8])),
        "d": pa.array([1, 2, None], pa.duration("s")),
        "e": pa.array([dt.datetime(2026, 1, 31, tzinfo=zone)] * 3, pa.timestamp("us", "Africa/Johannesburg")),
        "f": pa.nulls(3),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    file = DataFile(fsspec.filesystem("file"), str(path))
    (batch,) = PARQUET.read_rows(file, list("abcdef"), 10)
    kinds = [pa.string(), pa.large_string(), pa.int64(), *(columns[name].type for name in "def")]
    assert kinds == batch.schema.types
    assert {name: column.to_pylist() for name, column in columns.items()} == batch.to_pydict()


def test_two_readers_at_once(tmp_path):
    """Two passes beside each other do not disturb one another."""
    source = open_source(write(tmp_path / "a.parquet", range(1000), row_group_size=10))
    for one, other in zip(source.batches(["a"], 30), source.batches(["a"], 30), strict=True):
        assert one == other


class Storage:
    """The local filesystem as one that is not local, which keeps what it opened and by which thread."""

    def __init__(self, opening=lambda: None, **attributes):
        self.opening, self.opened, self.threads = opening, [], set()
        self.__dict__.update(attributes)

    def open(self, path, mode):
        self.threads.add(threading.get_ident())
        self.opening()
        self.opened.append(fsspec.filesystem("file").open(path, mode))
        return self.opened[-1]

    def __getattr__(self, name):
        return getattr(fsspec.filesystem("file"), name)


def test_a_reader_that_stops_early(tmp_path):
    """Who stops early closes the file that was being read, and opens no other."""
    for n in range(3):
        write(tmp_path / f"{n}.parquet", range(100))
    storage = Storage(async_impl=False)
    batches = open_source(SimpleNamespace(fs=storage, path=str(tmp_path))).batches(["a"], 10)
    next(batches)
    assert [file.closed for file in storage.opened] == [True, True, True, False]
    batches.close()
    assert [file.closed for file in storage.opened] == [True] * 4


def test_footers_of_an_object_store(tmp_path):
    """Footers that are far away are read side by side, and the rows are in order all the same."""
    for n in range(8):
        write(tmp_path / f"{n}.parquet", [n])
    meeting = threading.Barrier(4, timeout=20)
    storage = Storage(meeting.wait, async_impl=True)
    source = open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert len(storage.threads) >= 4
    storage.opening = lambda: None
    assert values_of(source.batches()) == list(range(8))


def test_footers_of_a_single_connection(tmp_path):
    """A storage that does not say that it takes several requests at once gets one after the other."""
    for n in range(8):
        write(tmp_path / f"{n}.parquet", [n])
    storage = Storage(async_impl=False)
    open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert storage.threads == {threading.get_ident()}


def test_the_first_bad_footer_is_told(tmp_path):
    """Of several files that are no Parquet the first is named, side by side too."""
    for n in range(8):
        (tmp_path / f"{n}.parquet").write_bytes(b"x" * 100)
    with pytest.raises(SourceError, match=r"0\.parquet: is not a Parquet file"):
        open_source(SimpleNamespace(fs=Storage(async_impl=True), path=str(tmp_path)))
