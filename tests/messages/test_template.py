from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, localcontext
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.composed import composed

from airflow_provider_sms.exceptions import ColumnError, TemplateError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.template import NO_CALENDAR, Template, TextColumn, write_numbers
from airflow_provider_sms.recipients.columns import beyond_calendar
from airflow_provider_sms.recipients.values import write


def at(*parts):
    """Make a time without a zone, as tables hold them."""
    return dt.datetime(*parts)  # noqa: DTZ001 - without a zone is what is meant


def rendered(text, **columns):
    """Check and render a template for columns of one batch."""
    batch = pa.RecordBatch.from_pydict(columns)
    template = Template(text)
    template.check(batch.schema)
    assert "Hi" not in repr(template)  # it is as private as the text of a message
    return template.render(batch).to_pylist()


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("Hi {a}, you have {b} points.", ("a", "b"), ["Hi x, you have 3 points.", "Hi y, you have 0 points."]),
        ("{a}{b} and {a}", ("a", "b"), ["x3 and x", "y0 and y"]),
        ("{b} {a} {b:>5} {{c}}", ("b", "a"), ["3 x     3 {c}", "0 y     0 {c}"]),
        ("{{{a}}}", ("a",), ["{x}", "{y}"]),
        ("The office is closed {{today}}.", (), ["The office is closed {today}."] * 2),
    ],
)
def test_fields_are_columns(text, columns, expected):
    """Each row's text has its values in the places of their columns, and doubled braces are braces; no rows have none.

    The columns are known before any row is, each once.
    """
    assert Template(text).columns == columns
    assert rendered(text, a=["x", "y"], b=[3, 0]) == expected
    assert rendered(text, a=pa.array([], pa.string()), b=pa.array([], pa.int8())) == []


@pytest.mark.parametrize("others", [Context(rounding=ROUND_HALF_UP), Context(prec=2, traps=[Inexact])], ids=repr)
def test_no_text_depends_on_decimals_of_other_code(others):
    """A DAG's file may round its own decimals in another way: a value reads as it does in the thread that sends."""
    columns = {"a": [2.665, 1234.5], "b": [Decimal("2.665"), Decimal("1234.5")], "c": ["2.665", "1234.5"]}
    text = "{a:.2f} {b:.2f} {c:.2f}"
    with localcontext(others):
        assert rendered(text, **columns) == ["2.66 2.66 2.66", "1234.50 1234.50 1234.50"]


KINDS_OF_NOTHING = [pa.string(), pa.int64(), pa.float64(), pa.timestamp("ns"), pa.bool_(), pa.null()]
TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize(
    ("specs", "kinds"),
    [
        (["q", ".2q", "x:>", ",_", ".2d", "{width}"], TEXTS),
        # Python would write the format itself in place of the date, and everybody would read it.
        ([".2f", "8", ">10", ",", "d", "%"], [pa.date32(), pa.timestamp("s"), pa.time32("s")]),
        (["%d %B", "q", "s", ",_", "x", "c", ".2d"], [pa.int64(), pa.float32(), pa.decimal128(9, 2), pa.bool_()]),
    ],
    ids=["text", "dates", "numbers"],
)
def test_a_format_that_does_not_fit_its_column_is_refused(specs, kinds):
    """Before any row is read, with what to write."""
    for spec, kind in product(specs, kinds):
        with pytest.raises(TemplateError, match=r"does not fit column 'due' of type .*Write \{due\}"):
            Template("You owe {due:" + spec + "}").check(pa.schema([("due", kind)]))


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [(".2f", "12.5", "12.50"), (",.2f", "1250", "1,250.00"), (".2f", "2.675", "2.68"), (".1%", "0.5", "50.0%"),
     ("05", "42", "00042"), ("+", "5", "+5"), ("d", "120.0", "120"), (",", "1234.50", "1,234.5"),
     (".2f", "1e-05", "0.00"), (".2f", "-0.0000000001", "0.00"),
     ("=5", "-1", "-   1"), (".2f", "007", "7.00"), (".2f", " 12.5 ", "12.50"),
     ("%d %B", "2026-03-01", "01 March"), ("%H:%M", "2026-03-01 09:30:00", "09:30"),
     ("%d", "2026-03-01T09:30:00Z", "01"),
     (".2f", "1,250.5", None), (".2f", "2.78E10", None), (".2f", "soon", None), (".2f", "nan", None), (".2f", "", None),
     ("%d %B", "1 March", None), ("%d %B", "2026-02-30", None),
     *((spec, "Ann", format("Ann", spec)) for spec in ("", ">8", "<8", "^8", "8", ".10", "s", "0>5", "10.3s"))],
)  # fmt: skip
@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_formats_of_numbers_and_dates_on_text(spec, text, expected, kind):
    """A text that is a number or a date is written in a format as these are, and any other makes no text."""
    assert rendered("{x:" + spec + "}", x=pa.array([text], kind)) == [expected]


