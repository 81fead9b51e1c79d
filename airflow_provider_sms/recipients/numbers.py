"""Phone numbers as people store them → digits with country code (ITU-T E.164 without the plus), or a reason.

A cell holds one number, and a number that can be read in two ways is refused, not guessed. Numbers in a plain notation
that are valid fixed lines or mobiles of their country are certain: regular expressions over the column, made from the
metadata of ``phonenumbers``, tell. Its parser reads every other cell, at a hundred times the cost.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import phonenumbers
import pyarrow as pa
import pyarrow.compute as pc
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata, PhoneNumberType

from airflow_provider_sms.recipients.columns import (
    chosen,
    constant,
    integers,
    is_float,
    is_text,
    mask,
    places,
    plain,
    strings,
    value_type,
    whole_floats,
    wrong_type,
)
from airflow_provider_sms.recipients.forms import read_region
from airflow_provider_sms.recipients.values import LOST_FROM, is_missing

_SHORTEST, _LONGEST = 7, 15
"""Digits of a number with its country code: the most are those of E.164."""
_SHEET_ERRORS = ("#", "Err:", "Loading")
"""How the words begin that a spreadsheet writes over a number, other than words such as NULL, where there is none."""
_LONGEST_CELL = 100
"""Characters; the patterns below take a time that grows with their square."""
_FRENCH_PLAN = (33, 262, 508, 590, 594, 596)
"""Country codes of one numbering plan: 0692 12 34 56 is +262, also where it is dialled in France."""

NO_NUMBER = "no number"
SHEET_ERROR = "a spreadsheet's error in the place of a number"
EXPONENT = "written with an exponent, digits were lost: store the column as text"
SHORT_FLOAT = "stored as a float too short for it, digits were lost: store the column as text"
DECIMALS = "has decimals, so it is not a phone number"
NEGATIVE = "a negative number is no phone number"
DATE = "a date, and no phone number"
CHARACTERS = "holds letters or signs that do not belong to a phone number"
SEVERAL = "more than one number, or an extension: a cell holds one number"
NO_CODE = "no country code that makes a possible number: set default_region, or store numbers with their country code"
IMPOSSIBLE = "not a possible number of the country whose code it begins with"
IMPOSSIBLE_HERE = "not a possible number in default_region; write those of other countries with + or 00"
AMBIGUOUS = "can be read with and without a country code: write it with +"

_metadata: Any = PhoneMetadata.metadata_for_region
_MOBILE = {PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE}

CODES = np.array(
    [
        next((code for n in (1, 2) if (code := int(f"{start:03}"[:n])) in COUNTRY_CODE_TO_REGION_CODE), start)
        for start in range(1000)
    ]
)
"""The country code of a number, by its first three digits."""

_SEPARATORS = re.compile(r"[ \t\-./()]+")
_FLOAT = re.compile(r"(\+?[0-9]+)\.0|(\+?[0-9]{10,})\.0+")
# What spreadsheets and links put around a number: '0821234567, ="0821234567", tel:+27821234567.
_LEFTOVERS = re.compile(r"^(?:'|=?\"|tel:)|\"$")
_NOTATIONS = {
    EXPONENT: r"[+-]?[0-9]*[.,]?[0-9]+[eE][+-]?[0-9]+",
    NEGATIVE: r"-[0-9][0-9 \t\-./()]*",
    DATE: r"(19|20)\d\d([-/.])\d?\d\2\d?\d|\d?\d([-/.])\d?\d\3(19|20)\d\d",
    # One point after 7 or more digits, or zeros alone after the only point: floats and decimals end like this. Groups
    # of digits hardly do: 082123.0000 is a decimal, or a number in two groups.
    DECIMALS: r"\+?[0-9]{7,}\.[0-9]+|[0-9+ \t\-./()]*\.0|\+?[0-9]+\.0+",
}
"""Why a number in one of these notations is none."""
_TRUNK_ZERO = re.compile(r"[0-9][ \t\-./()]*\( ?0 ?\)")
"""A zero that is not dialled from abroad, as in +27 (0)82 123 4567: a country code stands before it."""
_NOTHING = "$."
"""A pattern without a match."""
_GROUPS = re.compile(r"([^0-9]+)")
_PLAIN = r"\+?\(?[0-9]{1,4}\)?(?: ?\([0-9]{2,5}\))?(?:[ -][0-9]{2,5})*[ -]?[0-9]{3,}"
"""Groups that cannot be two numbers: see :func:`_holds_several`."""


class Reading(NamedTuple):
    """What one cell holds: a number, or the reason why it holds none, which does not show the number."""

    digits: str | None
    """With country code, 7 to 15."""
    reason: str | None
    former: str | None = None
    """The digits with country code of a number that is not valid today: its country may have changed its spelling."""


@dataclass(frozen=True, slots=True, repr=False)
class CleanDestinations:
    """What each cell of a column holds, as :class:`Reading` has it: columns of texts."""

    digits: pa.Array
    reasons: pa.Array
    former: pa.Array


def require_numbers(field: pa.Field, used_by: str) -> None:
    """Refuse a column of a type from which no phone numbers can be read."""
    kind, types = value_type(field.type), pa.types
    if not any(check(kind) for check in (is_text, is_float, types.is_integer, types.is_decimal, types.is_null)):
        raise wrong_type(field, used_by, "and phone numbers are text or numbers")


def clean_destinations(column: pa.Array | pa.ChunkedArray, default_region: str | None) -> CleanDestinations:
    """Clean a column of numbers.

    Digits of any script are accepted, and the invisible characters that come with copied numbers. A number is valid in
    its country by ``phonenumbers``, or as long as mobiles are there: new ranges are in use before libraries know them.
    """
    region = None if default_region is None else read_region(default_region)
    column = plain(column)
    digits = _certain((whole_floats(column) if is_float(column.type) else column).cast(pa.string()), region)
    left, nothing = pc.is_null(digits), pa.nulls(len(column), pa.string())
    columns = digits, nothing, nothing
    if read := [read_number(value, region) for value in column.filter(left).to_pylist()]:
        found = map(strings, zip(*read, strict=True))
        columns = tuple(pc.replace_with_mask(each, left, its) for each, its in zip(columns, found, strict=True))
    return CleanDestinations(*columns)


def read_number(value: Any, region: str | None) -> Reading:
    """Return what a cell holds: a text, an integer, a float, a decimal or None."""
    if value is None or value != value:  # noqa: PLR0124 - NaN is no number
        return Reading(None, NO_NUMBER)
    if isinstance(value, float) and not abs(value) < LOST_FROM[64]:
        return Reading(None, SHORT_FLOAT)
    if isinstance(value, (float, Decimal)):
        if value != int(value):
            return Reading(None, DECIMALS)
        value = int(value)
    return _read_text(str(value), region)


@lru_cache(maxsize=1 << 16)
def _read_text(written: str, region: str | None) -> Reading:
    number = _LEFTOVERS.sub("", "".join(map(_in_ascii, written)).strip()).strip()
    if found := _FLOAT.fullmatch(number):
        number = found[1] or found[2]
    compact = _SEPARATORS.sub("", number)
    digits = compact.removeprefix("+")
    if len(number) > _LONGEST_CELL:
        return Reading(None, CHARACTERS)
    if number.startswith(_SHEET_ERRORS) and is_missing(number):
        return Reading(None, SHEET_ERROR)
    if not digits or is_missing(number):
        return Reading(None, NO_NUMBER)
    if reason := next((why for why, notation in _NOTATIONS.items() if re.fullmatch(notation, number)), None):
        return Reading(None, reason)
    if not digits.isdecimal():
        return Reading(None, CHARACTERS)
    is_abroad = compact[0] == "+" or _TRUNK_ZERO.search(number) is not None
    if compact.startswith("00") and (is_abroad or region is None or _metadata(region).international_prefix == "00"):
        is_abroad, digits = True, digits.removeprefix("00")
    return _judge(_GROUPS.split(number.strip("+ \t()./-")), digits, region, is_abroad=is_abroad)


def _judge(groups: list[str], digits: str, region: str | None, *, is_abroad: bool) -> Reading:
    """Return the reading of some digits; ``groups`` are the digits as written, and what is between them, in turn."""
    within = None if is_abroad else region
    candidates = _readings(digits, within)
    chosen = _choose(candidates, by_kind=not digits.startswith("00"))
    best = chosen or next(iter(candidates), None)
    if _holds_several(groups, digits, within, best):
        return Reading(None, SEVERAL)
    former = best.digits if best and not best.is_valid and best.is_whole else None
    if chosen is not None:
        return Reading(chosen.digits, None, former)
    if any(each.is_possible for each in candidates):
        return Reading(None, AMBIGUOUS)
    return Reading(None, IMPOSSIBLE if is_abroad else NO_CODE if region is None else IMPOSSIBLE_HERE, former)


def _readings(digits: str, region: str | None) -> list[_Candidate]:
    """Return the numbers that some digits can be: with a country code, and as they are dialled within a region."""
    if region is None:
        own, coded = None, _parse(f"+{digits}")
    elif digits.startswith("00"):
        # Where another prefix than 00 is dialled, 00 means a plus all the same.
        dialled = re.match(_metadata(region).international_prefix, digits)
        own, coded = _parse(digits, region), _parse(f"+{digits.removeprefix('00')}")
        own = own if dialled or (own and own.is_valid) else None
    else:
        begins = digits.startswith(str(_metadata(region).country_code))
        own, coded = _parse(digits, region), _parse(f"+{digits}") if begins else None
        if own and begins and not own.is_valid and not (coded and coded.is_possible):
            own = None  # it begins with the country code, which nobody dials there
    return list(dict.fromkeys(filter(None, (own, coded))))


def _choose(candidates: list[_Candidate], *, by_kind: bool = True) -> _Candidate | None:
    """Return the only possible number, the only valid one, or the only mobile, since texts go to mobiles.

    4915112345678 is a German mobile with its country code, and a fixed line in the town of code 4915 without one. But
    the kind says nothing of 0011 65 6733 5681, dialled from Australia or with 00.
    """
    possible = [each for each in candidates if each.is_possible]
    valid = [each for each in possible if each.is_valid]
    mobile = [each for each in valid if each.kind in _MOBILE]
    sets = (possible, valid, mobile) if by_kind else (possible, valid)
    return next((fitting[0] for fitting in sets if len(fitting) == 1), None)


def _holds_several(groups: list[str], digits: str, region: str | None, best: _Candidate | None) -> bool:
    """Return whether a cell holds a second number or an extension after a whole one, as in 021 555 0101-3.

    Without the last groups, 082 123 4567 89 is a valid number, and with them it is none. Where countries have valid
    numbers of many lengths, the writing decides: a single digit, what follows a slash or stands in brackets, one or two
    digits after a sign that is not between the groups before, or up to three after six digits in a row.
    """
    for place in range(1, len(groups), 2):
        before, sign, after = groups[place - 1], groups[place].strip(), groups[place + 1]
        apart = "/" in sign or "(" in sign
        if place == len(groups) - 2:
            is_new = place > 1 and sign not in map(str.strip, groups[1:place:2])
            most = 1 if len(before) > 1 else 0
            apart |= len(after) <= (3 if len(before) >= 6 else 2 if is_new else most)  # noqa: PLR2004 - as above
        if apart or best is None or not best.is_valid:
            left = _choose(_readings(digits[: -len("".join(groups[place + 1 :: 2]))], region))
            if left and left.is_valid and left.is_whole and (best is None or best.digits.startswith(left.digits)):
                return True
    return False


class _Candidate(NamedTuple):
    """A number that some digits can be."""

    digits: str
    """With country code."""
    is_whole: bool
    """Whether it has 7 digits without the country code, or as many as mobiles of the country."""
    kind: int
    is_possible: bool
    """Whether the number is valid, or as long as mobiles of the country are."""

    @property
    def is_valid(self) -> bool:
        return self.kind != PhoneNumberType.UNKNOWN


def _parse(digits: str, region: str | None = None) -> _Candidate | None:
    """Return the number that the parser reads, of digits as dialled within the region, or with a plus."""
    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return None
    code, national = str(number.country_code), phonenumbers.national_significant_number(number)
    kind = phonenumbers.number_type(number)
    prefix, usual = _plan_of(number.country_code)
    if kind == PhoneNumberType.UNKNOWN and prefix and national.startswith(prefix):
        # The parser keeps the prefix where some number may be as long, as in +57 0 321 123 4567.
        dropped = _parse(f"+{code}{national.removeprefix(prefix)}")
        return dropped and dropped._replace(is_possible=dropped.is_valid)
    is_possible = kind != PhoneNumberType.UNKNOWN or len(national) == usual
    is_possible &= _SHORTEST <= len(code) + len(national) <= _LONGEST
    if is_possible and kind == PhoneNumberType.UNKNOWN:
        plan = _FRENCH_PLAN if number.country_code in _FRENCH_PLAN else ()
        if any(phonenumbers.is_valid_number(phonenumbers.parse(f"+{other}{national}")) for other in plan):
            return None  # it is no former spelling either
        is_possible = not national.startswith("0")  # a zero that is not dialled from abroad
    if kind not in _MOBILE and (national.startswith(code) or kind == PhoneNumberType.UNKNOWN):
        # Two country codes in a row, as in +49 49 151 12345678: some fixed lines in Germany are as long.
        inner = _parse(f"+{national}")
        is_possible &= inner is None or inner.kind not in _MOBILE
    return _Candidate(f"{code}{national}", len(national) >= min(usual or _SHORTEST, _SHORTEST), kind, is_possible)


@lru_cache
def _plan_of(code: int) -> tuple[str | None, int]:
    """Return the digits that are dialled before national numbers of a country, and how many a mobile usually has."""
    region = phonenumbers.region_code_for_country_code(code)
    main, example = _metadata(region), phonenumbers.example_number_for_type(region, PhoneNumberType.MOBILE)
    usual = len(phonenumbers.national_significant_number(example)) if example else 0
    return main.national_prefix if main else None, usual


@lru_cache
def _in_ascii(character: str) -> str:
    """Return the ASCII for a digit of any script, and for a sign between digits; nothing for an invisible character."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    kind = "Pd" if character in "\u2212\u30fc" else unicodedata.category(character)  # a minus, and a dash in Japanese
    wide = unicodedata.normalize("NFKC", character) if kind in {"Po", "Sm"} else character
    return {"Zs": " ", "Pd": "-", "Cf": "", "Ps": "(", "Pe": ")"}.get(kind, wide)


def _certain(texts: pa.Array, region: str | None) -> pa.Array:
    """Return the digits, with country code, of numbers that can be read in one way only; null for all others."""
    digits = texts
    if not pc.all(pc.ascii_is_decimal(texts)).as_py():
        digits = pc.replace_substring_regex(pc.if_else(_are(texts, _PLAIN), texts, constant(None)), "[+ ()-]", "")
    abroad = digits if region is None else pc.if_else(pc.starts_with(texts, "+"), digits, constant(None))
    certain = pc.if_else(_are_coded(abroad), abroad, constant(None))
    if region is not None:
        certain = pc.coalesce(certain, _within(pc.if_else(pc.is_null(abroad), digits, constant(None)), region))
    lengths = pc.utf8_length(certain)
    is_long = pc.and_(pc.greater_equal(lengths, constant(_SHORTEST)), pc.less_equal(lengths, constant(_LONGEST)))
    return pc.if_else(is_long, certain, constant(None))


def _are(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, f"^(?:{pattern})$")


def _are_coded(digits: pa.Array) -> pa.Array:
    """Return which numbers are valid with their country code, and hold no digits that are not dialled from abroad."""
    codes = CODES[integers(pc.fill_null(pc.utf8_slice_codeunits(digits, 0, 3), constant("000")).cast(pa.int64()))]
    coded = np.zeros(len(digits), np.bool_)
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        plans = [plan for region in COUNTRY_CODE_TO_REGION_CODE.get(code, ()) if (plan := _metadata(region))]
        lines = dict.fromkeys(_pattern(kind) for plan in plans for kind in (plan.mobile, plan.fixed_line))
        doubtful = f"^{code}(?:{'|'.join([str(code), *_prefixes(plans)])})"
        rows = np.flatnonzero(codes == code)
        its = digits.take(places(rows))
        valid = _are(its, f"{code}(?:{'|'.join(lines) or _NOTHING})")
        coded[rows] = chosen(pc.and_not(valid, pc.match_substring_regex(its, doubtful)))
    return mask(coded)


def _within(digits: pa.Array, region: str) -> pa.Array:
    """Return the numbers that a region writes without a plus: mobiles with its code, or lines; null for all others."""
    plan = _metadata(region)
    main = _metadata(phonenumbers.region_code_for_country_code(plan.country_code))
    code, mobile, prefixes = plan.country_code, _pattern(plan.mobile), _prefixes([plan, main])
    trunk = plan.national_prefix_for_parsing or ""
    if plan.national_prefix_transform_rule or not trunk.isdecimal():
        trunk = ""  # there is none, or more than dropping it
    doubtful = f"^{code}(?:{'|'.join([str(code), *prefixes])})"
    beginnings = [str(code), "00", f"(?:{plan.international_prefix})", *([] if trunk else prefixes)]
    is_coded = pc.and_not(_are(digits, f"{code}(?:{mobile})"), _are(digits, mobile))
    is_coded = pc.and_not(is_coded, pc.match_substring_regex(digits, doubtful))
    national = pc.replace_substring_regex(digits, f"^{trunk}", "")
    is_national = _are(national, f"{mobile}|{_pattern(plan.fixed_line)}")
    is_national = pc.and_not(is_national, pc.match_substring_regex(digits, f"^(?:{'|'.join(beginnings)})"))
    completed = pc.binary_join_element_wise(constant(str(code)), national, constant(""))
    return pc.if_else(is_coded, digits, pc.if_else(is_national, completed, constant(None)))


def _prefixes(plans: list[Any]) -> list[str]:
    return [f"(?:{plan.national_prefix_for_parsing})" for plan in plans if plan.national_prefix_for_parsing]


def _pattern(kind: Any) -> str:
    return (kind and kind.national_number_pattern) or _NOTHING
