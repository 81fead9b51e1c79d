from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather
from support.composed import composed

from airflow_provider_sms.exceptions import TemplateError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.sources import open_source

NUMBER = 27820000000


class Kind(NamedTuple):
    """A kind of column, and the messages for which its values have one text in every form."""

    drawn: st.SearchStrategy
    messages: tuple[str, ...]
    in_csv: tuple[str, ...]
    """Of the messages those for which a CSV file says the same: what has no format is there as the writer wrote it."""
    arrow_types: tuple[pa.DataType, ...]


def times(start, end):
    return st.datetimes(start, end).map(lambda time: time.replace(microsecond=0))


cents = st.integers(-(10**6), 10**6).map(lambda value: value / 100)
DAY, LATER = dt.datetime(2026, 1, 1), dt.datetime(2027, 1, 1)  # noqa: DTZ001 - without a zone is what is meant
NUMBERS = ("{x:.2f}", "{x:,.1f}", "{x:.0f}", "{x:>12.3f}", "{x:+.2f}", "{x:.1%}")
DATES = ("{x:%d %B}", "on {x:%Y/%m/%d %H:%M}")
TEXTS = [
    "1.0", "1", "12.50", "-0.0", "007", "1e5", "1e-05", "nan", "None", "Nan", "", " ", "True", "false", "2026-03-01",
    "2026-03-01 00:00:00", "2026-03-01T09:30:00+02:00", "a,b", 'say "hi"', "Jose\u0301", "a\u00a0b", " Ann ",
]  # fmt: skip
DECIMALS = [Decimal(10), Decimal("10.00"), Decimal("1E+3")]
KINDS = {
    "integers": Kind(
        st.integers(-(2**53) + 1, 2**53 - 1), ("{x}", "{x:d}", "{x:05}", "{x:,}", *NUMBERS), ("{x:d}", *NUMBERS),
        (pa.int64(), pa.decimal128(20, 0)),
    ),
    "floats": Kind(
        cents | st.sampled_from([10.0, 0.0, -0.0, 2.675, 0.125, 1e-5]) | st.floats(-(2.0**40), 2.0**40),
        ("{x}", "{x:,}", *NUMBERS), NUMBERS, (pa.float64(), pa.float32()),
    ),
    "decimals": Kind(
        cents.map(lambda value: Decimal(repr(value))) | st.sampled_from(DECIMALS),
        NUMBERS, NUMBERS, (pa.decimal128(20, 2), pa.decimal128(12, 4), pa.decimal256(50, 2)),
    ),
    "texts": Kind(
        st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S", "Zs"])),
        ("{x}", "{x:>5}", "{x:.3s}"), ("{x}", "{x:>5}", "{x:.3s}"), (pa.string(), pa.large_string()),
    ),
    "truths": Kind(st.booleans(), ("{x}",), ("{x}",), (pa.bool_(),)),
    "dates": Kind(st.dates(DAY.date(), LATER.date()), ("{x}", *DATES), ("{x}", *DATES), (pa.date32(), pa.date64())),
    "times": Kind(
        times(DAY, LATER) | st.just(DAY), ("{x}", *DATES), DATES,
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns")),
    ),
}  # fmt: skip


def read(source, message="{x}", key_columns=None):
    """Give each row's text and key by its number, or the reason why it is invalid."""
    opened = open_source(source)
    composer = Composer(message, None, key_columns=key_columns)
    found = {}
    for batch in opened.batches(composer.columns, composer.check):
        made = composed(composer, batch)
        found.update(zip(made.destinations, zip(made.contents, made.keys, strict=True), strict=True))
        found.update({rejected.destination: rejected.reason for rejected in made.rejected})
    return found


def each_alone(rows, message, key_columns):
    """Read each row as a table of its own."""
    found = {}
    for row in rows:
        found.update(read([row], message, key_columns))
    return found


