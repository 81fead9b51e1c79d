from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.numbers import (
    AMBIGUOUS,
    CHARACTERS,
    DECIMALS,
    EXPONENT,
    IMPOSSIBLE,
    LENGTH,
    NEGATIVE,
    NO_CODE,
    NO_NUMBER,
    NUMBER,
    TRUNK_ZERO,
    ZERO_CODE,
    cleaned,
)

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.columns import utf8
from airflow_provider_sms.recipients.numbers.normalize import clean_destinations
from airflow_provider_sms.recipients.numbers.trunk_prefix import find_trunk_prefixes

INTERNATIONAL = [
    "27821234567",
    "+27821234567",
    "0027821234567",
    "+27 82 123 4567",
    "+27-82-123-4567",
    "+27.82.123.4567",
    "+27 (82) 123/4567",
    "(+27) 82 123 4567",
    "(0027) 82 123 4567",
    "00 27 82 123 4567",
    "+ 27 82 1234567",
    "27\t82\t1234567",
    "27\u00a082\u00a01234567",
    "27\u202f82\u20091234567",
    "  27821234567 \r\n",
    "27821234567.0",
    "27821234567.00",
    "+27821234567.0",
    "\u202a+27 82 123 4567\u202c",
    "\ufeff27821234567",
    "27\u201182\u20131234567",
    "٢٧٨٢١٢٣٤٥٦٧",
    "\uff0b\uff12\uff17\uff18\uff12\uff11\uff12\uff13\uff14\uff15\uff16\uff17",
    "+27 (0)82 123 4567",
    "+27 (0) 82 123 4567",
    "+27( 0 )82 123 4567",
    "0027 (0)82 123 4567",
    "27 (0)82 123 4567",
]


@pytest.mark.parametrize("region", [None, "ZA", "US", "DE"])
@pytest.mark.parametrize("text", [text for text in INTERNATIONAL if "+" in text or text.startswith(("00", "(00"))])
def test_plus_and_00_are_international_in_every_region(text, region):
    """A number with + or 00 carries its country code, whatever the region and whatever separates its digits."""
    assert cleaned([text], region) == [(NUMBER, None)]


@pytest.mark.parametrize("region", [None, "ZA"])
@pytest.mark.parametrize("text", INTERNATIONAL)
def test_country_code_without_plus(text, region):
    """Without plus, digits with the country code are read as such, also in the region that they belong to."""
    assert cleaned([text], region) == [(NUMBER, None)]


@pytest.mark.parametrize(
    "text",
    ["0821234567", "082 123 4567", "082-123-4567", "(082) 123 4567", "(0)82 123 4567", "082.123.4567", "082/1234567",
     "821234567", "821234567.0", "0821234567.0", "٠٨٢١٢٣٤٥٦٧"],
)  # fmt: skip
def test_national_numbers_are_completed(text):
    """With a region, a national number gets its country code, also where a spreadsheet lost its leading zero."""
    assert cleaned([text], "ZA") == [(NUMBER, None)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, NO_NUMBER),
        ("", NO_NUMBER),
        (" \t", NO_NUMBER),
        ("\u00a0", NO_NUMBER),
        ("-", NO_NUMBER),
        ("+", NO_NUMBER),
        ("2.78E+10", EXPONENT),
        ("2.7821234567E+10", EXPONENT),
        ("2.7821234567e10", EXPONENT),
        ("2,78E+10", EXPONENT),
        ("278E8", EXPONENT),
        ("27821234567.5", DECIMALS),
        ("0821234.567", DECIMALS),
        ("27 82 123 4567.0", DECIMALS),
        ("-27821234567", NEGATIVE),
        ("-27821234567.0", NEGATIVE),
        ("27821234567,0", CHARACTERS),
        ("0821234567 x12", CHARACTERS),
        ("0821234567 ext. 12", CHARACTERS),
        ("082FLOWERS", CHARACTERS),
        ("++27821234567", CHARACTERS),
        ("27+821234567", CHARACTERS),
        ("27821234567;27821234568", CHARACTERS),
        ("27_821234567", CHARACTERS),
        ("n/a", CHARACTERS),
        ("nan", CHARACTERS),
        ("2782123456\u00b9", CHARACTERS),
        ("27\n821234567", CHARACTERS),
        ("+123456", LENGTH),
        ("+1234567890123456", LENGTH),
        ("27821234567 / 27821234568", LENGTH),
        ("00", LENGTH),
        ("+27 (0)1", TRUNK_ZERO),
        ("+999 (0)82 123 4567", TRUNK_ZERO),
    ],
)
def test_what_is_no_number_is_refused_without_a_region(text, reason):
    """What cannot be a number, or has lost digits, is invalid and says why, without the number."""
    assert [(None, reason)] == cleaned([text])


