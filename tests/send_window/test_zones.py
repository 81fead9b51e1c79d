import random

import phonenumbers
import pytest
from phonenumbers.timezone import time_zones_for_geographical_number, time_zones_for_number

from airflow_provider_sms.send_window.window import find_zone, zones_of


def possible_mobile_numbers(seed=4711):
    """Give numbers of each country that the library takes for valid mobile ones."""
    rng = random.Random(seed)
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        if example is None:
            continue
        digits = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]
        for kept in range(len(str(example.country_code)), len(digits)):
            tried = digits[:kept] + "".join(rng.choices("0123456789", k=len(digits) - kept))
            number = phonenumbers.parse(f"+{tried}")
            if phonenumbers.is_valid_number(number):
                yield tried, number


def test_no_zone_of_a_mobile_number_is_left_out():
    """Outside of North America it has at least the zones that the library gives for it, whose clocks can be read."""
    names, missing = set(), {}
    for digits, number in possible_mobile_numbers():
        names |= {*zones_of(digits)}
        left_out = {*time_zones_for_number(number)} - {*zones_of(digits), "Etc/Unknown"}
        if number.country_code != 1 and left_out:
            missing[digits] = left_out
    assert missing == {}
    assert {find_zone(name).key for name in names} == names
    # The first digits of an Australian mobile number are those of no place.
    assert {"Australia/Perth", "Australia/Sydney"} <= {*zones_of("61412345678")}


def test_an_area_code_of_north_america_tells_the_place():
    """There, a mobile number has the zones of its area code, as in the library any other number has."""
    numbers = [(digits, number) for digits, number in possible_mobile_numbers() if number.country_code == 1]
    assert [zones_of(digits) for digits, _ in numbers] == [
        time_zones_for_geographical_number(each) for _, each in numbers
    ]


@pytest.mark.parametrize(
    ("digits", "zones"),
    [
        ("27821234567", ("Africa/Johannesburg",)),
        ("27100000000", ("Africa/Johannesburg",)),  # no range that the library knows
        ("18765550123", ("America/Jamaica",)),
        ("5511961234567", ("America/Sao_Paulo",)),
        ("0821234567", ()),
        ("9991234567", ()),
    ],
)
def test_the_first_digits_tell_the_zone(digits, zones):
    """The country tells it, and the area code where mobile numbers have one; what no country begins with does not."""
    assert zones_of(digits) == zones
