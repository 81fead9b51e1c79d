from __future__ import annotations

import datetime as dt
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, localcontext

import pyarrow as pa
import pytest
from support.composed import composed

from airflow_provider_sms.exceptions import ColumnError, TemplateError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.messages.template import NO_CALENDAR, Template, TextColumn
from airflow_provider_sms.recipients.columns import beyond_calendar


def at(*parts):
    """Make a time without a zone, as tables hold them."""
    return dt.datetime(*parts)  # noqa: DTZ001 - without a zone is what is meant


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def rendered(text, **columns):
    return Template(text).render(batch(**columns)).to_pylist()


def test_fields_are_columns():
    """Each row's text has that row's values in the places of their columns."""
    expected = ["Hi Ann, you have 3 points.", "Hi Bob, you have 0 points."]
    assert expected == rendered("Hi {name}, you have {points} points.", name=["Ann", "Bob"], points=[3, 0])


@pytest.mark.parametrize(
    ("message", "value", "expected"),
    [
        (
            "{a}\u200c\u0647\u0627",
            "\u06a9\u062a\u0627\u0628",
            "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
        ),
        ("\u0645\u06cc\u200c{a}", "\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
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


@pytest.mark.parametrize("others", [Context(rounding=ROUND_HALF_UP), Context(prec=2, traps=[Inexact])], ids=repr)
def test_no_text_depends_on_decimals_of_other_code(others):
    """A DAG's file may round its own decimals in another way: a value reads as it does in the thread that sends."""
    columns = {"a": [2.665, 1234.5], "b": [Decimal("2.665"), Decimal("1234.5")], "c": ["2.665", "1234.5"]}
    text = "{a:.2f} {b:.2f} {c:.2f}"
    with localcontext(others):
        assert rendered(text, **columns) == ["2.66 2.66 2.66", "1234.50 1234.50 1234.50"]


TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("spec", ["q", ".2q", "x:>", ",_", ".2d"])
@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_formats_of_nothing_on_text(spec, kind):
    """A format that nothing has is refused on a column of text before any row is read, with what to write."""
    template = Template("You owe {amount:" + spec + "}")
    with pytest.raises(TemplateError, match=r"does not fit column 'amount'.*Write \{amount\}"):
        template.check(pa.schema([("amount", kind)]))


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [(".2f", "12.5", "12.50"), (",.2f", "1250", "1,250.00"), (".2f", "2.675", "2.68"), (".1%", "0.5", "50.0%"),
     ("05", "42", "00042"), ("+", "5", "+5"), ("d", "120.0", "120"), (",", "1234.50", "1,234.5"),
     (".2f", "1e-05", "0.00"),
     ("=5", "-1", "-   1"), (".2f", "007", "7.00"), (".2f", " 12.5 ", "12.50"),
     ("%d %B", "2026-03-01", "01 March"), ("%H:%M", "2026-03-01 09:30:00", "09:30"),
     ("%d", "2026-03-01T09:30:00Z", "01"),
     (".2f", "1,250.5", None), (".2f", "2.78E10", None), (".2f", "soon", None), (".2f", "nan", None), (".2f", "", None),
     ("%d %B", "1 March", None), ("%d %B", "2026-02-30", None)],
)  # fmt: skip
@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_formats_of_numbers_and_dates_on_text(spec, text, expected, kind):
    """A text that is a number or a date is written in a format as these are, and any other makes no text."""
    template = Template("{x:" + spec + "}")
    template.check(pa.schema([("x", kind)]))
    column = pa.array([text], kind)
    assert template.render(pa.RecordBatch.from_arrays([column], ["x"])).to_pylist() == [expected]


@pytest.mark.parametrize("spec", ["", ">8", "<8", "^8", "8", ".10", "s", "0>5", "10.3s"])
def test_formats_of_text(spec):
    """A format that text has may stand on a column of text."""
    Template("Hi {name:" + spec + "}").check(pa.schema([("name", pa.string())]))


def test_columns_are_listed_once_in_order():
    """The columns of a template are known before any row is, each once."""
    assert Template("{b} {a} {b:>5} {{c}}").columns == ("b", "a")


@pytest.mark.parametrize("name", ["a.b", "a[0]", "first name", "0", "naïve", "a-b", "class", " padded "])
def test_names_are_taken_literally(name):
    """A field is the whole name of a column: there is no way to reach into a value."""
    template = Template("<{" + name + "}>")
    assert template.columns == (name,)
    assert template.render(pa.RecordBatch.from_pydict({name: ["x"]})).to_pylist() == ["<x>"]


def test_doubled_braces_are_braces():
    """Doubled braces are braces of the text."""
    assert rendered("{{{name}}}", name=["Ann"]) == ["{Ann}"]


def test_a_constant_text():
    """A template without fields gives every row the same text."""
    assert rendered("The office is closed {{today}}.", name=["Ann", None]) == ["The office is closed {today}."] * 2


def test_text_around_and_between_fields():
    """Fields may stand at the start, at the end and side by side."""
    assert rendered("{a}{b} and {a}", a=["x"], b=["y"]) == ["xy and x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hi {}", "has no name"),
        ("Hi {:>5}", "has no name"),
        ("Hi {name!r}", "conversion"),
        ("Hi {name!s:>5}", "conversion"),
        ("Hi {name:{width}}", "only a fixed one"),
        ("Hi {name", "not a template"),
        ("Hi name}", "not a template"),
        ("Hi {", "not a template"),
        ("Hi {name!}", "not a template"),
        ("Hi {name:>99999}", r"the format of \{name\} has a number above 9999"),
        ("Hi {amount:.10000f}", r"the format of \{amount\} has a number above 9999"),
        (None, "message must be a text, not NoneType"),
        (5, "message must be a text, not int"),
    ],
)
def test_wrong_syntax(text, words):
    """A template that cannot be meant as written is an error before any row is read."""
    with pytest.raises(TemplateError, match=words):
        Template(text)