@pytest.mark.parametrize("name", ["a.b", "a[0]", "first name", "0", "naïve", "a-b", "class", " padded "])
def test_names_are_taken_literally(name):
    """A field is the whole name of a column: there is no way to reach into a value."""
    assert rendered("<{" + name + "}>", **{name: ["x"]}) == ["<x>"]


@pytest.mark.parametrize(
    ("message", "value", "expected"),
    [
        ("{a}\u200c\u0647\u0627", "\u06a9\u062a", "\u06a9\u062a\u200c\u0647\u0627"),
        ("\u0645\u06cc\u200c{a}", "\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("\U0001f469\u200d{a}", "\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("{a}\ufe0f", "\u2764", "\u2764\ufe0f"),
        ("{a}\u0301", "e", "\xe9"),
        ("{a}\u200c!", "Ann", "Ann!"),  # joins nothing
        ("  {a}\u200b  ", "Ann", "Ann"),
    ],
)
def test_a_character_of_the_template_may_belong_to_the_value(message, value, expected):
    """A joiner or an accent beside a field is kept where it changes how the value is seen."""
    assert rendered(message, a=[value, None]) == [expected, None]


WRONG = {
    "has no name": ["Hi {}", "Hi {:>5}"],
    "conversion": ["Hi {name!r}", "Hi {name!s:>5}"],
    "not a template": ["Hi {name", "Hi name}", "Hi {", "Hi {name!}"],
}


@pytest.mark.parametrize(("text", "words"), [(text, words) for words, texts in WRONG.items() for text in texts])
def test_wrong_syntax(text, words):
    """A template that cannot be meant as written is an error before any row is read."""
    with pytest.raises(TemplateError, match=words):
        Template(text)


@pytest.mark.parametrize(
    ("kind", "beyond", "last", "text"),
    [
        (pa.timestamp("s"), 253_402_300_800, 253_402_300_799, "9999-12-31 23:59:59"),
        (pa.timestamp("s"), 2**62, -62_135_596_800, "0001-01-01"),
        (pa.timestamp("ms"), -62_135_596_800_001, -62_135_596_800_000, "0001-01-01"),
        (pa.timestamp("us"), 253_402_300_800_000_000, 253_402_300_799_000_000, "9999-12-31 23:59:59"),
        (pa.timestamp("ms", "Africa/Johannesburg"), 2**62, 0, "1970-01-01 02:00:00+02:00"),
        (pa.date32(), 2_932_897, 2_932_896, "9999-12-31"),
        (pa.date32(), 2**31 - 1, -719_162, "0001-01-01"),
        (pa.date64(), 2**61, 0, "1970-01-01"),
    ],
    ids=str,
)
def test_a_moment_that_no_calendar_has_is_invalid(kind, beyond, last, text):
    """Years before 1 and after 9999 fail their row, and are written as no other moment; nor do they make a key."""
    values = pa.array([beyond, last], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    batch = pa.RecordBatch.from_arrays([pa.array(["27820000001"] * 2), values], ["destination", "x"])
    for message, keys in [("{x}", None), ("Hi", ["x"])]:
        read = composed(Composer(message, None, key_columns=keys), batch)
        assert [(each.row, each.column, each.reason) for each in read.rejected] == [(0, "x", NO_CALENDAR)]
        assert read.contents == [text if keys is None else message]
    # 64 bits of nanoseconds end in 2262.
    assert beyond_calendar(pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("ns"))) is None


DAY, MORNING, NINE = dt.date(2025, 3, 1), at(2025, 3, 1, 9, 30), dt.time(9, 30)
NOTHING = [pa.array([None], kind) for kind in KINDS_OF_NOTHING]
NOTHING += [pa.array([float("nan")]), pa.array([float("nan")], pa.float32())]
NOTHING += [pa.array([None, "x"]).dictionary_encode()[:1]]
NOTHING += [pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "x"]))]
WRITTEN = {
    "5": [pa.array([5]), pa.array([5]).dictionary_encode()],
    f"{2**64 - 1}": [pa.array([2**64 - 1], pa.uint64())],
    "1.5": [pa.array([1.5])],
    "0.0000001": [pa.array([1e-7])],
    "120": [pa.array([120.0])],
    "0": [pa.array([-0.0])],
    f"{2**53 - 1}": [pa.array([float(2**53 - 1)])],
    "0.1": [pa.array([0.1], pa.float32())],
    "150": [pa.array([Decimal(150)], pa.decimal128(3, 0))],
    "True": [pa.array([True])],
    "x": [pa.array(["x"], pa.large_string()), pa.array(["x"]).dictionary_encode()],
    "2025-03-01": [pa.array([DAY]), pa.array([DAY], pa.date64()), pa.array([at(2025, 3, 1)], pa.timestamp("s"))],
    "2025-03-01 09:30:00": [pa.array([MORNING], pa.timestamp("s")), pa.array([MORNING], pa.timestamp("ns"))],
    "2025-03-01 11:30:00+02:00": [pa.array([MORNING], pa.timestamp("us", "+02:00"))],
    "09:30:00": [pa.array([NINE], pa.time64("ns"))],
    None: NOTHING,  # nobody reads "Hi nan" or "Hi None"
}


