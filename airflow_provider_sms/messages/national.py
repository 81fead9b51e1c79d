"""Numbers as they are written within a country → digits with country code.

``phonenumbers`` knows every numbering plan, but takes 10 µs a number. So its patterns are first asked of a whole
column, for the three plain ways to write a number, in which its parser has no choice. Only what is left goes through
the parser, number by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import phonenumbers
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.exceptions import InputError

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
    """Pattern of what is dialled before a country code, for example ``00``."""
    trunk: str | None
    """Pattern of what is written before a national number, for example ``0``; None where it is not just dropped."""
    trunks: str
    """Pattern of all that the parser may take off the start of a national number."""
    number: str
    """Pattern of a national number without its trunk digits."""
    mobile: str
    """Pattern of those that are mobile numbers."""
    lengths: tuple[int, ...]
    """How many digits such a number may have."""


@lru_cache
def find_region(name: str) -> Region:
    """Look a region up in the metadata of ``phonenumbers``.

    :param name: ISO 3166 alpha-2 in capitals, for example ``ZA``.
    :raises InputError: there is no such region.
    """
    if name not in phonenumbers.SUPPORTED_REGIONS:
        raise InputError(f"default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not {name!r}")
    own: Any = phonenumbers.PhoneMetadata.metadata_for_region(name)
    # Countries share codes (+1, +44, +7): once the parser has read a code it asks the main country of it.
    main: Any = phonenumbers.PhoneMetadata.metadata_for_region(
        phonenumbers.region_code_for_country_code(own.country_code)
    )
    trunk = own.national_prefix_for_parsing
    trunks = [f"(?:{prefix})" for prefix in (trunk, main.national_prefix_for_parsing) if prefix]
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
    """Complete numbers with the region's country code where they do not carry one.

    :param numbers: strings of digits without nulls, without a plus, as written in the region.
    :param region: whose numbering plan applies.
    :returns: digits with country code, null where there is no single reading; and the reasons, null elsewhere.
    """
    completed, reasons = _complete_plain(numbers, region), pa.nulls(len(numbers), pa.string())
    left = pc.is_null(completed)
    if pc.any(left).as_py():
        distinct = pc.dictionary_encode(numbers.filter(left))
        readings = [_read(number, region) for number in distinct.dictionary.to_pylist()]
        read, refused = (pa.array(column, pa.string()) for column in zip(*readings, strict=True))
        completed = pc.replace_with_mask(completed, left, read.take(distinct.indices))
        reasons = pc.replace_with_mask(reasons, left, refused.take(distinct.indices))
    return completed, reasons


def complete_trunk_zero(numbers: pa.Array) -> pa.Array:
    """Read numbers of the form +27 (0)82 123 4567, whose zero is dialled within the country only.

    Not every such zero goes: in Italy it is a part of the number.

    :param numbers: strings of digits that begin with a country code.
    :returns: digits as dialled from abroad, null where the number is not possible.
    """
    return pa.array([_parse(f"+{number}", None) for number in numbers.to_pylist()], pa.string())


def _complete_plain(numbers: pa.Array, region: Region) -> pa.Array:
    """Complete what the parser could read in one way only; null for everything else."""

    def begin_with(pattern: str) -> pa.Array:
        return pc.match_substring_regex(numbers, f"^(?:{pattern})")

    whole, coded, with_trunk = begin_with(f"(?:{region.number})$"), begin_with(region.code), begin_with(region.trunks)
    one_reading = pc.and_not(begin_with(f"{region.code}(?:{region.number})$"), whole)
    one_mobile = pc.and_not(begin_with(f"{region.code}(?:{region.mobile})$"), begin_with(f"(?:{region.mobile})$"))
    after_code = pc.and_not(
        pc.or_(one_reading, pc.and_not(one_mobile, with_trunk)),
        begin_with(f"{region.code}(?:{region.trunks})"),
    )
    without_code = pc.and_not(pc.and_not(whole, coded), with_trunk)
    national = pc.if_else(without_code, numbers, None)
    national = pc.if_else(after_code, pc.utf8_slice_codeunits(numbers, len(region.code)), national)
    if region.trunk is not None:
        dropped = pc.replace_substring_regex(numbers, f"^(?:{region.trunk})", "", max_replacements=1)
        fits = pc.and_(pc.match_substring_regex(dropped, f"^(?:{region.number})$"), begin_with(region.trunk))
        national = pc.if_else(pc.and_not(fits, coded), dropped, national)
    plain = pc.and_not(
        pc.is_in(pc.binary_length(national), pa.array(region.lengths, pa.int32())),
        begin_with(f"00|{region.abroad}"),
    )
    return pc.binary_join_element_wise(region.code, pc.if_else(plain, national, None), "")


def _read(number: str, region: Region) -> tuple[str | None, str | None]:
    """Read one number: its digits with country code, or the reason why there are none."""
    if number.startswith("00"):
        # Where another prefix than 00 is dialled, 00 still means +, unless only the region's own reading is possible.
        abroad = number[2:]
        reading = abroad if _parse(f"+{abroad}", None) == abroad else _parse(number, region.name)
        return (reading, None) if reading else (None, IMPOSSIBLE)
    reading = _parse(number, region.name)
    if number.startswith(region.code) and reading != number and _parse(f"+{number}", None) == number:
        reading = _choose(reading, number) if reading else number
        return (reading, None) if reading else (None, AMBIGUOUS)
    return (reading, None) if reading else (None, IMPOSSIBLE)


def _choose(*readings: str) -> str | None:
    """Choose the only reading that is a valid number, or the only one of a mobile, as texts go to these.

    4915112345678 is a German mobile with its country code, and a fixed line in the town of code 4915 without one.
    """
    kinds = {digits: phonenumbers.number_type(phonenumbers.parse(f"+{digits}", None)) for digits in readings}
    for wanted in (_VALID, _MOBILE):
        fitting = [digits for digits, kind in kinds.items() if kind in wanted]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _parse(text: str, region: str | None) -> str | None:
    """Parse one number; possible is enough, since new ranges are in use before libraries know them."""
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
