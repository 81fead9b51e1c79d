from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.composed import composed

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.batches import Source
from airflow_provider_sms.recipients.memory import from_dicts
from airflow_provider_sms.recipients.sources import open_source

NUMBER = 27820000000


def at(day, hour=0):
    """Make a time without a zone, as tables hold them."""
    return dt.datetime(2026, 3, day, hour)  # noqa: DTZ001 - without a zone is what is meant


def read(source, message="{x}", key_columns=None):
    """Read a table whole: of each row its text and its key, or the reason why it is invalid."""
    opened = open_source(source)
    composer = Composer(message, None, key_columns=key_columns)
    found, first = {}, 0
    for batch in opened.batches(composer.columns, composer.check):
        prepared = composed(composer, batch, first)
        found.update(zip(prepared.rows, zip(prepared.contents, prepared.keys, strict=True), strict=True))
        found.update({rejected.row: rejected.reason for rejected in prepared.rejected})
        first += len(batch)
    return [found[row] for row in range(first)]


def rows(*values):
    """Make a list of dicts of values of the column ``x``."""
    return [{"destination": str(NUMBER + n), "x": value} for n, value in enumerate(values)]


def stream(*values):
    """Make an iterator of dicts of values of the column ``x``, each of which is a piece of its own."""
    return Source("iterator", lambda _: (batch for row in rows(*values) for batch in from_dicts(iter([row])).batches()))


def frame(*values, dtype=object):
    """Make a DataFrame of values of the column ``x``."""
    return pd.DataFrame(
        {"destination": [str(NUMBER + n) for n in range(len(values))], "x": pd.Series(values, dtype=dtype)}
    )


def table(column):
    """Make an Arrow table with the column ``x``."""
    return pa.table({"destination": [str(NUMBER + n) for n in range(len(column))], "x": column})


def files(folder, *columns):
    """Write Parquet files with parts of the column ``x``; the numbers go on from file to file."""
    folder.mkdir()
    first = 0
    for name, column in enumerate(columns):
        numbers = [str(NUMBER + n) for n in range(first, first + len(column))]
        pq.write_table(pa.table({"destination": numbers, "x": column}), folder / f"{name}.parquet")
        first += len(column)
    return folder


def texts(found):
    return [row if isinstance(row, str) else row[0] for row in found]


