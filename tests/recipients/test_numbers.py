from __future__ import annotations

import random
import re
from decimal import Decimal

import phonenumbers
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_provider_sms.recipients.numbers import (
    AMBIGUOUS,
    CHARACTERS,
    DATE,
    DECIMALS,
    EXPONENT,
    IMPOSSIBLE,
    IMPOSSIBLE_HERE,
    NEGATIVE,
    NO_CODE,
    NO_NUMBER,
    SEVERAL,
    SHEET_ERROR,
    SHORT_FLOAT,
    _certain,
    _read_text,
    clean_destinations,
)

NUMBER = "27821234567"


def cleaned(column, region=None):
    """Return (digits, reason) of each row of a column."""
    column = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, pa.string())
    result = clean_destinations(column, region)
    assert len(column) == len(result.digits) == len(result.reasons)
    return list(zip(result.digits.to_pylist(), result.reasons.to_pylist(), strict=True))


EVERY_REGION = sorted(phonenumbers.SUPPORTED_REGIONS)

INTERNATIONAL = [
    "27821234567", "+27821234567", "0027821234567", "+27 82 123 4567", "+27-82-123-4567", "+27.82.123.4567",
    "+27 (82) 123/4567", "(+27) 82 123 4567", "(0027) 82 123 4567", "00 27 82 123 4567", "+ 27 82 1234567",
    "27\t82\t1234567", "27\u00a082\u00a01234567", "27\u202f82\u20091234567", "  27821234567 \r\n", "27821234567.0",
    "27821234567.00", "+27821234567.0", "\u202a+27 82 123 4567\u202c", "\ufeff27821234567", "27\u201182\u20131234567",
    "٢٧٨٢١٢٣٤٥٦٧", "\uff0b\uff12\uff17\uff18\uff12\uff11\uff12\uff13\uff14\uff15\uff16\uff17", "+27 (0)82 123 4567",
    "+27 (0) 82 123 4567", "+27( 0 )82 123 4567", "0027 (0)82 123 4567", "27 (0)82 123 4567", "'27821234567",
    "tel:+27-82-123-4567",
]  # fmt: skip
NATIONAL = [
    "0821234567", "082 123 4567", "082-123-4567", "(082) 123 4567", "(0)82 123 4567", "082.123.4567", "082/1234567",
    "821234567", "821234567.0", "0821234567.0", "٠٨٢١٢٣٤٥٦٧", "'0821234567", '="0821234567"',
]  # fmt: skip
"""With what Excel puts before a text, and what exports write so that Excel keeps the zero."""


@pytest.mark.parametrize("region", [None, "ZA", "US", "DE"])
@pytest.mark.parametrize("text", INTERNATIONAL)
def test_a_country_code_is_read_as_such(text, region):
    """With + or 00 in every region, and without them in its own, whatever separates the digits."""
    if region in (None, "ZA") or "+" in text or text.startswith(("00", "(00")):
        assert cleaned([text], region) == [(NUMBER, None)]


@pytest.mark.parametrize("text", NATIONAL)
def test_national_numbers_are_completed(text):
    """With a region, a national number gets its country code, also where a spreadsheet lost its leading zero."""
    assert cleaned([text], "ZA") == [(NUMBER, None)]


