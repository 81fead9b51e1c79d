from __future__ import annotations

import bz2
import csv
import gzip
import io
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import first_schema, read

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.paths import without_secrets
from airflow_provider_sms.recipients.sources import open_source

PEOPLE = b"destination,name\n0821234567,Thandi\n27821234568,Sipho\n"
PEOPLE_READ = {"destination": ["0821234567", "27821234568"], "name": ["Thandi", "Sipho"]}
MANY = b"destination,name\n" + b"".join(b"27%09d,Name %d\n" % (n, n) for n in range(100_000))


NOT_UTF_8 = "holds text that is not UTF-8, such as the Windows-1252 of spreadsheets; write it as UTF-8"
COMPRESS = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def write(path, content=PEOPLE):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def refusal(source):
    """Give the words with which a source is refused."""
    with pytest.raises(SourceError) as caught:
        read(source)
    assert caught.value.__cause__ is None
    return str(caught.value).removeprefix("source: ")


AS_WRITTEN = ["0821234567", "+27821234567", "2.78E+10", "007", "1e5", "5.0", "NA", "null", "nan", "#N/A", "true", " x "]
NAMES = ["", "2026-01-31", "20260131", "31/01/2026", "a.b", " c", "5% {x}"]


@pytest.mark.parametrize("value", [*AS_WRITTEN, "Zoë"])
def test_values_are_text_as_written(tmp_path, value):
    """No value is taken for a number, a date or nothing: zeros stay, and somebody may be called NA."""
    rows = f'a,b\n{value},x\n"{value}",y\n'
    assert read(write(tmp_path / "a.csv", rows.encode()), ["a"]) == {"a": [value, value]}
    # Columns may be called after days, and have spaces, dots and marks; the first may be the index of pandas.
    assert first_schema(write(tmp_path / "b.csv", ",".join(NAMES).encode())).names == NAMES


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("beginning", [b"", b"\xef\xbb\xbf", b"\n\n"], ids=["", "BOM", "blank"])
def test_lines(tmp_path, line_end, beginning):
    """Lines end as any system ends them, the last may lack its end, and a mark of UTF-8 is no part of a name."""
    content = beginning + PEOPLE
    assert read(write(tmp_path / "a.csv", content.replace(b"\n", line_end))) == PEOPLE_READ
    assert read(write(tmp_path / "a.csv", content.strip(b"\n").replace(b"\n", line_end))) == PEOPLE_READ


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_large_file(tmp_path, suffix):
    """Rows come in order, in batches of a bounded size, also of compressed files that were put one after the other."""
    halves = [MANY[: len(MANY) // 2], MANY[len(MANY) // 2 :]] if suffix == ".gz" else [MANY]
    path = write(tmp_path / f"a.csv{suffix}", b"".join(map(COMPRESS[suffix], halves)))
    batches = list(open_source(path).batches(["name"]))
    assert max(map(len, batches)) <= 10_000
    assert [name for batch in batches for name in batch["name"].to_pylist()] == [f"Name {n}" for n in range(100_000)]


def test_a_directory(tmp_path):
    """It is all CSV files in it, sorted by path, whatever compression and order of columns; a URI may be signed."""
    write(tmp_path / "01" / "a.csv", b"a,b\n1,x\n")
    write(tmp_path / "02" / "a.tsv.gz", gzip.compress(b"b\ta\ny\t2\n"))
    write(tmp_path / "_log.csv")
    source = open_source(tmp_path)
    assert source.description == f"{tmp_path} (2 CSV files)"
    assert read(tmp_path) == {"a": ["1", "2"], "b": ["x", "y"]}
    assert read(f"{tmp_path}/*/*sv", ["a"]) == {"a": ["1"]}
    assert read([tmp_path / "02" / "a.tsv.gz", tmp_path / "01"], ["a"]) == {"a": ["2", "1"]}
    signed = SimpleNamespace(info=lambda _: {"type": "file"}, open=lambda *_: (tmp_path / "01" / "a.csv").open("rb"))
    assert read(SimpleNamespace(fs=signed, path="https://host/a.csv?signature=x.parquet"), ["a"]) == {"a": ["1"]}


@pytest.mark.parametrize("form", [lambda path: path, lambda path: f"{path}/*", lambda path: sorted(path.iterdir())])
def test_csv_beside_parquet(tmp_path, form):
    """Where CSV files lie among Parquet files, neither are passed over in silence."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    write(tmp_path / "b.csv")
    words = f"{tmp_path}/a.parquet is Parquet, and {tmp_path}/b.csv is CSV: one source is of one format"
    assert refusal(form(tmp_path)).startswith(words)


REFUSED = {
    "is empty; the first line must hold the names of the columns": [b"", b"\n\n", b"\xef\xbb\xbf", b",,\n,,"],
    "the first line holds a number; it must hold the names of the columns": [
        b"0821234567;Thandi\n", b"0821234567,Thandi\n", b"+27 82 123 4567,Thandi\n",
    ],
    "the first line leaves a column without a name: name the column, or remove it": [
        b"destination,text,\n27821234567,Hello, friend\n", b"a, ,b\n1,2,3\n", b"a;b;;\n1;2;;\n",
    ],
    "more than one column is named 'a'; rename or drop the others": [b"a,a\n1,2\n"],
    "row 0 of the file has 1 value, but the header names 2 columns": [b'a,b\n","\n'],
    "row 1 of the file has 1 value, but the header names 2 columns": [b"a,b\n1,2\n\n3\n"],
    "row 1 of the file has 3 values, but the header names 2 columns": [b'a,b\n"1\n\n\n",2\n3,4,5\n'],
    "row 100000 of the file has 1 value, but the header names 2 columns": [MANY + b"27820000000\n"],
    "line 1: holds a zero byte, so it is not UTF-8 text; is it another kind of file?": [
        PEOPLE.decode().encode("utf-16"), b"d\0e\0", b"PAR1\0", gzip.compress(PEOPLE, mtime=0),
    ],
    "line 3: holds a zero byte, so it is not UTF-8 text; is it another kind of file?": [b"a,b\n1,2\n3,\0\n"],
    f"line 1: {NOT_UTF_8}": [b"n\xe4me,a\nx,1\n"],
    f"line 2: {NOT_UTF_8}": [b"a,b\n1,caf\xe9\n", b"a,b\n1,\xff\x81\n"],
    f"line 4: {NOT_UTF_8}": [b"\n,,\na,b\n1,caf\xe9\n"],
    f"line 100002: {NOT_UTF_8}": [MANY + b"1,caf\xe9\n"],
    "line 2: a quote is opened and never closed": [b'a,b\n1,"x\n3,4\n5,6\n'],
    "line 2: a row is longer than 1 MiB; is a quote never closed?": [b"a\n" + b"x" * (3 << 20)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"), [(each, words) for words, contents in REFUSED.items() for each in contents]
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_is_refused(tmp_path, content, words, suffix):
    """What is wrong with a file is said of the file and the row, in words without a value."""
    path = write(tmp_path / f"a.csv{suffix}", COMPRESS[suffix](content))
    assert refusal(path) == f"{without_secrets(path)}: {words}"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("content", [PEOPLE, b"x", b"\0" * 100, *(-lost for lost in (1, 3, 8, 20, 1000))], ids=str)
def test_a_file_that_is_cut_short_or_not_compressed_as_its_name_says(tmp_path, suffix, content):
    """One that was cut short on its way is never taken for a shorter one."""
    stored = content if isinstance(content, bytes) else COMPRESS[suffix](MANY)[:content]
    path = write(tmp_path / f"a.csv{suffix}", stored)
    assert refusal(path) == f"{path}: is not a valid CSV file, or is damaged or cut short"


# As spreadsheets, Spark and stores leave them


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("a.tsv", "to\tname\n1\tSipho, M\n", {"to": ["1"], "name": ["Sipho, M"]}),
        ("A.TSV", 'to\t"name"\n1\t"Sipho"\n', {"to": ["1"], "name": ["Sipho"]}),
        ("a.csv", "to;name, first\n1;Ann\n2;Lee, M, Dr\n", {"to": ["1", "2"], "name, first": ["Ann", "Lee, M, Dr"]}),
        ("a.csv", "to\tamount\n1\t1,50\n2\t1.250,00\n", {"to": ["1", "2"], "amount": ["1,50", "1.250,00"]}),
        ("a.csv", "to|amount\n1|1,50\n2|1.250,00\n", {"to": ["1", "2"], "amount": ["1,50", "1.250,00"]}),
        ("a.csv", "text\nHi; there\nBye | now\na\tb\n", {"text": ["Hi; there", "Bye | now", "a\tb"]}),
        ("a.csv", '\ufeffto,text\r\n1,"a;b"\r\n2,c|d', {"to": ["1", "2"], "text": ["a;b", "c|d"]}),
        ("a.csv", "to,text\n", {}),
    ],
)
def test_a_separator_is_found_by_name_header_and_rows(tmp_path, name, text, values):
    """A sign separates columns that divides header and rows alike, as where a comma marks decimals or is in names."""
    path = write(tmp_path / name, text.encode())
    assert read(path) == values
    assert read([path, path]) == {name: column * 2 for name, column in values.items()}
    assert first_schema(path).names == (list(values) or ["to", "text"])


@pytest.mark.parametrize("separator", [",", ";"])
def test_what_a_spreadsheet_leaves_around_a_table(tmp_path, separator):
    """Rows without a value, before the header and after it, are no part of it."""
    empty = ["", ""]
    cells = [empty, [""], ["a", "b"], ["1", "2"], empty, ["", "3"], empty]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, dialect="excel", delimiter=separator).writerows(cells)
    assert read(path) == {"a": ["1", None], "b": ["2", "3"]}
    assert read(path, ["a"]) == {"a": ["1", None]}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_empty_file_among_others_has_no_rows(tmp_path, suffix, caplog):
    """Spark writes a file without a byte for a part without rows; a table of such files alone is refused."""
    for name in ("0", "1", "3"):
        empty = write(tmp_path / f"part-{name}.csv{suffix}", COMPRESS[suffix](b""))
    with pytest.raises(SourceError, match=r"part-0\.csv.*: is empty; the first line must hold the names"):
        read(tmp_path)
    write(empty.with_name(f"part-2.csv{suffix}"), COMPRESS[suffix](PEOPLE))
    assert read(tmp_path) == PEOPLE_READ
    assert f"3 of 4 files of {tmp_path} (4 CSV files) hold no rows" in caplog.text
    write(empty, b"")
    assert read(tmp_path) == PEOPLE_READ


# Quotes, and the blocks in which a file is read


@pytest.fixture(scope="module")
def in_blocks(tmp_path_factory):
    """Read a text in blocks of some bytes."""
    path = tmp_path_factory.mktemp("blocks") / "a.csv"

    def in_blocks(text, size):
        path.write_text(text, newline="")
        with pytest.MonkeyPatch.context() as patch:
            for constant in ("_BLOCK", "_SAMPLE"):
                patch.setattr(f"airflow_provider_sms.recipients.csv.{constant}", size)
            return [list(row) for row in zip(*read(path).values(), strict=True)]

    return in_blocks


@given(
    rows=st.lists(st.lists(st.text(st.sampled_from('aé ,"\n;0'), max_size=6), min_size=3, max_size=3), max_size=20),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(60, 90) | st.just(1 << 20),
)
def test_what_a_writer_wrote_is_read(in_blocks, rows, quoting, line_end, size):
    """Each row with a value that Python's writer wrote is read, in order, wherever a block ends."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=line_end).writerows([["a", "b", "c"], *rows])
    assert in_blocks(text.getvalue(), size) == [[value or None for value in row] for row in rows if any(row)]


@given(text=st.text(st.sampled_from('a,"\n'), max_size=30))
def test_what_is_read_is_read_in_one_way(in_blocks, text):
    """What is read is what a strict parser reads; what that refuses is refused."""
    try:
        found = in_blocks(f"first,second\n{text}", 100)
    except SourceError:
        return
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert found == [[value or None for value in row] for row in rows if any(row)]


@pytest.mark.parametrize("size", [13, 14, 15, 100])
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('a,b\n1,x"y\n', 2, "stands within a value"),
        ('a,b\n"1\n2",x"\n', 3, "stands within a value"),
        ('a,b\n1,""x"\n', 2, "stands within a value"),
        ('a\n"x\n3\n5,"z"\n', 2, "stands within a value"),
        ('a\n"x\n3\n', 2, "is opened and never closed"),
        ('"', 1, "is opened and never closed"),
        ('a\tb\n1,"2",3\t4\n', 2, "stands within a value"),  # beside no tab
    ],
)
def test_quotes_out_of_place(in_blocks, text, line, words, size):
    """A quote within a value, or never closed, is refused with its line: rows could vanish in one value."""
    with pytest.raises(SourceError, match=rf"a\.csv: line {line}: a quote {words}"):
        in_blocks(text, size)
