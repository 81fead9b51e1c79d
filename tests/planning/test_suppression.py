from __future__ import annotations

from decimal import Decimal

import phonenumbers
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import ColumnError
from airflow_provider_sms.planning.invalid_rows import MAX_EXAMPLES
from airflow_provider_sms.planning.suppression import read_suppressed
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.reporting.row_report import SCHEMA

NO_CODE = "no country code that makes a possible number: set default_region, or store numbers with their country code"


@pytest.fixture
def read():
    """Read suppressed numbers of any source."""

    def read(source, destination_column="destination", default_region=None):
        return read_suppressed(open_source(source), destination_column, default_region)

    return read


def rows(*numbers):
    return [{"destination": number} for number in numbers]


def masked(found, *destinations):
    return found.mask(pa.array(destinations, pa.string())).tolist()


ARGENTINE = ["541123456789", "5491123456789"]


@pytest.mark.parametrize(
    ("listed", "region", "former", "suppressed", "others"),
    [
        # A country has changed its numbers since somebody opted out: they are not texted under the new one.
        ("97123456", "BJ", 1, ["2290197123456"], ["2290197123457"]),  # Benin put 01 before all numbers in 2024
        # Mexico dropped the 1 of mobiles, and what was dialled before.
        ("044 55 1234 5678", "MX", 1, ["525512345678"], ["525512345679"]),
        ("+52 1 044 55 1234 5678", None, 1, ["525512345678"], ["525512345679"]),
        # An Argentine mobile is one line with and without its 9: both spellings are valid.
        *((f"+{each}", None, 0, ARGENTINE, ["5491123456788"]) for each in ARGENTINE),
        # It may be of a new range: it is as long as mobiles are there, and no library knows it yet.
        ("+27559991234", None, 0, ["27559991234"], ["27829991234"]),
    ],
)
def test_a_number_suppresses_its_line_alone(read, listed, region, former, suppressed, others):
    """Whatever the line was or is called, and nobody else."""
    found = read(rows(listed), default_region=region)
    assert masked(found, *suppressed, *others) == [True] * len(suppressed) + [False] * len(others)
    assert (len(found.former), found.unreadable.total) == (former, 0)


TODAY_AND_FORMER = [
    ("229 01 {0:08}", "229 {0:08}"),  # Benin
    ("52 55 {0:08}", "52 1 55 {0:08}"),  # Mexico
    ("225 07 {0:08}", "225 {0:08}"),  # the Ivory Coast
    ("55 11 9 8{1:07}", "55 11 8{1:07}"),  # Brazil
    ("84 70 {1:07}", "84 120 {1:07}"),  # Vietnam
    ("27 82 {1:07}", "27 082 {1:07}"),  # a trunk prefix, which was never part of the number
]


@settings(max_examples=200)
@given(
    st.sampled_from(TODAY_AND_FORMER),
    st.integers(0, 10**8 - 1),
    st.sampled_from(["+{}", "00{}", "+{}.0", "\u202a+{}\u202c"]),
    st.sampled_from([" ", "", "-"]),
)
def test_nobody_on_the_list_is_texted_in_any_spelling(spellings, digits, notation, sign):
    """Whoever opted out, under the number of today or the former one and however written, is suppressed."""
    written = [each.format(digits, digits % 10**7) for each in spellings]
    today = written[0].replace(" ", "")
    assume(phonenumbers.is_valid_number(phonenumbers.parse(f"+{today}", None)))
    for each in written:
        cell = notation.format(each.replace(" ", sign if ".0" not in notation else ""))
        found = read_suppressed(open_source(rows(cell)), "destination", None)
        assert (masked(found, today), found.unreadable.total) == ([True], 0)


@pytest.mark.parametrize(("status", "lost"), [("invalid", 0), ("not_sent", 1), (None, 1)])
def test_an_unreadable_number_of_an_invalid_row_of_a_report_is_passed_over(read, status, lost):
    """It was refused in the report's own table; any other row was added by hand, and its person may be texted."""
    numbers = {"082 x": status, "27820000001": "invalid"}
    found = read([dict.fromkeys(SCHEMA.names) | {"destination": to, "status": each} for to, each in numbers.items()])
    assert (found.digits.tolist(), found.unreadable.total) == ([27_820_000_001], lost)