REFUSED = {
    NO_NUMBER: [None, "", " \t", "\u00a0", "-", "+", "nan", "NULL"],
    SHEET_ERROR: ["#REF!", "#N/A", "########", "Err:502", "Loading..."],
    EXPONENT: ["2.78E+10", "2.7821234567E+10", "2.7821234567e10", "2,78E+10", "278E8"],
    # 082123.0000 may be the number 082 123 0000: cut at the point, it would be the number of somebody else.
    DECIMALS: ["27821234567.5", "0821234.567", "27 82 123 4567.0", "082123.0000", "2782123.0000", "+2782123.0000",
               "0821234.00"],
    NEGATIVE: ["-27821234567", "-27821234567.0"],
    DATE: ["12/03/2024", "2024-03-12", "2024/3/1", "31.12.2025", "1-1-1990"],
    CHARACTERS: ["27821234567,0", "082 123 4567 x7", "082 123 4567;ext=7", "082 123 4567 or 083 123 4567",
                 "082FLOWERS", "++27821234567", "27+821234567", "27_821234567", "n/a", "2782123456\u00b9",
                 "27\n821234567", "1" * 101],
    IMPOSSIBLE: [
        "+123456", "+1234567890123456", "+27 (0)1", "+999 (0)82 123 4567",
        "+0821234567", "00 082 123 4567", "+0027821234567", "000821234567",  # a plus is followed by a country code
        "+27 82 123 45678", "+27 82 123 456789", "+44 7911 12345", "+44 7911 1234567",  # digits too many or too few
        "+27 27 82 123 4567", "+49 49 151 12345678", "+49 27 82 123 4567",  # two country codes
        "+1 253 0000", "+254 722 555 0101",  # dialled within one area only
        "+267 (0)345 8951", "+597 (0)215834", "+33 692 12 34 56", "+262 612 34 56 78",  # no trunk zero; +262 and +33
        "+999999999999",  # no country has the code
        "+52 1 55 1234 5678", "+229 97 12 34 56", "+225 07 12 34 56", "+84 120 123 4567",  # their countries changed
    ],
}  # fmt: skip


@pytest.mark.parametrize("region", [None, "ZA", "DE"])
@pytest.mark.parametrize(("text", "reason"), [(text, why) for why, texts in REFUSED.items() for text in texts])
def test_what_is_no_number_is_refused(text, reason, region):
    """What cannot be a number, has lost digits, or is not possible for its country says why, with any region."""
    assert cleaned([text], region) == [(None, reason)]


REFUSED_IN = {
    # South Africa has valid numbers of five digits; a number that is not valid there is as long as a mobile.
    ("ZA", IMPOSSIBLE_HERE): [
        "12345", "10111", "071 123 456", "20240312",
        "447911123456", "4915112345678", "12", "0", "08212345678901", "999999999999", "999999999999999999",
        "08212", "(0) 8212",
    ],
    ("GB", IMPOSSIBLE_HERE): ["020794609"],
    ("US", IMPOSSIBLE_HERE): ["1202555012"],
    (None, NO_CODE): ["0821234567", "082 123 4567", "820000001", "82 123 4567", "2782123456789012"],
    # A number that makes sense in two ways may be another person's, so nobody guesses.
    ("SE", AMBIGUOUS): ["468123456"],  # of Stockholm
    # After 008, they are numbers in Egypt and Gabon; the last one is Korea's own, or a Russian mobile.
    ("KR", AMBIGUOUS): ["0082 010 2000 0000", "0082 417 509836", "00798-8521-3644"],
    ("BR", AMBIGUOUS): ["00254 0712 123456", "0055 45 3523-4567"],  # Romania after 0025, Denmark after 0055
    ("AU", AMBIGUOUS): ["0011 65 6733 5681"],  # Singapore, or the United States after 00
    ("FR", IMPOSSIBLE_HERE): ["0692 12 34 56"],  # dialled in Réunion, +262
    ("DE", SEVERAL): ["0171 1234567 8.", "030 123456-78."],
}  # fmt: skip


@pytest.mark.parametrize(
    ("region", "reason", "text"), [(*where, text) for where, texts in REFUSED_IN.items() for text in texts]
)
def test_what_is_no_number_in_its_region_is_refused(region, reason, text):
    """A number for which the region's plan has no place, that needs a region, or that can be read in two ways."""
    assert cleaned([text], region) == [(None, reason)]
    assert cleaned(["99 999 9999"], "ZA") == [("27999999999", None)]