@pytest.mark.parametrize(
    ("spec", "values", "text"),
    [
        (":.2f", [1234.5], "1234.50"),
        (":,.2f", [Decimal("1234.5")], "1,234.50"),
        (":05d", [42], "00042"),
        (":,", [1000000], "1,000,000"),
        (":>6", ["Ann"], "   Ann"),
        (":.3", ["Annabel"], "Ann"),
        (":%d %B %Y", [dt.date(2025, 3, 1)], "01 March 2025"),
        (":%H:%M", [at(2025, 3, 1, 9, 30)], "09:30"),
        (":%H:%M", [dt.time(9, 30)], "09:30"),
        (":d", [True], "1"),
    ],
)
def test_formats(spec, values, text):
    """A format is that of Python, for every type that has one."""
    assert [text] == rendered("{x" + spec + "}", x=values)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([5]), "5"),
        (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
        (pa.array([1.5]), "1.5"),
        (pa.array([1e-7]), "0.0000001"),
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([Decimal(150)], pa.decimal128(3, 0)), "150"),
        (pa.array([True]), "True"),
        (pa.array(["x"], pa.large_string()), "x"),
        (pa.array(["x"]).dictionary_encode(), "x"),
        (pa.array([5]).dictionary_encode(), "5"),
        (pa.array([dt.date(2025, 3, 1)]), "2025-03-01"),
        (pa.array([dt.date(2025, 3, 1)], pa.date64()), "2025-03-01"),
        (pa.array([at(2025, 3, 1)], pa.timestamp("s")), "2025-03-01"),
        (pa.array([at(2025, 3, 1, 9, 30)], pa.timestamp("s")), "2025-03-01 09:30:00"),
        (pa.array([at(2025, 3, 1, 9, 30)], pa.timestamp("ns")), "2025-03-01 09:30:00"),
        (pa.array([at(2025, 3, 1, 9, 30)], pa.timestamp("us", "+02:00")), "2025-03-01 11:30:00+02:00"),
        (pa.array([dt.time(9, 30)], pa.time64("ns")), "09:30:00"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_values_read_as_python_writes_them(column, text):
    """Without a format, a value reads in one way, whatever the width and unit that it is stored in."""
    template = Template("{x}")
    template.check(pa.schema([("x", column.type)]))
    assert [text, text] == template.render(
        pa.RecordBatch.from_arrays([column.take(pa.array([0, 0]))], ["x"])
    ).to_pylist()


def test_an_integer_column_that_became_float():
    """A null that appears in an integer column makes it float; the texts, and with them the keys, stay."""
    points = [120, None, 0, -5, 2**53 - 1]
    expected = ["120 points", None, "0 points", "-5 points", f"{2**53 - 1} points"]
    assert expected == rendered("{x} points", x=pa.array(points))
    assert expected == rendered("{x} points", x=pa.array(points, pa.float64()))
    assert rendered("{x} points", x=[-0.0, 0.5]) == ["0 points", "0.5 points"]
    assert rendered("{x:.1f} points", x=[120.0]) == ["120.0 points"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None], pa.string()),
        pa.array([None], pa.int64()),
        pa.array([None], pa.float64()),
        pa.array([float("nan")]),
        pa.array([float("nan")], pa.float32()),
        pa.array([None], pa.timestamp("ns")),
        pa.array([None], pa.bool_()),
        pa.array([None, "x"]).dictionary_encode()[:1],
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "x"])),
        pa.nulls(1),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("text", ["Hi {x}", "Hi {x:>5}"])
def test_nothing_is_never_written(column, text):
    """A row without a value has no text: nobody reads "Hi nan" or "Hi None"."""
    assert Template(text).render(pa.RecordBatch.from_arrays([column], ["x"])).to_pylist() == [None]


@pytest.mark.parametrize(
    ("spec", "values"), [("d", [12.0, 12.5, True]), ("x", [-0.5]), ("c", [2**40]), (".2d", [])], ids=str
)
def test_a_value_that_a_format_cannot_write(spec, values):
    """A value that does not fit the format of its column makes no text, and the others of the column do."""
    values = [float(value) for value in values]
    expected = [format(int(value), spec) if value.is_integer() and value < 100 else None for value in values]
    assert rendered("{x:" + spec + "}", x=pa.array(values, pa.float64())) == expected


@pytest.mark.parametrize("spec", [".2f", "8", ">10", ",", "d", "%"])
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("s"), pa.time32("s")], ids=str)
def test_a_format_of_numbers_does_not_fit_dates(spec, kind):
    """Python would write the format itself in place of the date, and everybody would read it."""
    with pytest.raises(TemplateError, match=r"does not fit column 'due' of type .*Write \{due\}"):
        Template("You owe {due:" + spec + "}").check(pa.schema([("due", kind)]))


@pytest.mark.parametrize("spec", ["%d %B", "q", "s", ",_"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.decimal128(9, 2), pa.bool_()], ids=str)
def test_a_format_of_dates_or_text_does_not_fit_numbers(spec, kind):
    """It is refused before any row is read."""
    with pytest.raises(TemplateError, match="does not fit column 'x' of type"):
        Template("{x:" + spec + "}").check(pa.schema([("x", kind)]))


def test_a_format_is_tried_only_on_values():
    """Where a column has no values, no format can fail to fit."""
    assert rendered("{x:.2f}", x=[None, None]) == [None, None]


def test_a_missing_column():
    """A column that is not there is an error that lists those that are."""
    with pytest.raises(ColumnError, match=r"message: the source has no column 'nam'; it has 'name', 'age'"):
        Template("{nam}").render(batch(name=["Ann"], age=[5]))


def test_a_misspelt_column_is_no_attribute():
    """A name that is nearly that of a column asks for it, and one that two columns have is not guessed."""
    with pytest.raises(ColumnError, match=r"it has 'name'\. Did you mean 'name'\?$"):
        Template("{nam}").check(pa.schema([("name", pa.string())]))
    with pytest.raises(ColumnError, match=r"2 columns of the source could be 'a\.b': 'a\.b', 'a\.b'"):
        Template("{a.b}").check(pa.schema([("a.b", pa.string()), ("a.b", pa.string())]))


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.string()), pa.struct([("a", pa.int8())]), pa.binary(), pa.float16(), pa.duration("s")],
    ids=str,
)
def test_values_without_a_text(kind):
    """Lists, structs, bytes and durations have no form that a person would want to read."""
    with pytest.raises(ColumnError, match="'x' is of type"):
        Template("{x}").check(pa.schema([("x", kind)]))


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


def test_nanoseconds_end_within_the_calendar():
    """64 bits of them end in 2262."""
    assert beyond_calendar(pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("ns"))) is None


def test_an_empty_batch():
    """No rows give no texts."""
    assert rendered("Hi {x} {x:>3}", x=pa.array([], pa.string())) == []
    assert rendered("Hi", x=pa.array([], pa.string())) == []


def test_the_repr_hides_the_text():
    """The text of a template is as private as that of a message."""
    assert "secret" not in repr(Template("secret {name}"))


def test_a_column_of_texts():
    """A column of finished texts is taken as it is, braces and all."""
    texts = TextColumn("text")
    assert texts.columns == ("text",)
    assert texts.render(batch(text=["Hi {name}", None])).to_pylist() == ["Hi {name}", None]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.null()], ids=str
)
def test_columns_that_hold_texts(kind):
    """Text of any width is text, and so is a column that has none yet."""
    TextColumn("text").check(pa.schema([("text", kind)]))


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary(), pa.list_(pa.string())], ids=str)
def test_columns_that_hold_no_texts(kind):
    """Numbers in the column of texts are rather the wrong column than a text."""
    with pytest.raises(ColumnError, match="content_column"):
        TextColumn("text").check(pa.schema([("text", kind)]))


def test_doubtful_numbers_stand_in_their_rows():
    """Numbers that are written one by one stand in their rows, between those that are written together."""
    amounts = [0.125, 1.5, None, -1.5, float("nan"), 2.675, 1e300]
    expected = ["0.12", "1.50", None, "-1.50", None, "2.68", None]
    assert expected == rendered("{x:.2f}", x=pa.array(amounts))
    assert expected[1:4] == Template("{x:.2f}").render(batch(x=pa.array(amounts)).slice(1, 3)).to_pylist()
