from __future__ import annotations

import random

import phonenumbers
import pyarrow as pa
import pytest

from airflow_provider_sms.recipients.numbers import national

EVERY_REGION = sorted(phonenumbers.SUPPORTED_REGIONS)


def candidates(region, count):
    """Numbers near those of the region: examples of each kind, changed a little, and random ones, in many forms."""
    numbers = random.Random(region.name)
    examples = [
        phonenumbers.national_significant_number(example)
        for kind in phonenumbers.PhoneNumberType.values()
        if (example := phonenumbers.example_number_for_type(region.name, kind))
    ]

    def digits(length):
        return "".join(numbers.choices("0123456789", k=length))

    for _ in range(count):
        example = numbers.choice(examples)
        national_number = numbers.choice(
            [example, example[:-1], example + digits(1), example[:3] + digits(len(example) - 3),
             digits(numbers.choice(region.lengths)), digits(numbers.randint(3, 16))]
        )  # fmt: skip
        trunk = numbers.choice("0018")
        prefix = numbers.choice(
            ["", "", trunk, region.code, region.code, region.code + trunk, f"00{region.code}", "011"]
        )
        yield prefix + national_number


def mobile_of(name):
    return phonenumbers.example_number_for_type(name, phonenumbers.PhoneNumberType.MOBILE)


@pytest.mark.parametrize("name", EVERY_REGION)
def test_the_fast_way_reads_as_the_slow_one(name):
    """What is completed a column at a time is what reading number by number gives, for every region's plan."""
    region = national.find_region(name)
    numbers = sorted(set(candidates(region, 60)))
    plain = national.complete_plain(pa.array(numbers), region).to_pylist()
    read = [national._read(number, region)[0] if fast is not None else None
            for number, fast in zip(numbers, plain, strict=True)]  # fmt: skip
    assert read == plain


@pytest.mark.parametrize("name", ["ZA", "US", "BR", "IT", "RU", "HU"])
def test_numbers_do_not_depend_on_their_neighbours(name):
    """Numbers with the country code and without it are read alike beside each other and among their own kind."""
    region = national.find_region(name)
    numbers = sorted(set(candidates(region, 100)))
    together = dict(zip(numbers, national.complete_plain(pa.array(numbers), region).to_pylist(), strict=True))
    coded = [number for number in numbers if number.startswith(region.code)]
    others = [number for number in numbers if not number.startswith(region.code)]
    for alike in (coded, others, [number for number in others if number.startswith("0")], coded[:1], others[:1]):
        apart = national.complete_plain(pa.array(alike, pa.string()), region).to_pylist()
        assert [together[number] for number in alike] == apart


@pytest.mark.parametrize("name", [name for name in EVERY_REGION if mobile_of(name)])
def test_mobiles_of_every_region_are_completed(name):
    """A region's own mobile number comes out right with its code, without it, and as it is dialled there."""
    example = mobile_of(name)
    expected = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]
    dialled = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.NATIONAL)
    forms = [
        expected,
        phonenumbers.national_significant_number(example),
        phonenumbers.normalize_digits_only(dialled),
    ]
    assert [expected] * 3 == national.complete(pa.array(forms), national.find_region(name))[0].to_pylist()


def test_what_the_parser_drops_after_a_country_code():
    """Digits that the parser may drop after a country code, such as 90 in Brazil, are left to it."""
    numbers, region = pa.array(["5590999413606"]), national.find_region("BR")
    assert national.complete_plain(numbers, region).to_pylist() == [None]
    assert national.complete(numbers, region)[0].to_pylist() == ["55999413606"]


def test_most_numbers_go_the_fast_way():
    """The common forms of a country with a plain numbering plan do not wait for the parser."""
    german = national.complete_plain(pa.array(["4915112345678"]), national.find_region("DE")).to_pylist()
    assert german == ["4915112345678"]
    forms = pa.array(["821234567", "0821234567", "27821234567"])
    assert national.complete_plain(forms, national.find_region("ZA")).to_pylist() == ["27821234567"] * 3