def people(values, first=0, names=("destination", "x")):
    """Make rows of values of the column ``x``."""
    return [dict(zip(names, (str(NUMBER + n), value), strict=True)) for n, value in enumerate(values, first)]


def arrow_column(values, kind, draw):
    """Make a column of one of the types that can hold the values."""
    for choice in draw(st.permutations(kind.arrow_types)):
        try:
            column = pa.array(values, choice, from_pandas=True)
        except (pa.ArrowException, OverflowError):
            continue
        if choice == pa.float32() and not all(
            value is None or (float(str(np.float32(value))) == value and abs(value) < 2**24) for value in values
        ):
            continue
        return column.dictionary_encode() if draw(st.booleans()) and not pa.types.is_decimal(choice) else column
    return pa.array(values, from_pandas=True)


def in_memory(rows, form, kind, draw, _=None):
    to, x = rows[0]
    numbers, values = [row[to] for row in rows], [row[x] for row in rows]
    objects = pd.Series(values, dtype=object)
    of_values = {
        "dicts": lambda: rows,
        "iterator": lambda: iter(rows),
        "frame": lambda: pd.DataFrame({to: numbers, x: values}),
        "objects": lambda: pd.DataFrame({to: numbers, x: objects}),
        "categories": lambda: pd.DataFrame({to: numbers, x: objects.astype("category")}),
    }
    if form in of_values:
        return of_values[form]()
    made = pa.table({to: numbers, x: arrow_column(values, kind, draw)})
    if form == "polars" and not pa.types.is_decimal256(made.schema.field(x).type):  # which polars does not know
        return pl.from_arrow(made)
    return made.to_reader() if form == "stream" else made


WRITERS = {"parquet": pq.write_table, "arrow": feather.write_feather}


def in_files(rows, form, kind, draw, folder):
    """Write the rows into files, split somewhere."""
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=2)) | {0, len(rows)})
    for name, (start, end) in enumerate(pairwise(cuts)):
        suffix, of = form.split(" of ")
        part = in_memory(rows[start:end], of, kind, draw)
        frame = part if isinstance(part, (pd.DataFrame, pa.Table)) else pd.DataFrame(part)
        if suffix == "csv":
            frame.to_csv(folder / f"{name}.csv", index=False)
        elif isinstance(frame, pa.Table):
            WRITERS[suffix](frame, folder / f"{name}.{suffix}")
        else:
            frame.to_parquet(folder / f"{name}.parquet", index=False)
    return folder


