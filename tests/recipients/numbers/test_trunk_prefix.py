from __future__ import annotations

import phonenumbers
import pyarrow as pa
import pytest
from support.numbers import AMBIGUOUS, LENGTH, TRUNK_PREFIX, cleaned

from airflow_provider_sms.recipients.columns import utf8
from airflow_provider_sms.recipients.numbers.trunk_prefix import find_trunk_prefixes

MAIN_REGIONS = {code: regions[0] for code, regions in sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items())}


def found(*numbers):
    return find_trunk_prefixes(*utf8(pa.array(numbers, pa.string()))).tolist()


@pytest.mark.parametrize("code", MAIN_REGIONS)
def test_the_trunk_prefix_of_every_country_is_found(code):
    """After each country code its own trunk prefix is found, and in a country without one, no digit is."""
    main = phonenumbers.PhoneMetadata.metadata_for_region(MAIN_REGIONS[code])
    trunk = main.national_prefix if main else None
    numbers = [f"{code}{digit}12345678"[:15] for digit in range(10)]
    wanted = [bool(trunk) and f"{digit}12345678".startswith(trunk) for digit in range(10)]
    if trunk is not None and len(trunk) > 1:
        assert found(f"{code}{trunk}12345678") == [True]
    others = {241: [0], 370: [0, 8], 375: [0]}.get(code, [])  # which people write as well, or used to
    assert found(*numbers) == [is_wanted or digit in others for digit, is_wanted in enumerate(wanted)]


def test_numbers_of_any_length_stand_beside_each_other():
    """A number too short to have one, or an empty text, hides none."""
    assert found("", "27", "2708", "27082", "270820000001", "", "27820000001") == [False] * 3 + [True] * 2 + [False] * 2
    assert found() == []
    assert found("", "") == [False, False]


@pytest.mark.parametrize("region", [None, "ZA", "GB"])
@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("+27 082 123 4567", "27821234567"),
        ("+270821234567", "27821234567"),
        ("0027 082 123 4567", "27821234567"),
        ("+27 00 82 123 4567", "27821234567"),
        ("+44 07911 123456", "447911123456"),
        ("+49 0151 12345678", "4915112345678"),
        ("+7 8 912 345 67 89", "79123456789"),
        ("+1 1 212 555 0123", "12125550123"),
        ("+57 0 321 123 4567", "573211234567"),  # with the zero as long as some numbers of Colombia
        ("+57 (0)321 123 4567", "573211234567"),
        ("+375 (029) 491-19-11", "375294911911"),  # dialled with 8, and written with 0
        ("+375 8 029 491 19 11", "375294911911"),
        ("+370 8 612 34567", "37061234567"),  # the prefix until 2025
        ("+241 066 28 72 15", "24166287215"),  # Gabon
        ("+241 06 03 12 34", "24106031234"),  # its numbers until 2019
        ("+39 06 1234 5678", "390612345678"),  # Italy keeps the zero
        ("+225 01 01 23 45 67", "2250101234567"),  # so does the Ivory Coast
        ("+7 800 123 45 67", "78001234567"),  # an area code that begins as the trunk prefix does
        ("+999 082 123 4567", "9990821234567"),  # no country has this code
        ("+27 0821", "270821"),  # possible in no reading
    ],
)
def test_a_number_with_its_trunk_prefix_is_the_number_without(text, digits, region):
    """The prefix is dropped where the number is possible without it, so that nobody has two numbers."""
    expected = (digits, None) if len(digits) > 6 else (None, "not 7 to 15 digits")
    assert cleaned([text], region) == [expected]
    assert cleaned([text, "+27821234567"], region)[0] == expected


@pytest.mark.parametrize(
    ("text", "region", "digits"),
    [
        ("0066 081 234 5678", "TH", "66812345678"),  # 006 is dialled, too, but 60 812345678 is a number in Malaysia
        ("0082 010 2000 0000", "KR", None),  # after 008, it is a number in Egypt
        ("00254 0712 123456", "BR", None),  # and after 0025, one in Romania
        ("0044 07911 123456", "AU", "447911123456"),
    ],
)
def test_a_trunk_prefix_after_00_makes_no_other_persons_number(text, region, digits):
    """00 means a plus where other digits are dialled as well, and what may be another person's number is refused."""
    assert cleaned([text], region) == [(digits, None if digits else AMBIGUOUS)]


def test_a_code_and_a_trunk_prefix_need_no_plus_without_a_region():
    """Without a region every number carries its country code, with or without a plus."""
    assert cleaned(["270821234567", "270821234568.0"]) == [
        ("27821234567", None),
        ("27821234568", None),
    ]
    assert cleaned(["270821234567"], "ZA") == [("27821234567", None)]


@pytest.mark.parametrize("region", [None, "ZA", "AU"])
@pytest.mark.parametrize(
    "text", ["+27 08212", "0027 08212", "+27 (0)8212", "+27 008212", "+44 020 7946 09", "+1 1202555012"]
)
def test_no_number_is_too_short_without_its_trunk_prefix(text, region):
    """The prefix is no part of a number, so it does not make one that is too short long enough."""
    assert cleaned([text], region) == [(None, TRUNK_PREFIX)]
    assert cleaned([text, "+27821234567"], region)[0] == (None, TRUNK_PREFIX)


@pytest.mark.parametrize(
    ("text", "region"), [("08212", "ZA"), ("(0) 8212", "ZA"), ("020794609", "GB"), ("1202555012", "US")]
)
def test_a_national_number_is_too_short_without_its_trunk_prefix(text, region):
    """The same holds of a number as it is written within its country."""
    assert cleaned([text], region) == [(None, TRUNK_PREFIX)]


@pytest.mark.parametrize(
    ("text", "region", "digits"),
    [
        ("082123", "IT", "39082123"),  # the zero belongs to the number
        ("0821234", "ZA", "27821234"),
        ("0321 123 4567", "CO", "573211234567"),
        ("8001234567", "RU", "78001234567"),  # 800 begins as the trunk prefix does
    ],
)
def test_digits_that_belong_to_a_number_make_it_long_enough(text, region, digits):
    """Where a number itself begins with a zero, or with the digits of the prefix, they count."""
    assert cleaned([text], region) == [(digits, None)]


def test_a_number_of_too_few_digits_has_the_plain_reason():
    """What is too short with its prefix, too, is told so."""
    assert cleaned(["+27 0821"]) == [(None, LENGTH)]
