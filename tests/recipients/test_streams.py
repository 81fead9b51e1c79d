from __future__ import annotations

import csv
import gc
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import adbc_driver_sqlite.dbapi
import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from support.tables import read
from support.versions import READS_POLARS

from airflow_provider_sms.exceptions import ColumnError, SourceError, SourceUnavailableError
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.recipients import spool as spool_module
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.recipients.spool import spool
from airflow_provider_sms.recipients.streams import Pieces

if READS_POLARS:
    from polars import DataFrame
else:

    def DataFrame(rows):  # noqa: N802 - in place of that of polars
        return pa.Table.from_pylist(rows).to_reader()


ROWS = [{"destination": "27820000001", "n": 1}, {"destination": None, "n": 2}]
VALUES = {"destination": ["27820000001", None], "n": [1, 2]}
QUERY = "SELECT '27820000001' AS destination, 1 AS n UNION ALL SELECT NULL, 2 ORDER BY n"


@pytest.fixture
def adbc():
    """A cursor of ADBC with a result."""
    with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        yield cursor


@pytest.mark.skipif(not READS_POLARS, reason="pyarrow reads none of polars before version 18")
@pytest.mark.parametrize("values", [["a", "b", None], [None]], ids=["some", "none"])
def test_categories_of_polars_are_text(values):
    """A Categorical or an Enum, whose texts pyarrow cannot decode, is read as the text of each row."""
    import polars as pl

    kinds = {"categorical": pl.Categorical, "enum": pl.Enum(["a", "b"])}
    frame = pl.DataFrame({name: pl.Series(values, dtype=kind) for name, kind in kinds.items()})
    source = open_source(frame)
    assert set(source.schema.types) == {pa.string()}
    assert pa.Table.from_batches(source.batches()).to_pydict() == {"categorical": values, "enum": values}


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataFrame(ROWS),
        lambda: duckdb.sql(QUERY),
        lambda: pa.Table.from_pylist(ROWS).to_reader(),
        lambda: iter(ROWS),
        lambda: (row for row in ROWS),
        lambda: map(dict, ROWS),
        lambda: pd.DataFrame(ROWS).astype({"destination": object}),
    ],
    ids=["polars", "DuckDB", "reader", "iterator", "generator", "map", "pandas"],
)
def test_whatever_has_rows(make):
    """What speaks Arrow's C stream interface or yields dicts is a source, read as often as needed in the same order."""
    source = open_source(make())
    for _ in range(2):
        assert pa.Table.from_batches(source.batches()).to_pydict() == VALUES
    assert pa.Table.from_batches(source.batches(["n"])).to_pydict() == {"n": [1, 2]}
    assert "2 rows" in source.describe()
    source.close()


def test_adbc(adbc):
    """The result of a query by ADBC is a source."""
    assert read(adbc.fetch_record_batch()) == VALUES


def test_rows_of_a_csv_reader():
    """Python's own reader of CSV yields dicts."""
    assert read(csv.DictReader(io.StringIO("destination,n\n27820000001,1\n"))) == {
        "destination": ["27820000001"],
        "n": ["1"],
    }


def test_what_it_is_called():
    """A log names the kind of the source and counts its rows."""
    assert open_source(duckdb.sql(QUERY)).describe().startswith("DuckDBPyRelation (2 rows")
    assert open_source(row for row in ROWS).describe().startswith("generator (2 rows")


@pytest.mark.parametrize("make", [lambda columns: pa.table(columns).to_reader(), lambda _: iter([])])
def test_no_rows(make):
    """A source without rows has none, and is no error."""
    source = open_source(make({"destination": []}))
    assert list(source.batches()) == []
    assert source.schema.names in (["destination"], [])


def test_batches_have_one_size():
    """How the producer cut the rows does not show, and several readings do not disturb each other."""
    pieces = [pa.RecordBatch.from_pydict({"n": list(range(start, start + 7))}) for start in range(0, 700, 7)]
    source = open_source(pa.RecordBatchReader.from_batches(pieces[0].schema, iter(pieces)))
    one, other = source.batches(["n"], 300), source.batches(["n"], 300)
    batches = [batch for pair in zip(one, other, strict=True) for batch in pair]
    assert [len(batch) for batch in batches] == [300, 300, 300, 300, 100, 100]
    assert [n for batch in batches[::2] for n in batch["n"].to_pylist()] == list(range(700))
    assert batches[::2] == batches[1::2]


