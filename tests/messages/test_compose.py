from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.composed import Composed, Invalid, composed
from support.keys import message_keys

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.recipients.values import value_text

NUMBERS = ["+27 82 123 4567", "27821234568"]


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def prepared(rows, first_row=0, **arguments):
    arguments = {"message": "Hi {name}", "content_column": None, **arguments}
    return composed(Composer(**arguments), rows, first_row)


def test_rows_become_messages_or_are_told_apart():
    """Each row has its text, key and place, or else its column, a reason, and its number as far as it has one."""
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
    assert result == Composed(
        rows=[10],
        destinations=["27821234567"],
        contents=["Hi Thandi 1"],
        keys=message_keys(["27821234567"], ["Hi Thandi 1"]),
        parts=[1],
        rejected=[
            Invalid(11, "destination", no_code, "0821234567"),
            Invalid(12, "destination", "no number", None),
            Invalid(13, "name", "no value", "27821234568"),
            Invalid(14, "age", "no value", "27821234569"),
            Invalid(15, "destination", exponent, "2.78E+10"),
            Invalid(16, "destination", letters, "Mary Smith"),
        ],
    )
    assert prepared(rows, default_region="ZA").destinations[1] == "27821234567"


def test_a_key_that_lost_digits_is_refused():
    """A float key of 2**53 or more stands for several integers: two people could be taken for one."""
    rows = batch(destination=NUMBERS, name=["a", "b"], id=[2.0**53, 2.0**53 - 1])
    for ids in (rows.column("id"), pa.array([value_text(2.0**53), "n/a"])):  # alone, and beside another kind
        result = prepared(rows.set_column(2, "id", ids), key_columns=["id"])
        assert [(row.row, row.column) for row in result.rejected] == [(0, "id")]
        assert result.rows == [1]


def test_needed_columns():
    """Only what is needed is read from the source, and each column once."""
    composer = Composer("Hi {name} {id} {phone}", None, "phone", key_columns=["id", "run"])
    assert composer.columns == ["phone", "name", "id", "run"]
    assert Composer(None, "text").columns == ["destination", "text"]
    assert Composer("Hi", None).columns == ["destination"]


NESTED = {name: pa.list_(pa.string()) for name in ("tags", "27820000001")}
KINDS = {"destination": pa.string(), "took": pa.duration("s"), "half": pa.float16(), "no": pa.bool_(), **NESTED}
KINDS |= {"raw": pa.binary(), "day": pa.timestamp("s"), "nos": pa.dictionary(pa.int8(), pa.bool_())}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"destination_column": "phone"}, "destination_column: the source has no column 'phone'"),
        ({"message": "Hi {nam}"}, "message: the source has no column 'nam'"),
        ({"message": None, "content_column": "text"}, "content_column: the source has no column 'text'"),
        ({"key_columns": ["id"]}, "key_columns: the source has no column 'id'"),
        *(
            ({"message": f"{{{name}}}"}, f"message: column '{name}' is of type ")
            for name in ("tags", "took", "half", "raw")
        ),
        ({"message": "{27820000001}"}, r"message: column '2782\*{5}01' is of type list"),
        ({"message": None, "content_column": "tags"}, "content_column: column 'tags' is of type list"),
        *(({"key_columns": [name]}, f"key_columns: column '{name}' is of type ") for name in ("tags", "took", "half")),
        *(
            ({"destination_column": name}, f"destination_column: column '{name}' is of type ")
            for name in ("tags", "took", "half", "no", "raw", "day", "nos")
        ),
    ],
)
def test_columns_are_checked_first(arguments, words):
    """A column that is missing or cannot work is an error that names it and the argument that asked for it."""
    with pytest.raises(ColumnError, match=f"^{words}"):
        Composer(**{"message": "Hi", "content_column": None, **arguments}).check(pa.schema(KINDS))


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
    st.sampled_from(["Hi {name}", "{name}", "R{amount:.2f}", "{amount}", "{name}{amount:>9}", "Hi", "{destination}"]),
    st.sampled_from([None, "ZA"]),
    st.sampled_from([None, [], ["amount"]]),
    rows_of_people,
)
def test_a_row_is_judged_by_itself(message, region, key_columns, rows):
    """A row gives the same message, or the same reason, alone and among others; no rows give nothing."""
    columns = [[row[index] for row in rows] for index in range(3)]
    people = batch(
        destination=pa.array(columns[0], pa.string()),
        name=pa.array(columns[1], pa.string()),
        amount=pa.array(columns[2], pa.float64()),
    )
    composer = Composer(message, None, default_region=region, key_columns=key_columns)
    together = composed(composer, people)
    apart = [composed(composer, people.slice(row, 1), row) for row in range(len(rows))]
    for name in together._fields:
        assert getattr(together, name) == [value for one in apart for value in getattr(one, name)]
    of_valid = people.take(pa.array(together.rows, pa.int64()))
    key_values = None if key_columns is None else [of_valid[name] for name in key_columns]
    assert message_keys(together.destinations, together.contents, key_values) == together.keys