@pytest.mark.parametrize("text", [None, "", "-", "2.78E+10", "27821234567.5", "-27821234567", "082FLOWERS", "+123456"])
def test_a_region_excuses_nothing(text):
    """With a region, the same is invalid for the same reason."""
    assert cleaned([text]) == cleaned([text], "ZA")


@pytest.mark.parametrize("text", ["0821234567", "082 123 4567", "+0821234567", "+0027821234567", "000821234567"])
def test_a_leading_zero_is_no_country_code(text):
    """Without a region, a number that begins with a zero says what to do about it."""
    assert cleaned([text]) == [(None, NO_CODE)]


@pytest.mark.parametrize("text", ["+0821234567", "00 082 123 4567"])
def test_a_leading_zero_after_plus_is_never_completed(text):
    """With a region, a plus still says that a country code follows."""
    assert cleaned([text], "ZA") == [(None, ZERO_CODE)]


@pytest.mark.parametrize("text", ["447911123456", "4915112345678", "12", "0", "08212345678901", "999999999999999999"])
def test_impossible_numbers(text):
    """A number that the region's numbering plan has no place for is invalid, also one of another country."""
    assert cleaned([text], "ZA") == [(None, IMPOSSIBLE)]


@pytest.mark.parametrize(
    ("text", "region", "digits"),
    [
        ("0612345678", "IT", "390612345678"),  # Italy keeps the zero
        ("+39 (0)6 12345678", "IT", "390612345678"),
        ("3931234567890", "IT", "3931234567890"),
        ("2125551234", "US", "12125551234"),
        ("12125551234", "US", "12125551234"),
        ("011442079460958", "US", "442079460958"),
        ("0044 20 7946 0958", "US", "442079460958"),
        ("07911 123456", "GB", "447911123456"),
        ("+44 (0)7911 123456", None, "447911123456"),
        ("89161234567", "RU", "79161234567"),
        ("79161234567", "RU", "79161234567"),
        ("0011 27 82 123 4567", "AU", "27821234567"),  # 0011 is what is dialled there
        ("0027 82 123 4567", "AU", "27821234567"),
        ("0411 234 567", "AU", "61411234567"),
        ("9198765432", "IN", "919198765432"),  # an Indian mobile that begins as its country code does
        ("919876543210", "IN", "919876543210"),
        ("65123456", "SG", "6565123456"),
        ("271234567", "ZA", "27271234567"),  # area code 027, its zero lost
        ("4915112345678", "DE", "4915112345678"),  # and no fixed line in the town of code 04915
        ("015112345678", "DE", "4915112345678"),
        ("11 15 2345-6789", "AR", "5491123456789"),
        ("+54 11 15 2345-6789", None, "5491123456789"),  # as written within Argentina, after the country code
        ("+54 9 11 2345-6789", "AR", "5491123456789"),
        ("+57 (0)321 123 4502", None, "573211234502"),  # possible with the zero, and valid without it
        ("001 592 625 8591", "GY", "5926258591"),  # 001 is what is dialled there
        ("009 234 802 164 9584", "NG", "2348021649584"),
        ("430666258175", "AT", "43666258175"),  # country code and trunk prefix, and no area 430
        ("383043201271", "XK", "38343201271"),
    ],
)
def test_numbering_plans(text, region, digits):
    """Numbers are completed by the plan of their region, not by one rule for all."""
    assert [(digits, None)] == cleaned([text], region)