def test_columns_come_and_change(monkeypatch):
    """A key may come late, and a column has the type that holds all of its values, or is text."""
    monkeypatch.setattr("airflow_provider_sms.recipients.streams.PIECE_ROWS", 1)
    assert read(iter([{"a": 1}, {"b": "x"}, {"a": 2.5}])) == {"a": [1.0, None, 2.5], "b": [None, "x", None]}
    assert read(iter([{"a": 1}, {"a": None}, {"a": "x"}, {"a": 2.5}])) == {"a": ["1", None, "x", "2.5"]}
    assert read(iter([{"a": 2**60}, {"a": 0.5}])) == {"a": [str(2**60), "0.5"]}


def test_lists_in_columns(monkeypatch):
    """A column of lists, which no message can use, is no obstacle; beside text it is refused."""
    monkeypatch.setattr("airflow_provider_sms.recipients.streams.PIECE_ROWS", 1)
    rows = [{"a": 1, "b": ["x"]}, {"a": 2, "b": [1]}, {"a": 3, "b": {"x": 1}}, {"a": 4, "b": []}]
    assert read(iter(rows), ["a"]) == {"a": [1, 2, 3, 4]}
    with pytest.raises(ColumnError, match=r"'b' is of type list or struct, which has no form as text"):
        Preparation("{b}", None, destination_column="a").check(open_source(iter(rows)).schema)
    words = "list_iterator: no column can be made of the values of 'a', which are of type list or struct, string;"
    with pytest.raises(SourceError, match=words):
        open_source(iter([{"a": ["secret"]}, {"a": "secret"}]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"message": "{tags}"}, "message: column 'tags' is of type list or struct, which has no form as text"),
        ({"message": "{27820000001}"}, r"message: column '2782\*{5}01' is of type list or struct, which has"),
        ({"message": None, "content_column": "who"}, "content_column: column 'who' is of type list or struct"),
        ({"message": "Hi", "key_columns": ["who"]}, "key_columns: 'who' is of type list or struct, which cannot"),
        ({"message": "Hi", "destination_column": "who"}, "destination_column: 'who' is of type list or struct; phone"),
    ],
    ids=["template", "number", "text", "key", "destination"],
)
@pytest.mark.parametrize("make", [DataFrame, lambda rows: pa.Table.from_pylist(rows).to_reader(), iter])
def test_columns_that_nest_are_named(make, arguments, words):
    """The error names the column, and no type that its values do not have; a name that is a number is masked."""
    rows = [{"destination": "27820000001", "tags": ["x"], "who": {"name": "Ann"}, "27820000001": ["x"]}]
    with pytest.raises(ColumnError, match=words):
        Preparation(**{"content_column": None, **arguments}).check(open_source(make(rows)).schema)


def test_a_name_that_is_a_number_is_masked(monkeypatch):
    """A table without names has a recipient in their place."""
    monkeypatch.setattr("airflow_provider_sms.recipients.streams.PIECE_ROWS", 1)
    with pytest.raises(SourceError, match=r"the values of '2782\*{5}01', which are of type list or struct, string;"):
        open_source(iter([{"27820000001": ["x"]}, {"27820000001": "x"}]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: iter([("27820000001",)]), "an iterator of recipients yields dicts, one for each row, not tuple"),
        (lambda: iter(["27820000001"]), "an iterator of recipients yields dicts, one for each row, not str"),
        (lambda: iter([{"destination": "27820000001"}] * 10_001 + [None]), r"not NoneType \(row 10001\)"),
        (lambda: iter([{1: "27820000001"}]), "the keys of the dicts are column names"),
        (lambda: iter([{}, {}]), "there are rows, but no columns"),
        # An older pyarrow gives it no stream.
        (lambda: pa.chunked_array([["27820000001"]]), "ChunkedArray(: it is one column|: pass a path)"),
        (lambda: pa.table([["27820000001"], [1]], names=["a", "a"]).to_reader(), "more than one column is named 'a'"),
    ],
    ids=["tuples", "numbers", "a later row", "keys", "nothing", "no table", "duplicates"],
)
def test_other_streams(make, words):
    """What is no table is refused in words that show nothing of it."""
    with pytest.raises(SourceError, match=words) as caught:
        open_source(make())
    assert "2782" not in str(caught.value)