@pytest.mark.parametrize(
    ("column", "spec", "text"),
    [
        *((column, "", text) for text, columns in WRITTEN.items() for column in columns),
        (pa.array([1234.5]), ".2f", "1234.50"),
        (pa.array([120.0]), ".1f", "120.0"),
        (pa.array([Decimal("1234.5")]), ",.2f", "1,234.50"),
        (pa.array([42]), "05d", "00042"),
        (pa.array([1000000]), ",", "1,000,000"),
        (pa.array(["Annabel"]), ".3", "Ann"),
        (pa.array([DAY]), "%d %B %Y", "01 March 2025"),
        (pa.array([MORNING]), "%H:%M", "09:30"),
        (pa.array([NINE]), "%H:%M", "09:30"),
        (pa.array([True]), "d", "1"),
        (pa.array([None], pa.float64()), ".2f", None),
        *((nothing, ">5", None) for nothing in (pa.array([None], pa.string()), NOTHING[-1], NOTHING[-4])),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_values_read_as_python_writes_them(column, spec, text):
    """In one way, whatever the width and unit that a value is stored in; a format is that of Python."""
    assert rendered("{x:" + spec + "}", x=column.take(pa.array([0, 0]))) == [text, text]


@pytest.mark.parametrize("kind", [*TEXTS, pa.null(), pa.int64(), pa.binary(), pa.list_(pa.string())], ids=str)
def test_a_column_of_texts(kind):
    """Finished texts are taken as they are, braces and all; numbers are rather the wrong column than a text."""
    texts = TextColumn("text")
    assert texts.columns == ("text",)
    assert texts.render(pa.record_batch({"text": ["Hi {name}", None]})).to_pylist() == ["Hi {name}", None]
    with nullcontext() if kind in [*TEXTS, pa.null()] else pytest.raises(ColumnError, match="content_column"):
        texts.check(pa.schema([("text", kind)]))


# Numbers written for a whole column


FORMATS = ["", *(f"{comma}.{decimals}f" for comma in ("", ",") for decimals in range(8)), "+.2f", "05d", ".2%"]

halves = st.builds(lambda whole, power: whole / 2**power, st.integers(-(10**9), 10**9), st.integers(0, 8))
amounts = st.builds(
    lambda cents, more: cents / 100 + more, st.integers(-(10**8), 10**8), st.sampled_from([0, 0.005, 5e-7])
)
floats = st.one_of(
    st.floats(allow_infinity=False, allow_nan=False),
    halves,
    amounts,
    st.integers(-(2**53) + 1, 2**53 - 1).map(float),
    st.sampled_from([-0.0, 1e300, 999.995]),
)
decimals = st.builds(
    lambda whole, scale: Decimal(whole).scaleb(-scale), st.integers(1 - 10**28, 10**28 - 1), st.integers(0, 8)
)
integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 2000)


@given(
    st.sampled_from(FORMATS),
    st.sampled_from([(floats, pa.float64()), (integers, pa.int64()), (decimals, pa.decimal128(38, 8))]).flatmap(
        lambda kind: st.tuples(st.lists(st.none() | kind[0], min_size=1), st.just(kind[1]))
    ),
    st.integers(0, 1),
)
def test_a_number_is_written_as_by_itself_or_not_at_all(spec, column, start):
    """A column of floats, integers or decimals, or a part of one, reads as its numbers do one by one."""
    values, kind = column
    assume(spec or kind != pa.int64())  # such integers are cast to texts
    made = pa.array([*values, 1], kind)[start:]
    written = write_numbers(made, spec)
    written.validate(full=True)
    for value, text in zip(made.to_pylist(), written.to_pylist(), strict=True):
        assert text is None or text == write(value, spec)