MORE_THAN_ONE = {
    "ZA": ["0835550101/2", "021 555 0101-3", "083 555 0101 1", "082 123 4567 / 083 123 4567"],
    "KE": ["0712 123456/7"],
    # Mobiles and fixed lines may be that long there.
    "DE": ["0171 1234567 8", "0171 1234567/8", "030 123456-78", "030 123456 78", "030 123456/57", "06131 12345/54321"],
    "AT": ["0664 1234567 12"],
    None: [
        "27 83 555 0101-2", "+49 171 1234567 8", "0049 30 123456-78", "+44 7911 123456 10",
        "+376 312 266 / 123",  # Andorra's mobiles have six digits
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("region", "text"), [(region, text) for region in MORE_THAN_ONE for text in MORE_THAN_ONE[region]]
)
def test_a_cell_holds_one_number(text, region):
    """A second number, or an extension, is never glued to the first: that would be the number of somebody else."""
    assert cleaned([text, NUMBER], region)[0] == (None, SEVERAL)


BY_REGION = {
    # As people divide a number in their country.
    "FR": {"06-12-34-56-78": "33612345678", "06.12.34.56.78": "33612345678"},
    "CH": {"079/123 45 67": "41791234567"},
    "BE": {"0470/12.34.56": "32470123456"},
    "SE": {"070-123 45 67": "46701234567"},
    "ID": {"0812-3456-789": "628123456789"},
    "TR": {"0532 123 45-67": "905321234567"},
    "NO": {"912 34 567": "4791234567"},
    "IL": {"972 50 234 5678": "972502345678"},
    "JP": {  # in the punctuation of phonenumbers, in full width
        "\uff08090\uff091234\uff0d5678": "819012345678", "090\u22121234\u22125678": "819012345678",
        "090\u30fc1234\u30fc5678": "819012345678", "090\uff0f1234\uff0f5678": "819012345678",
    },
    "DE": {
        "0171/1234567": "491711234567", "0171 12 34 56 7": "491711234567", "030/12345678": "493012345678",
        "030 123 45 67 89": "4930123456789", "015112345678": "4915112345678",
        "4915112345678": "4915112345678",  # and no fixed line in the town of code 04915
    },
    # By the plan of the region, not by one rule for all.
    "IT": {  # keeps the zero
        "0612345678": "390612345678", "+39 (0)6 12345678": "390612345678", "393123456789": "393123456789",
    },
    "US": {
        "2125551234": "12125551234", "12125551234": "12125551234", "011442079460958": "442079460958",
        "0044 20 7946 0958": "442079460958", "(650) 253-0000": "16502530000", "[201] 555-0123": "12015550123",
    },
    "GB": {"07911 123456": "447911123456"},
    "RU": {
        "89161234567": "79161234567", "79161234567": "79161234567", "8 (912) 345-67-89": "79123456789",
        "8001234567": "78001234567",  # 800 begins as the trunk prefix does
    },
    "AU": {  # 0011 is what is dialled there
        "0011 27 82 123 4567": "27821234567", "0027 82 123 4567": "27821234567", "0411 234 567": "61411234567",
        "03 9876 5432": "61398765432", "0044 07911 123456": "447911123456",
    },
    "IN": {"9198765432": "919198765432", "919876543210": "919876543210"},  # the first begins as its country code does
    "SG": {"65123456": "6565123456"},
    "ZA": {"271234567": "27271234567", "0821234": "27821234", "270821234567": NUMBER},  # area code 027, its zero lost
    "AR": {"11 15 2345-6789": "5491123456789", "+54 9 11 2345-6789": "5491123456789"},
    "GY": {"001 592 625 8591": "5926258591"},  # 001 is what is dialled there
    "NG": {"009 234 802 164 9584": "2348021649584"},
    "AT": {"430666258175": "43666258175"},  # country code and trunk prefix, and no area 430
    "XK": {"383043201271": "38343201271"},
    "CO": {"0321 123 4567": "573211234567"},
    "TH": {"0066 081 234 5678": "66812345678"},  # 006 is dialled, too, but 60 812345678 is a number in Malaysia
    None: {"270821234567": NUMBER, "270821234568.0": "27821234568"},  # every number carries its code, also without plus
}  # fmt: skip


WITH_TRUNK_PREFIX = {
    "+27 082 123 4567": NUMBER, "+270821234567": NUMBER, "0027 082 123 4567": NUMBER, "+27 00 82 123 4567": NUMBER,
    "+44 07911 123456": "447911123456", "+44 (0)7911 123456": "447911123456", "+49 0151 12345678": "4915112345678",
    "+7 8 912 345 67 89": "79123456789", "+1 1 212 555 0123": "12125550123",
    "+57 0 321 123 4567": "573211234567", "+57 (0)321 123 4567": "573211234567",  # possible with the zero, too
    "+375 (029) 491-19-11": "375294911911", "+375 8 029 491 19 11": "375294911911",  # dialled with 8, written with 0
    "+370 8 612 34567": "37061234567",  # the prefix until 2025
    "+241 066 28 72 15": "24166287215", "+241 06 03 12 34": "24106031234",  # Gabon, and its numbers until 2019
    "+39 06 1234 5678": "390612345678", "+225 01 01 23 45 67": "2250101234567",  # Italy and the Ivory Coast keep it
    "+7 800 123 45 67": "78001234567",  # an area code that begins as the trunk prefix does
    "+54 11 15 2345-6789": "5491123456789",  # as written within Argentina, after the country code
}  # fmt: skip


@pytest.mark.parametrize(
    ("region", "text", "digits"),
    [(region, text, digits) for region, numbers in BY_REGION.items() for text, digits in numbers.items()]
    + [(region, text, digits) for region in (None, "ZA", "GB") for text, digits in WITH_TRUNK_PREFIX.items()],
)
def test_numbering_plans(text, region, digits):
    """Numbers are read as people write and dial them in the region, and not kept with a prefix dialled there alone."""
    assert cleaned([text], region) == [(digits, None)]
    assert digits not in repr(clean_destinations(pa.array([text]), region))


@pytest.mark.parametrize("region", [None, "ZA", "AU"])
@pytest.mark.parametrize(
    "text", ["+27 08212", "0027 08212", "+27 (0)8212", "+27 008212", "+44 020 7946 09", "+1 1202555012", "+27 0821"]
)
def test_no_number_is_too_short_without_its_trunk_prefix(text, region):
    """The prefix is no part of a number, so it does not make one that is too short long enough."""
    assert cleaned([text], region)[0][0] is None


def test_rows_stay_in_place():
    """Each row's result stands at its place, whichever way it was read; a null may have a number in its memory."""
    texts = ["0821234567", None, "+447911123456", "x", "27 (0)83 123 4567", "٠٨٤١٢٣٤٥٦٧", "0821234567", "271234567"]
    digits = ["27821234567", None, "447911123456", None, "27831234567", "27841234567", "27821234567", "27271234567"]
    assert [row[0] for row in cleaned(texts, "ZA")] == digits
    assert [row[0] for row in cleaned(pa.chunked_array([texts[:2], texts[2:]]), "za")] == digits
    _, *buffers = pa.array([NUMBER] * 2).buffers()
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x01"), *buffers])
    assert cleaned(hidden) == [(NUMBER, None), (None, NO_NUMBER)]


@given(
    st.sampled_from([None, "ZA", "US", "DE"]),
    st.from_regex(r"(27[678]|4915|44[27]|1[2-9])[0-9]{6,10}", fullmatch=True),
    st.integers(min_value=1, max_value=5),
)
def test_all_forms_of_a_number_are_one_number(region, number, position):
    """However a number is stored, its digits come out the same, so nobody gets a text for each form."""
    forms = [f"+{number}", f"00{number}", f"+{number[:position]} {number[position:]}"]
    assert len({digits for digits, _ in cleaned(forms, region)}) == 1
    expected = cleaned([number])
    assert expected * 2 == cleaned([number, f"{number}.0"])
    assert expected * 2 == cleaned(pa.array([int(number)] * 2)) == cleaned(pa.array([float(number)] * 2))


# Types of columns


WHOLE = pa.array([27821234], pa.decimal128(11, 0))


CODED = [
    *(pa.array([NUMBER], kind) for kind in (pa.string(), pa.large_string())), pa.chunked_array([[NUMBER]]),
    *(pa.array([int(NUMBER)], kind) for kind in (pa.int64(), pa.uint64())), pa.array([float(NUMBER)]),
    *(pa.array([Decimal(digits)]) for digits in (NUMBER, NUMBER + ".00")),
    pa.array([Decimal(NUMBER)], pa.decimal256(40, 3)),
    *(pa.array([value], kind).dictionary_encode()
      for value, kind in ((NUMBER, pa.string()), (NUMBER, pa.large_string()), (int(NUMBER), pa.int64()))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "region", "digits"),
    [
        *((column, None, NUMBER) for column in CODED),
        # A decimal stored in thousands has an exponent in its text, though it lost no digit.
        (pa.Array.from_buffers(pa.decimal128(8, -3), 1, WHOLE.buffers()), None, "27821234000"),
        # A national number in a numeric column cannot have its leading zero.
        *((pa.array([821234567], kind), "ZA", NUMBER) for kind in (pa.int64(), pa.int32(), pa.float64())),
        (pa.array([8212345.0], pa.float32()), "ZA", "278212345"),
        (pa.array([Decimal(821234567)]), "ZA", NUMBER),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_column_types(column, region, digits):
    """Text of any width, integers, floats and decimals hold numbers, dictionary-encoded too; no rows hold none."""
    assert cleaned(column, region) == [(digits, None)]
    assert cleaned(column[:0], region) == []


@pytest.mark.parametrize(
    ("column", "reasons"),
    [
        (pa.array([None, -27821234567, 0], pa.int64()), [NO_NUMBER, NEGATIVE, NO_CODE]),
        (pa.array([2**64 - 1], pa.uint64()), [NO_CODE]),
        (pa.array([None, float("nan")]), [NO_NUMBER, NO_NUMBER]),
        (pa.array([27821234567.5, -27821234567.0]), [DECIMALS, NEGATIVE]),
        (pa.array([2.0**53, 1e300, float("inf"), float("-inf")]), [SHORT_FLOAT] * 4),
        (pa.array([27821234567.0, 2.0**24], pa.float32()), [SHORT_FLOAT, SHORT_FLOAT]),
        (pa.array([Decimal("27821234567.25"), Decimal("123456.75"), None]), [DECIMALS, DECIMALS, NO_NUMBER]),
        (pa.nulls(2), [NO_NUMBER, NO_NUMBER]),
        (pa.array([None, "x"]).dictionary_encode(), [NO_NUMBER, CHARACTERS]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
@pytest.mark.parametrize("region", [None, "ZA"])
def test_numeric_columns_refuse_what_they_lost(column, reasons, region):
    """Numeric columns refuse nothing, fractions, signs, and floats that cannot hold all digits."""
    expected = [IMPOSSIBLE_HERE if region and reason == NO_CODE else reason for reason in reasons]
    assert expected == [row[1] for row in cleaned(column, region)]


# Certain numbers


def numbers_near(region, count):
    """Return numbers near those of a region: examples, changed a little, and random ones, in many forms."""
    numbers = random.Random(region)
    plan = phonenumbers.PhoneMetadata.metadata_for_region(region)
    code, lengths = str(plan.country_code), plan.general_desc.possible_length
    examples = [
        phonenumbers.national_significant_number(example)
        for kind in phonenumbers.PhoneNumberType.values()
        if (example := phonenumbers.example_number_for_type(region, kind))
    ]

    def digits(length):
        return "".join(numbers.choices("0123456789", k=length))

    for _ in range(count):
        example = numbers.choice(examples)
        national = numbers.choice(
            [example, example[:-1], example + digits(1), example[:3] + digits(len(example) - 3),
             example[:5] + digits(len(example) - 5), digits(numbers.choice(lengths)), digits(numbers.randint(3, 16))]
        )  # fmt: skip
        trunk = numbers.choice("0018")
        before = ["", "", trunk, code, code + trunk, f"00{code}", f"+{code}", f"+{code}", f"+{code}{trunk}", "011"]
        written = numbers.choice(before) + national
        cut = numbers.randint(2, 6)
        yield numbers.choice([written, written, f"{written[:cut]} {written[cut:]}", f"{written[:-4]}-{written[-4:]}"])


@pytest.mark.parametrize("region", EVERY_REGION)
def test_certain_numbers_are_read_as_by_the_parser(region):
    """What is certain by the patterns of a column is what the parser reads, valid today, for every region's plan."""
    numbers = sorted(set(numbers_near(region, 60)))
    for within in (None, region):
        certain = {n: d for n, d in zip(numbers, _certain(pa.array(numbers), within).to_pylist(), strict=True) if d}
        assert {number: (digits, None, None) for number, digits in certain.items()} == {
            number: _read_text(number, within) for number in certain
        }


def mobile_of(region):
    return phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)


@pytest.mark.parametrize("region", [region for region in EVERY_REGION if mobile_of(region)])
def test_mobiles_of_every_region_are_completed(region):
    """A region's own mobile number comes out right with its code, without it, and as it is dialled there."""
    example = mobile_of(region)
    expected = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]
    forms = [
        expected,
        f"+{expected}",
        phonenumbers.national_significant_number(example),
        phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.NATIONAL),
        phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.INTERNATIONAL),
    ]
    assert [(expected, None)] * len(forms) == cleaned(forms, region)


CELLS = [
    *("{}", "{} ", "{} 1", "{}/2", "{}-3", "{} (6)", "{} x7", "{} ext. 8", "{}/345", "{}; 9", "{} / {}", "{} {}"),
    *("{}, {}", "{}\n{}", "{} {} {}", "{} or {}"),
]


@settings(max_examples=300)
@given(
    st.sampled_from(["AT", "BR", "DE", "FI", "FR", "GB", "ID", "KE", "NG", "US", "ZA"]),
    st.sampled_from(["E164", "INTERNATIONAL", "NATIONAL"]),
    st.integers(0, 9999),
    st.sampled_from(CELLS),
    st.booleans(),
)
def test_every_number_is_the_one_that_a_person_would_dial(region, notation, ending, cell, with_region):
    """A cell with one mobile gives that number; anything beside it makes the cell invalid, and nothing is glued."""
    example = phonenumbers.format_number(mobile_of(region), phonenumbers.PhoneNumberFormat.E164)
    mobile = phonenumbers.parse(f"{example[:-4]}{ending:04}", None)
    assume(phonenumbers.is_valid_number(mobile))
    written = phonenumbers.format_number(mobile, getattr(phonenumbers.PhoneNumberFormat, notation))
    within = region if with_region or notation == "NATIONAL" else None
    expected = f"{example[1:-4]}{ending:04}" if cell.strip() == "{}" else None
    assert [expected] == [digits for digits, _ in cleaned([cell.format(*[written] * 3)], within)]


@settings(max_examples=300)
@given(
    st.lists(
        st.text()
        | st.from_regex(r"\+?[0-9][0-9 ./()-]{5,18}(\.0)?", fullmatch=True)
        | st.from_regex(r"(\+|00)?(27|49|229|52|1|44|0)?[0-9 /()-]{6,14}", fullmatch=True),
        max_size=8,
    ),
    st.sampled_from([None, "ZA", "BR", "DE", "US"]),
)
def test_a_cell_is_a_possible_number_or_has_a_reason(column, region):
    """Whatever a cell holds: never both, and a number is one that phonenumbers calls possible."""
    for digits, reason in cleaned(column, region):
        assert (digits is None) != (reason is None)
        assert digits is None or re.fullmatch("[1-9][0-9]{6,14}", digits)
        assert digits is None or phonenumbers.is_possible_number(phonenumbers.parse(f"+{digits}", None))