def test_a_producer_that_fails():
    """An error of a user's own generator is the user's to see."""

    def rows():
        yield ROWS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        open_source(rows())


def test_a_stream_that_breaks():
    """The words of a broken stream may quote a row, so only the kind of its error is told."""

    def batches():
        yield pa.RecordBatch.from_pydict({"a": ["x"]})
        raise pa.ArrowInvalid("27820000001")

    with pytest.raises(SourceError, match="RecordBatchReader: its Arrow stream cannot be read by") as caught:
        open_source(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.string())]), batches()))
    assert "2782" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.skipif(not READS_POLARS, reason="pyarrow reads none of polars before version 18")
def test_one_column_is_told_what_to_pass():
    """A Series of polars is no table, and Arrow's own words would not say so."""
    with pytest.raises(SourceError) as caught:
        open_source(DataFrame(ROWS)["destination"])
    assert str(caught.value) == (
        "source: Series: it is one column, not a table. Pass the whole table, or the column as a list"
    )


def descriptors(folder):
    """Return the open files of a folder that have no name any more."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(str(folder)) and "deleted" in target:
            found[int(link.name)] = target
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's view of open files")
def test_the_file_has_no_name(tmp_path, monkeypatch):
    """The rows are in a file that only this user may read, that has no name, and that is gone when closed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = descriptors(tmp_path).keys()
    source = open_source(iter(ROWS))
    assert list(tmp_path.iterdir()) == []
    (descriptor,) = descriptors(tmp_path).keys() - before
    found = os.fstat(descriptor)
    assert (stat.S_IMODE(found.st_mode), found.st_nlink) == (0o600, 0)
    source.close()
    source.close()
    assert descriptors(tmp_path).keys() == before
    with pytest.raises(ValueError, match="closed"):
        list(source.batches())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux's view of open files")
def test_the_file_is_gone_where_reading_fails(tmp_path, monkeypatch):
    """Neither an error nor a source that nobody closes leaves a file open."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = descriptors(tmp_path).keys()
    with pytest.raises(SourceError):
        open_source(iter([*ROWS, None]))
    open_source(iter(ROWS))
    gc.collect()
    assert descriptors(tmp_path).keys() == before


@pytest.mark.parametrize("step", ["__init__", "write", "finish"])
def test_a_disk_that_is_full(monkeypatch, tmp_path, step):
    """Without room there is an error that names the folder, which a retry may get over, and no half a table."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if step == "__init__":
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: fail())
    else:
        monkeypatch.setattr(spool_module._Spool, step, fail)
    with pytest.raises(SourceUnavailableError) as caught:
        open_source(iter(ROWS))
    assert str(caught.value) == (
        f"source: list_iterator: its rows cannot be kept in {tmp_path}, the folder for temporary files: No space left "
        "on device. Nothing was sent. Make room there, or set TMPDIR to a folder that has room"
    )


def test_an_error_of_the_source_is_not_taken_for_one_of_the_disk():
    """Its own error is passed on as it is."""

    def rows():
        yield ROWS[0]
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(FileNotFoundError):
        open_source(rows())


def test_large_pieces_are_cut():
    """A producer may hand out any number of rows at once: a reader has a bounded number in memory."""
    rows = 3 * spool_module.PIECE_ROWS + 1
    source = spool(*Pieces(iter([pa.RecordBatch.from_pydict({"n": list(range(rows))})]), "pieces"))
    assert [len(piece) for piece in source._spooled.read()] == [spool_module.PIECE_ROWS] * 3 + [1]


MEASURE = """
import resource, sys
from airflow_provider_sms.recipients.sources import open_source
rows = int(sys.argv[1])
source = open_source({"destination": 27 * 10**9 + n, "text": f"A text that weighs something {n}"} for n in range(rows))
assert sum(len(batch) for batch in source.batches()) == rows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows():
    """Ten times the rows take no more memory: a few MiB more, where they weigh forty."""

    def mebibytes(rows):
        ran = subprocess.run(
            [sys.executable, "-c", MEASURE, str(rows)], capture_output=True, text=True, check=True, timeout=300
        )
        return int(ran.stdout)

    assert mebibytes(500_000) < mebibytes(50_000) + 15