@pytest.mark.parametrize("text", ["082123.0000", "2782123.0000", "+2782123.0000", "0821234.00"])
@pytest.mark.parametrize("region", [None, "ZA"])
def test_zeros_after_a_point_are_not_cut_off(text, region):
    """082123.0000 may be the number 082 123 0000: cut at the point, it would be the number of somebody else."""
    assert cleaned([text], region) == [(None, DECIMALS)]


def test_two_readings_are_refused():
    """A number that makes sense with and without a country code, as this one of Stockholm, is not guessed at."""
    assert cleaned(["468123456"], "SE") == [(None, AMBIGUOUS)]


def test_rows_stay_in_place():
    """Each row's result stands at its place, whichever way it was read."""
    texts = ["0821234567", None, "+447911123456", "x", "27 (0)83 123 4567", "٠٨٤١٢٣٤٥٦٧", "0821234567", "271234567"]
    digits = ["27821234567", None, "447911123456", None, "27831234567", "27841234567", "27821234567", "27271234567"]
    assert digits == [row[0] for row in cleaned(texts, "ZA")]


def test_a_region_may_be_written_in_small_letters():
    """It is the same region."""
    assert clean_destinations(pa.array(["0821234567"]), "za").digits.to_pylist() == ["27821234567"]


@pytest.mark.parametrize("region", ["XX", "ZAF", "", "South Africa", 27])
def test_unknown_regions(region):
    """A region that is no country of ISO 3166 is an error that names the argument."""
    with pytest.raises(InputError, match="default_region"):
        clean_destinations(pa.array(["0821234567"]), region)


@pytest.mark.parametrize(
    "column", [pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.array([], pa.int64())]
)
@pytest.mark.parametrize("region", [None, "ZA"])
def test_empty_columns(column, region):
    """A column without rows gives no rows."""
    assert cleaned(column, region) == []


def test_a_chunked_column_is_one_column():
    """The rows of all chunks come back, in order."""
    column = pa.chunked_array([["+27821234567"], ["x", "+27821234568"]])
    assert [row[0] for row in cleaned(column)] == [NUMBER, None, "27821234568"]


def test_reprs_show_no_numbers():
    """The result of cleaning may be logged by mistake: it shows nothing of what it holds."""
    assert NUMBER not in repr(clean_destinations(pa.array([NUMBER]), None))


@pytest.mark.slow
@given(st.lists(st.one_of(st.text(), st.from_regex(r"\+?[0-9][0-9 ./()-]{5,18}(\.0)?", fullmatch=True))))
@pytest.mark.parametrize("region", [None, "ZA", "BR"])
def test_any_text_is_judged(region, texts):
    """Whatever the text, each row is either 7 to 15 digits without a leading zero, or has a reason, never both."""
    for digits, reason in cleaned(texts, region):
        assert (digits is None) != (reason is None)
        assert digits is None or (digits.isascii() and digits.isdecimal() and 7 <= len(digits) <= 15)
        assert digits is None or not digits.startswith("0")


@given(st.from_regex(r"[1-9][0-9]{6,14}", fullmatch=True), st.integers(min_value=1, max_value=5))
def test_all_forms_of_a_number_are_one_number(number, position):
    """However a number is stored, its digits come out the same, so nobody gets a text for each form."""
    forms = [number, f"+{number}", f"00{number}", f"{number}.0", f"+{number[:position]} {number[position:]}"]
    expected = cleaned([number]) * len(forms)
    assert expected[0] == (number, None) or find_trunk_prefixes(*utf8(pa.array([number]))).any()
    assert expected == cleaned(forms)
    assert expected[:2] == cleaned(pa.array([int(number)] * 2)) == cleaned(pa.array([float(number)] * 2))
