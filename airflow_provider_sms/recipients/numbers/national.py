"""National numbers: numbers as they are written within a country → digits with country code.

``phonenumbers`` knows every numbering plan, but takes 10 µs per number. So its patterns are first matched against a
whole column, for the three plain ways to write a number that its parser can read in one way only. The rest goes through
the parser, number by number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import phonenumbers
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.recipients.columns import constant, replace_rows, strings
from airflow_provider_sms.recipients.regions import read_region

IMPOSSIBLE = "not a possible number in default_region; write those of other countries with + or 00"
AMBIGUOUS = "can be read with and without a country code: write it with +"

_VALID = {*phonenumbers.PhoneNumberType.values()} - {phonenumbers.PhoneNumberType.UNKNOWN}
_MOBILE = {phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE}


@dataclass(frozen=True, slots=True)
class Region:
    """How numbers are written in one region."""

    name: str
    """ISO 3166 alpha-2, for example ``ZA``."""
    code: str
    """Digits of the country code, for example ``27``."""
    abroad: str
    """Pattern of the digits dialled before a country code, for example ``00``."""
    trunk: str | None
    """Pattern of the digits before a national number, for example ``0``; None where they are not merely dropped."""
    trunks: str
    """Pattern of all digits that the parser may drop from the start of a national number."""
    number: str
    """Pattern of a national number without its trunk digits."""
    mobile: str
    """Pattern of a national mobile number."""
    lengths: tuple[int, ...]
    """The numbers of digits that a national number may have."""

    @property
    def fitting_lengths(self) -> pa.Array:
        """The lengths as an array."""
        lengths = np.array(self.lengths, np.int32)
        return pa.Array.from_buffers(pa.int32(), len(lengths), [None, pa.py_buffer(lengths)])


def find_region(name: str) -> Region:
    """Return a region from the metadata of ``phonenumbers``.

    :param name: ISO 3166 alpha-2 code, for example ``ZA``; lower case is accepted.
    :raises InputError: there is no such region.
    """
    return _region_of(read_region(name))


@lru_cache
def _region_of(name: str) -> Region:
    if name not in phonenumbers.SUPPORTED_REGIONS:
        raise InputError(f"default_region: the installed phonenumbers {phonenumbers.__version__} does not know {name}")
    own: Any = phonenumbers.PhoneMetadata.metadata_for_region(name)
    # Countries share codes (+1, +44, +7): once the parser has read a code, it uses the main country's rules.
    main: Any = phonenumbers.PhoneMetadata.metadata_for_region(
        phonenumbers.region_code_for_country_code(own.country_code)
    )
    trunk = own.national_prefix_for_parsing
    trunks = dict.fromkeys(f"(?:{prefix})" for prefix in (trunk, main.national_prefix_for_parsing) if prefix)
    return Region(
        name=name,
        code=str(own.country_code),
        abroad=own.international_prefix,
        trunk=None if own.national_prefix_transform_rule else trunk,
        trunks="|".join(trunks) or "[^0-9]",
        number=own.general_desc.national_number_pattern,
        mobile=(own.mobile and own.mobile.national_number_pattern) or "[^0-9]",
        lengths=tuple({*own.general_desc.possible_length} & {*main.general_desc.possible_length}),
    )


def complete(numbers: pa.Array, region: Region) -> tuple[pa.Array, pa.Array]:
    """Return numbers with the region's country code where they do not carry one.

    :param numbers: strings of digits without nulls, without a plus, as written in the region.
    :param region: the region whose numbering plan applies.
    :returns: digits with country code, null where there is no single reading; and the reasons, null elsewhere.
    """
    completed, reasons = complete_plain(numbers, region), pa.nulls(len(numbers), pa.string())
    left = pc.is_null(completed)
    if pc.any(left).as_py():
        distinct = pc.dictionary_encode(numbers.filter(left))
        readings = [_read(number, region) for number in distinct.dictionary.to_pylist()]
        read, refused = map(strings, zip(*readings, strict=True))
        completed = replace_rows(completed, left, read.take(distinct.indices))
        reasons = replace_rows(reasons, left, refused.take(distinct.indices))
    return completed, reasons


def complete_trunk_zero(numbers: pa.Array) -> pa.Array:
    """Return numbers of the form +27 (0)82 123 4567, whose zero is dialled only within the country, as from abroad.

    Not every such zero is dropped: in Italy it belongs to the number.

    :param numbers: strings of digits that begin with a country code.
    :returns: digits, null where the number is not possible, or the zero may or may not belong to it.
    """
    return strings([_without_trunk_zero(number) for number in numbers.to_pylist()])


def _without_trunk_zero(digits: str) -> str | None:
    reading = _parse(f"+{digits}", None)
    if reading != digits:
        return reading
    # The parser keeps the zero where that makes a possible number, as in Colombia.
    code = len(str(phonenumbers.parse(f"+{digits}", None).country_code))
    dropped = _parse(f"+{digits[:code]}{digits[code:].removeprefix('0')}", None)
    return reading if dropped in {None, reading} else _choose(reading, str(dropped))


@lru_cache
def begins_with_trunk_prefix(digits: str) -> bool:
    """Return whether digits begin with a country code and a trunk prefix of that country, present or former.

    Some countries have several: in Belarus people dial 8 and write 0, and in Lithuania they dialled 8.

    :param digits: the first four of a number.
    """
    for length in range(1, 4):
        regions = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(int(digits[:length]))
        if regions is not None:
            main: Any = phonenumbers.PhoneMetadata.metadata_for_region(regions[0])
            prefixes, rest = main and main.national_prefix_for_parsing, digits[length:]
            if not prefixes:
                return False
            if main.national_prefix is None:
                return bool(prefixes.startswith(rest[0]))  # a pattern of whole numbers, as for Gabon
            found = re.match(prefixes, rest)
            return bool(found and found[0])
    return False


def drop_trunk_prefix(numbers: pa.Array) -> pa.Array:
    """Return numbers of the form +27 082 123 4567 as dialled from abroad; unchanged where that is not possible.

    :param numbers: those that :mod:`~airflow_provider_sms.recipients.numbers.trunk_prefix` finds, without nulls.
    """
    distinct = pc.dictionary_encode(numbers)
    return strings([_from_abroad(number) for number in distinct.dictionary.to_pylist()]).take(distinct.indices)


def _from_abroad(number: str) -> str:
    read = _parse(f"+{number}", None)
    return number if read in {None, number} else _from_abroad(str(read))


def need_trunk_prefix(numbers: pa.Array) -> pa.Array:
    """Return which numbers are possible only because the trunk prefix of their country makes them long enough.

    The parser keeps the prefix of such a number: it reads 08212 in South Africa as +27 08212, a number that nobody has.

    :param numbers: those that :mod:`~airflow_provider_sms.recipients.numbers.trunk_prefix` finds, without nulls.
    """
    return pa.array([_needs_trunk_prefix(number) for number in numbers.to_pylist()], pa.bool_())


def _needs_trunk_prefix(digits: str) -> bool:
    if _parse(f"+{digits}", None) != digits:
        return False
    number: Any = phonenumbers.parse(f"+{digits}", None)
    main: Any = phonenumbers.PhoneMetadata.metadata_for_region(
        phonenumbers.region_code_for_country_code(number.country_code)
    )
    national, plan = phonenumbers.national_significant_number(number), main.general_desc
    if main.national_prefix is None:
        return False
    # Some numbers begin as the trunk prefix does, such as 800 in Russia.
    own = re.fullmatch(plan.national_number_pattern, national) is not None
    prefix = main.national_prefix
    return not own and national.startswith(prefix) and len(national) - len(prefix) not in plan.possible_length


def complete_plain(numbers: pa.Array, region: Region) -> pa.Array:
    """Return the numbers that the parser could read in one way only, completed.

    :param numbers: as for :func:`complete`.
    :param region: the region whose numbering plan applies.
    :returns: digits with country code, null for everything else.
    """
    coded = pc.starts_with(numbers, region.code)
    if not pc.any(coded).as_py():
        national = _without_code(numbers, region)
    elif pc.all(coded).as_py():
        national = _after_code(numbers, region)
    else:
        others = pc.invert(coded)
        national = replace_rows(numbers, coded, _after_code(numbers.filter(coded), region))
        national = replace_rows(national, others, _without_code(numbers.filter(others), region))
    fits = pc.is_in(pc.binary_length(national), region.fitting_lengths)
    abroad = pc.starts_with(numbers, "00")
    if region.abroad != "00":
        abroad = pc.or_(abroad, _begin_with(numbers, region.abroad))
    national = pc.if_else(pc.and_not(fits, abroad), national, constant(None))
    return pc.binary_join_element_wise(constant(region.code), national, constant(""))


def _begin_with(numbers: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(numbers, f"^(?:{pattern})")


def _are(numbers: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(numbers, f"^(?:{pattern})$")


def _without_code(numbers: pa.Array, region: Region) -> pa.Array:
    """Return the national numbers among numbers that do not begin with the country code; null for the others."""
    with_trunk = _begin_with(numbers, region.trunks)
    national = numbers
    if not pc.all(with_trunk).as_py():
        national = pc.if_else(_are(numbers, region.number), numbers, constant(None))
    national = pc.if_else(with_trunk, constant(None), national)
    if region.trunk is None or not pc.any(with_trunk).as_py():
        return national
    if region.trunk.isdecimal():
        with_own, dropped = (
            pc.starts_with(numbers, region.trunk),
            pc.utf8_slice_codeunits(numbers, len(region.trunk)),
        )
    else:
        with_own = _begin_with(numbers, region.trunk)
        dropped = pc.replace_substring_regex(numbers, f"^(?:{region.trunk})", "", max_replacements=1)
    return pc.if_else(pc.and_(with_own, _are(dropped, region.number)), dropped, national)


def _after_code(numbers: pa.Array, region: Region) -> pa.Array:
    """Return the digits after the country code, with which all numbers begin, where that is certainly a code."""
    rest = pc.utf8_slice_codeunits(numbers, len(region.code))
    one_reading = pc.and_not(_are(rest, region.number), _are(numbers, region.number))
    if not pc.all(one_reading).as_py():
        one_mobile = pc.and_not(_are(rest, region.mobile), _are(numbers, region.mobile))
        one_reading = pc.or_(one_reading, pc.and_not(one_mobile, _begin_with(numbers, region.trunks)))
    return pc.if_else(pc.and_not(one_reading, _begin_with(rest, region.trunks)), rest, constant(None))


def _read(number: str, region: Region) -> tuple[str | None, str | None]:
    """Return the digits of one number with country code, or the reason why there are none."""
    if number.startswith("00"):
        # Where a prefix other than 00 is dialled, 00 still means +, unless only the region's own reading is possible.
        # After the country code a trunk prefix may stand, as anywhere.
        abroad, own = _parse(f"+{number[2:]}", None), _parse(number, region.name)
        reading = abroad or own
        # The region's own prefix may begin with 00, too.
        if reading != own and own is not None and re.match(region.abroad, number):
            reading = _choose(str(reading), own)
            return (reading, None) if reading else (None, AMBIGUOUS)
        return (reading, None) if reading else (None, IMPOSSIBLE)
    reading = _parse(number, region.name)
    coded = _parse(f"+{number}", None) if number.startswith(region.code) else None
    if coded is not None and coded != reading:
        reading = _choose(reading, coded) if reading else coded
        return (reading, None) if reading else (None, AMBIGUOUS)
    return (reading, None) if reading else (None, IMPOSSIBLE)


def _choose(*readings: str) -> str | None:
    """Return the only reading that is a valid number, or the only mobile number among them, since texts go to mobiles.

    4915112345678 is a German mobile with its country code, and a fixed line in the town of code 4915 without one.
    """
    kinds = {digits: phonenumbers.number_type(phonenumbers.parse(f"+{digits}", None)) for digits in readings}
    for wanted in (_VALID, _MOBILE):
        fitting = [digits for digits, kind in kinds.items() if kind in wanted]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _parse(text: str, region: str | None) -> str | None:
    """Return the digits of a possible number: new ranges are in use before libraries know that they are valid."""
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return _without_kept_prefix(number, phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:])


def _without_kept_prefix(number: Any, digits: str) -> str:
    """Return the digits of a number, without a trunk prefix that the parser has kept if it is valid only without it.

    The parser keeps the prefix where some number may be as long: in Colombia it takes 0321 123 4567 for one of those.
    """
    code = str(number.country_code)
    main: Any = phonenumbers.PhoneMetadata.metadata_for_region(
        phonenumbers.region_code_for_country_code(number.country_code)
    )
    prefix = f"{code}{(main and main.national_prefix) or '-'}"
    if not digits.startswith(prefix) or phonenumbers.is_valid_number(number):
        return digits
    dropped = f"{code}{digits.removeprefix(prefix)}"
    try:
        is_valid = phonenumbers.is_valid_number(phonenumbers.parse(f"+{dropped}", None))
    except phonenumbers.NumberParseException:
        is_valid = False
    return dropped if is_valid else digits
