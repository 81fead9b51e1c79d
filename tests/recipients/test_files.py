from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import read, write

from airflow_provider_sms.exceptions import ColumnError, SourceError
from airflow_provider_sms.recipients.files import rebatch
from airflow_provider_sms.recipients.sources import open_source


def write_values(path, values, **options):
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
    found = list(rebatch(given_batches, batch_size))
    assert values_of(given_batches) == values_of(found)
    assert all(len(batch) == batch_size for batch in found[:-1])
    assert all(0 < len(batch) <= batch_size for batch in found[-1:])


def test_many_small_files(tmp_path):
    """Files of a few rows each are read in whole batches, in the order of their names, and share one schema."""
    for n in range(100):
        write_values(tmp_path / f"{n:03}.parquet", [f"{n}.{row}" for row in range(n % 4)])
    source = open_source(tmp_path)
    batches = list(source.batches(["a"], 60))
    assert [len(batch) for batch in batches] == [60, 60, 30]
    assert values_of(batches) == [f"{n}.{row}" for n in range(100) for row in range(n % 4)]
    assert len({id(file.schema) for file in source._source._files}) == 2  # no rows, no type


def test_two_readers_at_once(tmp_path):
    """Two passes beside each other do not disturb one another."""
    source = open_source(write_values(tmp_path / "a.parquet", range(1000), row_group_size=10))
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
        write_values(tmp_path / f"{n}.parquet", range(100))
    storage = Storage(async_impl=False)
    batches = open_source(SimpleNamespace(fs=storage, path=str(tmp_path))).batches(["a"], 10)
    next(batches)
    assert [file.closed for file in storage.opened] == [True, True, True, False]
    batches.close()
    assert [file.closed for file in storage.opened] == [True] * 4


def test_footers_of_an_object_store(tmp_path):
    """Footers that are far away are read side by side, and the rows are in order all the same."""
    for n in range(8):
        write_values(tmp_path / f"{n}.parquet", [n])
    meeting = threading.Barrier(4, timeout=20)
    storage = Storage(meeting.wait, async_impl=True)
    source = open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert len(storage.threads) >= 4
    storage.opening = lambda: None
    assert values_of(source.batches()) == list(range(8))


def test_footers_of_a_single_connection(tmp_path):
    """A storage that does not say that it takes several requests at once gets one after the other."""
    for n in range(8):
        write_values(tmp_path / f"{n}.parquet", [n])
    storage = Storage(async_impl=False)
    open_source(SimpleNamespace(fs=storage, path=str(tmp_path)))
    assert storage.threads == {threading.get_ident()}


def test_the_first_bad_footer_is_told(tmp_path):
    """Of several files that are no Parquet the first is named, side by side too."""
    for n in range(8):
        (tmp_path / f"{n}.parquet").write_bytes(b"x" * 100)
    with pytest.raises(SourceError, match=r"0\.parquet: is not a Parquet file"):
        open_source(SimpleNamespace(fs=Storage(async_impl=True), path=str(tmp_path)))


def test_batches(tmp_path):
    """Batches are as large as asked across row groups and files, but for the last, and start anew with each call."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(25)}), path, row_group_size=10)
    write(tmp_path / "b.parquet", a=pa.array([], pa.int64()))
    write(tmp_path / "c.parquet", a=[25])
    source = open_source(tmp_path)
    for _ in range(2):
        batches = list(source.batches(["a"], batch_size=4))
        assert [value for batch in batches for value in batch["a"].to_pylist()] == list(range(26))
        assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4, 4, 2]
    assert [len(batch) for batch in source.batches(["a"])] == [26]


def test_hive_partitions(tmp_path):
    """What the directories say in the manner of Hive is a column: integers where all are, else text, or null."""
    write(tmp_path / "year=2024" / "area=010" / "a.parquet", a=[1])
    write(tmp_path / "year=2025" / "area=a%20b" / "a.parquet", a=[2, 3])
    write(tmp_path / "year=2025" / "area=__HIVE_DEFAULT_PARTITION__" / "a.parquet", a=[4])
    expected = {"a": [1, 4, 2, 3], "year": [2024, 2025, 2025, 2025], "area": ["010", None, "a b", "a b"]}
    assert expected == read(tmp_path)
    assert read(tmp_path, ["area", "a"]) == {"area": expected["area"], "a": expected["a"]}
    assert open_source(tmp_path).schema.field("year").type == pa.int64()


def test_only_partition_columns(tmp_path):
    """Columns of the path alone come as often as there are rows."""
    write(tmp_path / "year=2024" / "a.parquet", a=[1, 2])
    assert read(tmp_path, ["year"]) == {"year": [2024, 2024]}


def test_a_column_in_the_file_goes_before_the_path(tmp_path):
    """A column that a file holds is not overwritten by a name in its path."""
    write(tmp_path / "a=7" / "x.parquet", a=[1])
    assert read(tmp_path) == {"a": [1]}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), pa.int64()),
        (pa.array([1]), pa.array([1.5]), pa.float64()),
        (pa.nulls(1), pa.array(["x"]), pa.string()),
        (pa.array(["x"]), pa.nulls(1), pa.string()),
        (pa.array(["x"]), pa.array(["y"]).dictionary_encode(), pa.string()),
        (pa.array(["x"]), pa.array(["y"], pa.large_string()), pa.string()),
        (pa.array([1], pa.timestamp("ms")), pa.array([1], pa.timestamp("us")), pa.timestamp("us")),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("10.25")]), pa.decimal128(4, 2)),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_types_that_go_together(tmp_path, one, other, kind):
    """Files of one table may hold a column in different widths, as exports of different days do."""
    write(tmp_path / "1.parquet", a=one)
    write(tmp_path / "2.parquet", a=other)
    assert open_source(tmp_path).schema == pa.schema([("a", kind)])
    assert [value for array in (one, other) for value in array.cast(kind).to_pylist()] == read(tmp_path)["a"]


@pytest.mark.parametrize(
    "other",
    [pa.array(["x"]), pa.array([True]), pa.array([dt.date(2025, 1, 1)]), pa.array([[1]])],
    ids=lambda a: str(a.type),
)
def test_types_that_do_not_go_together(tmp_path, other):
    """A column that is a number in one file and something else in another is an error that names file and column."""
    write(tmp_path / "1.parquet", b=["y"], a=[1])
    path = write(tmp_path / "2.parquet", b=["y"], a=other)
    with pytest.raises(SourceError, match="column 'a' is of type") as caught:
        open_source(tmp_path)
    assert str(caught.value).startswith(f"source: {path}")


def test_a_number_as_the_name_of_a_column_is_masked(tmp_path):
    """Without its header, a file has a person in place of the names."""
    write(tmp_path / "1.parquet", **{"27820000001": [1]})
    write(tmp_path / "2.parquet", **{"27820000001": ["x"]})
    with pytest.raises(SourceError, match=r"column '.*' is of type") as caught:
        open_source(tmp_path)
    assert "27820000001" not in str(caught.value)


def test_integers_that_no_float_can_hold(tmp_path):
    """Where one file made an integer column float, integers that would change are an error without their value."""
    path = write(tmp_path / "1.parquet", id=[2**53 + 1])
    write(tmp_path / "2.parquet", id=[1.0])
    with pytest.raises(SourceError, match="'id'") as caught:
        read(tmp_path)
    assert str(caught.value).startswith(f"source: {path}")
    assert str(2**53) not in str(caught.value)


def test_a_file_that_lacks_a_column(tmp_path):
    """A file that lacks a needed column is named, rather than its rows being invalid one by one."""
    write(tmp_path / "1.parquet", a=[1], b=[2])
    path = write(tmp_path / "2.parquet", a=[3])
    assert read(tmp_path, ["a"]) == {"a": [1, 3]}
    with pytest.raises(SourceError, match=r"has no column 'b'") as caught:
        read(tmp_path, ["a", "b"])
    assert str(caught.value).startswith(f"source: {path}")


def test_a_column_that_no_file_has(tmp_path):
    """A column that is nowhere is the caller's mistake and not the files'."""
    with pytest.raises(ColumnError, match="no column 'b'"):
        read(write(tmp_path / "1.parquet", a=[1]), ["b"])


def test_a_file_that_vanishes(tmp_path):
    """A file that is removed between two passes is an error, and its rows are not just left out."""
    path = write(tmp_path / "a.parquet", a=[1])
    source = open_source(path)
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(source.batches())


def test_duplicate_columns(tmp_path):
    """A file in which two columns have one name is an error."""
    path = write(tmp_path / "a.parquet", pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(SourceError, match="more than one column is named 'a'"):
        open_source(path)


def test_text_that_is_not_utf8(tmp_path):
    """Text that is not UTF-8, which Parquet does not rule out, is an error that names file and column."""
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    path = write(tmp_path / "a.parquet", name=broken)
    with pytest.raises(SourceError, match="'name' holds text that is not UTF-8") as caught:
        read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(SourceError, match=r"'2782\*{5}01' holds text that is not UTF-8"):
        read(write(tmp_path / "b.parquet", **{"27820000001": broken}))