MIXED = [
    (10.0, "n/a"),
    (12.5, "n/a"),
    (10, 12.5),
    (10, "n/a"),
    (np.float32(0.1), 0.25),
    (np.float32(0.1), "n/a"),
    (np.int64(10), "n/a"),
    (True, 10),
    (True, 0.5),
    (np.True_, 10),
    (np.True_, "n/a"),
    (True, None),
    (2**60, 0.5),
    (2**70, 10.0),
    (dt.date(2026, 3, 1), at(2, 9)),
    (at(2, 9), dt.date(2026, 3, 1)),
    (at(1), dt.date(2026, 3, 1)),
    (at(1, 9), "n/a"),
    (dt.date(2026, 3, 1), "n/a"),
    (dt.time(9, 30), "n/a"),
    (at(1, 9), dt.datetime(2026, 3, 1, 9, tzinfo=dt.timezone.utc)),
    (
        dt.datetime(2026, 3, 1, 9, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        dt.datetime(2026, 3, 1, 9, tzinfo=dt.timezone.utc),
    ),
    ("Ann", None),
    ("Ann", float("nan")),
]


@pytest.mark.parametrize("make", [rows, frame, stream], ids=["dicts", "frame", "iterator"])
@pytest.mark.parametrize("keys", [None, ["x"]], ids=["text", "key"])
@pytest.mark.parametrize("values", MIXED, ids=str)
def test_a_value_is_written_by_itself(values, keys, make):
    """A value of a list or of an object column has one text and one key, whatever stands beside it, in any order."""
    alone = [read(make(value), key_columns=keys)[0] for value in values]
    together = read(make(*values), key_columns=keys)
    back = read(make(*reversed(values)), key_columns=keys)[::-1]
    assert texts(alone) == texts(together) == texts(back)
    assert alone[0] == together[0]


def test_a_float_column_that_gets_one_text(tmp_path):
    """Ten reads "10" in a column of numbers, and beside a word."""
    assert texts(read(frame(10.0, 20.0))) == ["10", "20"]
    assert texts(read(frame(10.0, "soon"))) == ["10", "soon"]


@pytest.mark.parametrize("make", [rows, frame, stream], ids=["dicts", "frame", "iterator"])
@pytest.mark.parametrize("values", [(Decimal("12.50"),), (Decimal(10), Decimal("12.50"))], ids=str)
def test_decimals_in_memory_need_a_format(make, values):
    """As those of a file do, where any of them has digits after the point."""
    with pytest.raises(TemplateError, match=r"column 'x' holds decimals .*\{x:\.2f\}"):
        read(make(*values), "R{x}")
    assert read(make(*values), "R{x:.2f}")[0][0] in {"R10.00", "R12.50"}
    assert read(make(*values), "Hi", ["x"])[0] == read(rows(float(values[0])), "Hi", ["x"])[0]


def test_decimals_of_several_scales(tmp_path):
    """Files with decimals of other scales are never two texts: a whole one reads as such, others need a format."""
    whole, cents = pa.array([Decimal(10)], pa.decimal128(10, 0)), pa.array([Decimal("12.50")], pa.decimal128(10, 2))
    alone = read(files(tmp_path / "a", whole))
    assert texts(alone) == ["10"]
    for name, columns in {"b": (whole, cents), "c": (cents, whole), "d": (cents,)}.items():
        with pytest.raises(TemplateError, match="decimals"):
            read(files(tmp_path / name, *columns))
    formatted = read(files(tmp_path / "e", whole, cents), "{x:.2f}")
    assert formatted[0] == read(files(tmp_path / "f", whole), "{x:.2f}")[0]
    assert texts(formatted) == ["10.00", "12.50"]
    assert read(tmp_path / "e", "Hi", ["x"])[0] == read(tmp_path / "f", "Hi", ["x"])[0]


@pytest.mark.parametrize("keys", [None, ["x"]], ids=["text", "key"])
def test_short_floats_beside_long_ones(tmp_path, keys):
    """A float of 32 bits is the number that it was written as, alone and beside a file with longer ones."""
    short, long = pa.array([0.1], pa.float32()), pa.array([0.1])
    alone = [read(files(tmp_path / name, column), key_columns=keys)[0] for name, column in (("a", short), ("b", long))]
    assert alone[0] == alone[1]
    assert texts(read(files(tmp_path / "c", short, long), key_columns=keys)) == ["0.1", "0.1"]
    assert read(files(tmp_path / "d", long, short), key_columns=keys)[0] == alone[0]


def test_a_number_in_a_short_float_is_not_texted_beside_a_long_one(tmp_path):
    """A phone number that a short float has lost is refused, also where another file has long ones."""
    for name, column in (("a", pa.array([27820000001], pa.float64())), ("b", pa.array([27820000123.0], pa.float32()))):
        pq.write_table(pa.table({"destination": column, "x": ["Hi"]}), tmp_path / f"{name}.parquet")
    found = texts(read(tmp_path))
    assert found[0] == "Hi"
    assert "digits were lost" in found[1]
    assert "digits were lost" in texts(read(tmp_path / "b.parquet"))[0]
    lost = [{"destination": 27820000001.0, "x": "Hi"}, {"destination": np.float32(27820000123.0), "x": "Hi"}]
    assert "digits were lost" in texts(read(lost))[1]
    assert "digits were lost" in texts(read([*lost, {"destination": "27820000002", "x": "Hi"}]))[1]


@pytest.mark.parametrize("value", ["1.0", "1.00", 1, 1.0, Decimal("1.0"), np.float32(1), True and 1])
def test_equal_numbers_are_one_key(value):
    """Numbers equal in value are one key, however they are stored, also as text."""
    assert read(rows(value), "Hi", ["x"]) == read(table(pa.array([1])), "Hi", ["x"])


def test_csv_and_parquet_have_the_same_keys(tmp_path):
    """The same table as CSV and as Parquet has the same keys, and with a format the same texts."""
    people = pd.DataFrame(
        {
            "destination": [str(NUMBER + n) for n in range(3)],
            "x": [10.0, 12.5, 1e-5],
            "on": [True, False, True],
            "day": pd.to_datetime(["2026-03-01", "2026-03-02 09:30", "2026-03-03"], format="mixed"),
            "name": ["", "Ann", "Bob"],
        }
    )
    people.to_parquet(tmp_path / "a.parquet")
    people.to_csv(tmp_path / "a.csv", index=False)
    for message, keys in (
        ("R{x:.2f}", None), ("R{x:,.1f}", None), ("On {day:%d %B}", None), ("Hi {name}", None), ("{on}", None),
        ("Hi", ["x"]), ("Hi", ["day"]), ("Hi", ["on"]), ("Hi", ["name"]), ("Hi", ["x", "day", "on", "name"]),
    ):  # fmt: skip
        assert read(tmp_path / "a.parquet", message, keys) == read(tmp_path / "a.csv", message, keys)


def test_decimals_and_floats_of_two_files_stay_what_they_are(tmp_path):
    """A file of decimals may lie beside one of floats."""
    found = read(files(tmp_path / "a", pa.array([Decimal("12.50")]), pa.array([0.5])), "{x:.2f}")
    assert texts(found) == ["12.50", "0.50"]