FORMS = (
    "dicts", "iterator", "frame", "objects", "categories", "table", "stream", "parquet of frame",
    "polars",
    "parquet of table", "arrow of table", "csv of frame",
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_row_has_one_text_and_one_key_in_any_form(data):
    """Any table, split into any files, in any format, any rows beside a row: the row's text and key stay the same.

    So it is with names as Snowflake or a spreadsheet has them, in capitals or with blanks.
    """
    draw = data.draw
    name = draw(st.sampled_from(sorted(KINDS)))
    kind, form = KINDS[name], draw(st.sampled_from(FORMS))
    values = draw(st.lists(st.none() | kind.drawn, min_size=1, max_size=5))
    key_columns = draw(st.sampled_from([None, ["x"]]))
    messages = kind.in_csv if form.startswith("csv") else kind.messages
    message = "Hi " + draw(st.sampled_from(messages)) if key_columns is None else "Hi"
    rows = people(values, names=draw(st.sampled_from([("destination", "x"), ("DESTINATION", " X\u00a0")])))
    with tempfile.TemporaryDirectory() as folder:
        write = in_files if " of " in form else in_memory
        found = read(write(rows, form, kind, draw, Path(folder)), message, key_columns)
    assert found == each_alone(rows, message, key_columns)


anything = st.one_of(*(KINDS[name].drawn for name in KINDS if name != "decimals")) | st.sampled_from(
    [np.float32(0.1), np.int64(10), np.True_, 2**60, 2**70, float("nan"), pd.NA, pd.NaT, "n/a", dt.time(9, 30)]
    + [dt.datetime(2026, 3, 1, 9, tzinfo=dt.timezone(dt.timedelta(hours=hours))) for hours in (0, 2)]
)


@settings(max_examples=200)
@given(
    st.sampled_from([("Hi {x}", anything), ("Hi {x:.2f}", KINDS["decimals"].drawn | st.integers(-9, 9))]).flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.lists(st.none() | kind[1], min_size=1, max_size=5))
    ),
    st.sampled_from([None, ["x"]]),
    st.booleans(),
    st.sampled_from([1, 3, 100]),
)
def test_a_value_among_values_of_other_kinds_stays_what_it_is(column, key_columns, as_frame, piece_rows):
    """Numbers, words, dates and truths in one column, or in batches, have the text and the key that they have alone.

    So have decimals of other scales, and whole numbers among them.
    """
    message, values = column
    rows = people(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_provider_sms.recipients.memory.BATCH_ROWS", piece_rows)
        found = read(in_memory(rows, "objects" if as_frame else "iterator", None, None), message, key_columns)
    assert found == each_alone(rows, message, key_columns)


def files(folder, *columns):
    """Write Parquet files with parts of the column ``x``; the numbers go on from file to file."""
    folder.mkdir()
    first = 0
    for name, column in enumerate(columns):
        numbers = [row["destination"] for row in people(column, first)]
        pq.write_table(pa.table({"destination": numbers, "x": column}), folder / f"{name}.parquet")
        first += len(column)
    return folder


def texts(found):
    return [row if isinstance(row, str) else row[0] for row in found.values()]


@pytest.mark.parametrize("values", [["12.50"], ["10", "12.50"]], ids=str)
@pytest.mark.parametrize("make", [list, iter, lambda rows: pd.DataFrame(rows, dtype=object)], ids=["l", "i", "f"])
def test_decimals_in_memory_need_a_format(make, values):
    """As those of a file do, where any of them has digits after the point."""
    rows = people(map(Decimal, values))
    with pytest.raises(TemplateError, match=r"column 'x' holds decimals .*\{x:\.2f\}"):
        read(make(rows), "R{x}")
    assert texts(read(make(rows), "R{x:.2f}")) == [f"R{float(value):.2f}" for value in values]
    assert read(make(rows), "Hi", ["x"]) == read(people(map(float, values)), "Hi", ["x"])


def test_decimals_of_several_scales(tmp_path):
    """Files with decimals of other scales are never two texts: a whole one reads as such, others need a format."""
    whole, cents = pa.array([Decimal(10)], pa.decimal128(10, 0)), pa.array([Decimal("12.50")], pa.decimal128(10, 2))
    assert texts(read(files(tmp_path / "a", whole))) == ["10"]
    for name, columns in {"b": (whole, cents), "c": (cents, whole), "d": (cents,)}.items():
        with pytest.raises(TemplateError, match="decimals"):
            read(files(tmp_path / name, *columns))
    assert texts(read(files(tmp_path / "e", whole, cents, pa.array([0.5])), "{x:.2f}")) == ["10.00", "12.50", "0.50"]


def test_a_number_in_a_short_float_is_not_texted_beside_a_long_one(tmp_path):
    """A phone number that a short float has lost is refused, also where another file or row has long ones."""
    long, short = 27820000001.0, 27820000123.0
    for name, column in (("a", pa.array([long])), ("b", pa.array([short], pa.float32()))):
        pq.write_table(pa.table({"destination": column, "x": ["Hi"]}), tmp_path / f"{name}.parquet")
    rows = [{"destination": long, "x": "Hi"}, {"destination": np.float32(short), "x": "Hi"}]
    for source in ([str(tmp_path)], rows, [*rows, {"destination": "27820000002", "x": "Hi"}]):
        found = texts(read(source))
        assert (found[0], len(found), found.count("Hi")) == ("Hi", max(2, len(source)), len(found) - 1)
        assert sum("digits were lost" in each for each in found) == 1