@pytest.mark.parametrize("form", [lambda report: report, lambda report: report.to_pylist()], ids=["table", "rows"])
def test_no_number_of_a_report_is_read_as_another_persons(read, form):
    """Its numbers have a country code and no plus: in Germany, whose numbers differ in length, they could lack one."""
    numbers = ["27821234567", "447911123456", "0171 7654321", None]
    statuses = ["accepted", "suppressed", "invalid", "invalid"]
    rows = [{"row": n, "destination": each, "status": statuses[n]} for n, each in enumerate(numbers)]
    found = read(form(pa.Table.from_pylist(rows, SCHEMA)), default_region="DE")
    assert masked(found, "27821234567", "447911123456", "491717654321", "4927821234567") == [True, True, False, False]
    assert (len(found.digits), found.unreadable.total) == (2, 0)


def test_unreadable_numbers_are_counted(read):
    """A number that cannot be read is counted with its reason, and its row is shown masked, among the first."""
    found = read(rows("27821234567", None, "0821234567", "call me"))
    characters = "holds letters or signs that do not belong to a phone number"
    assert {NO_CODE: 1, characters: 1} == found.unreadable.reasons
    assert found.unreadable.in_words("Nothing was sent") == (
        f"2 of 4 rows of suppress cannot be read: 1 time {NO_CODE}; 1 time {characters}. "
        f"Nothing was sent. Rows count from 0:\n  row 2, column destination: {NO_CODE} (0821*****67)\n"
        f"  row 3, column destination: {characters} (*****)"
    )
    assert "821234567" not in repr(found)
    # A column was too narrow for a number, a formula failed, and +262 was dialled in France: somebody has opted out.
    assert read(rows("########", "Err:502", "+33 692 12 34 56", "NULL")).unreadable.total == 3


def test_rows_count_through_all_batches(read):
    """Rows, counts and examples go on from batch to batch, and examples end at a bound."""
    numbers = [f"27820{number:06}" for number in range(25_000)]
    numbers[12_345] = "0821234567"
    numbers[20_000:20_020] = ["821"] * 20
    found = read(pa.table({"destination": numbers}))
    assert (found.unreadable.rows, len(found.digits), found.unreadable.total) == (25_000, 25_000 - 21, 21)
    expected = [12_345, *range(20_000, 20_000 + MAX_EXAMPLES - 1)]
    assert [int(example.split()[1].strip(",")) for example in found.unreadable.examples] == expected
    assert masked(found, numbers[0], "27820012345", numbers[24_999]) == [True, False, True]


def test_no_rows_suppress_nobody(read):
    """A source of no rows has no columns to lack, and holds nobody back."""
    found = read([])
    assert (found.unreadable.rows, len(found.digits), masked(found, "27821234567")) == (0, 0, [False])
    assert masked(found) == []


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"mobile": ["27821234567"], "since": ["2026-03-01"]},
            "^suppress: the list has no column 'destination'; it has 'mobile', 'since'. Name the column .* alone$",
        ),
        ({"Destination": ["27821234567"], "DESTINATION": ["27821234567"]}, "^suppress: the list has several columns "),
        ({"destination": [True]}, "^suppress: column 'destination' is of type bool"),
    ],
)
def test_the_column_must_be_there(read, table, words):
    """A list without a column that is surely that of the numbers is an error that names its columns."""
    with pytest.raises(ColumnError, match=words):
        read(pa.table(table))


@pytest.mark.parametrize(
    "table",
    [
        {"mobile": ["27821234567"]},
        {"Destination ": ["27821234567"], "mobile": ["27829999999"]},
        {"mobile": [Decimal("27821234567.00"), None]},
        {"destination": ["27821234567"], "row": [1]},
    ],
)
def test_a_list_may_name_its_numbers_otherwise(read, table):
    """Numbers are in the column of the recipients' name, however it is written, in a report's, or in the only one."""
    wanted = "cell" if "row" in table else "destination"
    assert masked(read(pa.table(table), wanted), "27821234567", "27829999999") == [True, False]
