from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.composed import Invalid, composed
from support.keys import message_keys

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.messages.compose import Composer

NUMBERS = ["+27 82 123 4567", "27821234568"]


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def prepared(rows, first_row=0, **arguments):
    arguments = {"message": "Hi {name}", "content_column": None, **arguments}
    return composed(Composer(**arguments), rows, first_row)


def test_rows_become_messages():
    """Each valid row gives its number, its text, its key and its place in the source."""
    result = prepared(batch(destination=NUMBERS, name=["Thandi", "Sipho"]), first_row=100)
    destinations, contents = ["27821234567", "27821234568"], ["Hi Thandi", "Hi Sipho"]
    assert destinations == result.destinations
    assert contents == result.contents
    assert message_keys(destinations, contents) == result.keys
    assert (result.rows, result.parts) == ([100, 101], [1, 1])
    assert result.rejected == []


def test_invalid_rows_are_told_apart():
    """Each row that cannot be texted has its place, its column, a reason, and its number as far as it has one."""
    rows = batch(
        destination=["27821234567", "0821234567", None, "27821234568", "27821234569", "2.78E+10", "Mary Smith"],
        name=["Thandi", "Sipho", "Ann", None, "Bob", None, "x"],
        age=[1.0, 2.0, 3.0, 4.0, float("nan"), 5.0, 6.0],
    )
    result = prepared(rows, first_row=10, message="Hi {name} {age:.0f}")
    no_code = (
        "no country code that makes a possible number: set default_region, or store numbers with their country code"
    )
    exponent = "written with an exponent, digits were lost: store the column as text"
    letters = "holds letters or signs that do not belong to a phone number"
    expected = [
        Invalid(11, "destination", no_code, "0821234567"),
        Invalid(12, "destination", "no number", None),
        Invalid(13, "name", "no value", "27821234568"),
        Invalid(14, "age", "no value", "27821234569"),
        Invalid(15, "destination", exponent, "2.78E+10"),
        Invalid(16, "destination", letters, "Mary Smith"),
    ]
    assert expected == result.rejected
    assert result.rows == [10]
    assert result.contents == ["Hi Thandi 1"]
    assert len(result.destinations) == len(result.keys) == 1


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0\u2003"])
def test_blank_texts_are_invalid(text):
    """Nobody is charged for, or puzzled by, a text of nothing but spaces."""
    rows = batch(destination=NUMBERS, text=[text, "Hi"])
    result = prepared(rows, message=None, content_column="text")
    assert [Invalid(0, "text", "the text is empty", "27821234567")] == result.rejected
    result = prepared(rows, message=" {text}")
    assert [(row.row, row.column) for row in result.rejected] == [(0, "text")]
    assert result.contents == ["Hi"]


def test_texts_from_a_column():
    """Texts may stand finished in a column; a row without one is invalid."""
    rows = batch(destination=NUMBERS, text=["Hi {name}", None])
    result = prepared(rows, message=None, content_column="text")
    assert result.contents == ["Hi {name}"]
    assert [Invalid(1, "text", "no value", "27821234568")] == result.rejected


def test_the_region_completes_numbers():
    """A default region is that of every number without country code."""
    rows = batch(destination=[821234567, None], name=["Thandi", "x"])
    assert prepared(rows, default_region="ZA").destinations == ["27821234567"]


def test_a_destination_may_be_in_the_text():
    """The text may name the column of the destination as it does any other."""
    assert prepared(batch(destination=[27821234567]), message="{destination}").contents == ["27821234567"]


def test_keys_from_columns():
    """With key columns, their values of the valid rows make the keys, and not those of the others."""
    rows = batch(destination=["x", *NUMBERS], name=["a", "b", "c"], id=[7, 8, None])
    result = prepared(rows, key_columns=["id"])
    assert message_keys(result.destinations, result.contents, [pa.array([8, None])]) == result.keys


def test_no_key_columns():
    """An empty list of key columns lets the destination alone identify a message."""
    first = prepared(batch(destination=NUMBERS, name=["a", "b"]), key_columns=[])
    assert first.keys == prepared(batch(destination=NUMBERS, name=["c", "d"]), key_columns=[]).keys


def test_a_key_that_lost_digits_is_refused():
    """A float key of 2**53 or more stands for several integers: two people could be taken for one."""
    rows = batch(destination=NUMBERS, name=["a", "b"], id=[2.0**53, 2.0**53 - 1])
    result = prepared(rows, key_columns=["id"])
    assert [(row.row, row.column) for row in result.rejected] == [(0, "id")]
    assert result.rows == [1]


def test_an_empty_batch():
    """No rows give nothing, and no error."""
    rows = batch(destination=pa.array([], pa.string()), name=pa.array([], pa.string()), id=pa.array([], pa.float64()))
    result = prepared(rows, default_region="ZA", key_columns=["id"])
    assert [] == result.rows == result.keys == result.contents == result.rejected


def test_needed_columns():
    """Only what is needed is read from the source, and each column once."""
    composer = Composer("Hi {name} {id} {phone}", None, "phone", key_columns=["id", "run"])
    assert composer.columns == ["phone", "name", "id", "run"]
    assert Composer(None, "text").columns == ["destination", "text"]
    assert Composer("Hi", None).columns == ["destination"]


SCHEMA = pa.schema([("destination", pa.string()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
OTHERS = pa.schema([*SCHEMA, ("took", pa.duration("s")), ("half", pa.float16())])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"destination_column": "phone"},
            r"destination_column: .* no column 'phone'; it has 'destination', 'name', 'tags'",
        ),
        ({"message": "Hi {nam}"}, r"message: .* no column 'nam'"),
        ({"message": None, "content_column": "text"}, r"content_column: .* no column 'text'"),
        ({"key_columns": ["id"]}, r"key_columns: .* no column 'id'"),
        ({"destination_column": "tags"}, r"destination_column: 'tags' is of type list"),
        ({"message": "{tags}"}, r"message: column 'tags' is of type list"),
        ({"message": None, "content_column": "tags"}, r"content_column: column 'tags' is of type list"),
        ({"key_columns": ["tags"]}, r"key_columns: 'tags' is of type list"),
        ({"key_columns": ["took"]}, r"key_columns: 'took' is of type duration"),
        ({"key_columns": ["half"]}, r"key_columns: 'half' is of type halffloat"),
    ],
)
def test_columns_are_checked_first(arguments, words):
    """A column that is missing or cannot work is an error that names it and the argument that asked for it."""
    with pytest.raises(ColumnError, match=words):
        Composer(**{"message": "Hi", "content_column": None, **arguments}).check(
            SCHEMA if "no column" in words else OTHERS
        )


@pytest.mark.parametrize("kind", [pa.bool_(), pa.struct([("a", pa.int8())]), pa.timestamp("s"), pa.float16()], ids=str)
def test_types_that_hold_no_numbers(kind):
    """A column of another type than text or numbers cannot be that of the destinations."""
    with pytest.raises(ColumnError, match="destination_column"):
        Composer("Hi", None).check(pa.schema([("destination", kind)]))


def test_a_name_that_two_columns_have():
    """Two columns of one name are not guessed between."""
    with pytest.raises(ColumnError, match="2 columns of the source could be 'name'"):
        Composer("{name}", None).check(pa.schema([*SCHEMA, ("name", pa.int8())]))


def test_a_wide_source_lists_some_columns():
    """The error about a missing column lists at most 20 names."""
    schema = pa.schema([(f"c{index}", pa.string()) for index in range(25)])
    with pytest.raises(ColumnError, match=r"'c0', .*, 'c19' and 5 more$"):
        Composer("Hi", None).check(schema)


def test_a_source_without_rows_lacks_no_columns():
    """An empty list of dicts has no columns, which is no mistake of anyone."""
    Composer("Hi {name}", None).check(pa.schema([]))


def test_a_fitting_schema_passes():
    """Columns of all types that work pass."""
    schema = pa.schema(
        [("destination", pa.dictionary(pa.int8(), pa.string())), ("name", pa.null()), ("id", pa.date32())]
    )
    Composer("Hi {name}", None, key_columns=["id"]).check(schema)


numbers = st.one_of(
    st.none(),
    st.sampled_from(["27821234567", "+27 82 123 4567", "0821234567", "x", "27821234567.0", "+27 (0)82 123 4567"]),
    st.from_regex(r"[+0]?[0-9 ]{6,14}", fullmatch=True),
)
rows_of_people = st.lists(
    st.tuples(
        numbers,
        st.none() | st.text(max_size=3) | st.sampled_from(["Ann", " "]),
        st.none() | st.floats() | st.integers(0, 4000).map(lambda eighths: eighths / 8),
    ),
    max_size=5,
)


@given(
    st.sampled_from(["Hi {name}", "{name}", "R{amount:.2f}", "{amount}", "{name}{amount:>9}", "Hi"]),
    st.sampled_from([None, "ZA"]),
    rows_of_people,
)
def test_a_row_is_judged_by_itself(message, region, rows):
    """A row gives the same message, or the same reason, alone and among others."""
    columns = [[row[index] for row in rows] for index in range(3)]
    people = batch(
        destination=pa.array(columns[0], pa.string()),
        name=pa.array(columns[1], pa.string()),
        amount=pa.array(columns[2], pa.float64()),
    )
    composer = Composer(message, None, default_region=region)
    together = composed(composer, people)
    apart = [composed(composer, people.slice(row, 1), row) for row in range(len(rows))]
    for name in ("rows", "destinations", "contents", "keys", "parts", "rejected"):
        assert getattr(together, name) == [value for one in apart for value in getattr(one, name)]
    assert message_keys(together.destinations, together.contents) == together.keys


def test_rows_without_a_fault_are_not_filtered():
    """Where all rows are good they give what they give beside a bad one."""
    rows = batch(destination=[*NUMBERS, "x"], name=["a", "b", "c"], id=[1, 2, 3])
    for arguments in ({}, {"key_columns": ["id"]}, {"key_columns": []}, {"message": "Hi"}):
        good, with_bad = prepared(rows[:2], 5, **arguments), prepared(rows, 5, **arguments)
        for name in ("rows", "destinations", "contents", "keys"):
            assert getattr(good, name) == getattr(with_bad, name)
        assert good.rejected == []


SPARING = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.sources import open_source

for arguments in ({"message": "Hi {name}, R{amount:.2f} {amount:>9}"}, {"message": "Hi", "key_columns": ["amount"]}):
    composer = Composer(**{"content_column": None, **arguments})
    for batch in open_source(sys.argv[1]).batches(composer.columns, composer.check):
        assert 0 < composer.compose(batch).column("key").null_count < len(batch)
print(*sorted({"pandas"} & {*sys.modules}))
"""


def test_what_is_not_needed_is_not_imported(tmp_path):
    """Rows of Parquet become messages, good and bad, without pandas."""
    import pyarrow.parquet as pq

    people = pa.table({
        "destination": ["27821234567", "+27 82 123 4567", "27.82.123.4568", "٢٧٨٢١٢٣٤٥٦٧", "x", None],
        "name": ["Ann", None, "Bob", "Eve", "", "Dan"],
        "amount": [1.5, 0.125, 3.0, float("nan"), None, 2.0**60],
    })  # fmt: skip
    pq.write_table(people, tmp_path / "people.parquet")
    command = [sys.executable, "-c", SPARING, str(tmp_path / "people.parquet")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == []
