"""Values: the identity of one value, and how it reads, whatever the type, column, file or format that stores it.

A number is its value: 1, 1.0, 1.00 and a decimal of 1 are one number, and a float is the shortest decimal that stands
for it. So a column that changes its type, because of another row or on its way through pandas or a CSV file, changes no
text and no key. Nothing here knows of columns or Arrow: texts are checked whenever a DAG file is loaded, too.

A text is what people see: a table that is exported again may come back with decomposed accents (NFD), no-break spaces,
padding blanks or direction marks, and nobody sees the difference in a message. Unseen characters are those that Unicode
calls default-ignorable, such as the zero-width space, the soft hyphen and direction marks
(``DerivedCoreProperties.txt``), annotations, and all control characters but tabs and line breaks. Most are never seen,
and go. The others stay where they change what is seen:

- a zero-width joiner between two pictures, as in a family, and after a letter of a script that joins its letters, as in
  Malayalam; a zero-width non-joiner between two such letters, as in Persian;
- a variation selector after a picture, in a keycap, after a Han character, and after a Mongolian letter;
- tags in the flag of a region, such as England's.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any
from uuid import UUID

from airflow_provider_sms.decimal_context import CONTEXT

# Of Python's format specification what people read: fill and align, sign, 0, width, thousands, precision, type.
_number_format = lru_cache(
    re.compile(r"(?:.?[<>=^])?[-+ ]?0?[0-9]*,?(?P<type>d|(?:\.[0-9]+)?[fF%])?", re.DOTALL).fullmatch
)

# With the exponent's sign, which all programs write: 1e5 may be an id, and 1e-05 is a float.
_EXPONENT = r"(?:[eE][-+][0-9]{1,3})?"
_NUMBER = re.compile(rf"[-+]?[0-9]+(?:\.[0-9]+)?{_EXPONENT}", re.ASCII)
# A leading zero or plus marks a code, not a count.
_KEY_NUMBER = re.compile(rf"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?{_EXPONENT}", re.ASCII)
_MOMENT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z|[-+][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII,
)
_TIME = re.compile(r"(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})\.(?P<fraction>[0-9]+)", re.ASCII)

NULLS = {"NoneType", "NAType", "NaTType"}
"""The types of null values in pandas, by name: pandas may not be installed."""

MISSING_WORDS = (
    "nan", "NaN", "NaT", "<NA>", "None", "null", "NULL", "\\N", "Loading...", "#GETTING_DATA", "#FMT",
    "#NV", "#YOK", "#HIÁNYZIK", "#NEDOSTUPNÝ", "#NENÍ_K_DISPOZICI", *(f"Err:{code}" for code in range(501, 542)),
)  # fmt: skip
"""Texts that stand where there is no value: those of pandas, NumPy, Java, databases and Hive; of Google Sheets before
it has computed one; and the errors of spreadsheets that have no form of their own. They count only as whole texts in
exactly this spelling: ``Nan`` is a first name, and ``Null`` a surname."""
_MISSING_WORDS = frozenset(MISSING_WORDS)
_SHEET_ERROR = re.compile(r"#\S+[!?]|#\w/\w")
_TOO_NARROW = re.compile("#{3,}")

LOST_FROM = {16: 2**11, 32: 2**24, 64: 2**53}
"""The first whole number that a float cannot tell from its neighbour, by the float's number of bits."""
LOST_TEXT = r"^-?[0-9]\.[0-9]{17}e[+][0-9]+$"
"""A pattern of the text of such a float, beside values of another kind: its digits are lost, and it is refused."""

# Each of these is the inside of a regular expression's class.
_BLANKS = " \u3000"
"""The characters removed around a text: U+3000 is the space of East Asian texts."""
_OTHER_BLANKS = "\t\xa0\u2007\u202f"
_BREAKS = "\n\v\f\r\x85\u2028\u2029"
_NEVER_SEEN = (
    "\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e001f\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SOMETIMES_SEEN = "\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef"
_PICTURES = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED = "\u0620-\u0dff\u1000-\u109f\u1780-\u180a\u1810-\u1cff\ua800-\uabff\U00010a00-\U00011fff\U0001e900-\U0001e95f"
"""The blocks of Arabic to Sinhala, Myanmar, Khmer, Mongolian to Vedic, Syloti to Meetei Mayek, and later ones."""
_MONGOLIAN = "\u1820-\u18aa"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_is_changed = re.compile(f"[{_OTHER_BLANKS}{_BREAKS}{_NEVER_SEEN}{_SOMETIMES_SEEN}]").search
_other_blank = re.compile(f"[{_OTHER_BLANKS}]")
_line_break = re.compile(f"\r\n|[{_BREAKS}]")
_never_seen = re.compile(f"[{_NEVER_SEEN}]")
_seen_or_not = re.compile(
    f"(?=[{_SOMETIMES_SEEN}])(?:("
    f"(?<=[{_PICTURES}])(?:[\ufe0e\ufe0f]|\u200d(?=[{_PICTURES}]))"
    f"|(?<=[{_PICTURES}][\ufe0e\ufe0f])\u200d(?=[{_PICTURES}])"
    f"|(?<=[{_JOINED}])(?:\u200d|\u200c(?=\u200c*[{_JOINED}]))"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef]|(?<=[{_MONGOLIAN}])[\u180b-\u180f]"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"
    ")|.)"
)
"""One of the characters that are sometimes seen, or the tags of a flag: as a group, where they are."""


def is_missing(text: str) -> bool:
    """Return whether a whole text stands where there is no value: a word for that, or a spreadsheet's error.

    Spreadsheets write their errors into CSV as they show them, in the user's language: ``#REF!``, in German
    ``#BEZUG!``; ``#N/A``, in Italian ``#N/D``; and ``###`` where a column was too narrow.
    """
    if text.isupper() and _SHEET_ERROR.fullmatch(text):
        return True
    return text in _MISSING_WORDS or bool(_TOO_NARROW.fullmatch(text))


def write(value: Any, spec: str = "") -> str:
    """Return a value as text, or raise ValueError or TypeError where it does not fit Python's format specification.

    Numbers equal in value are written alike. Without a format a number has the digits that it needs, and never an
    exponent, and a time of midnight is a date.
    """
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return _write_number(value, spec)
    if isinstance(value, dt.datetime) and not spec:
        return str(value.date()) if value.tzinfo is None and value.time() == dt.time() else str(value)
    text = format(value, spec)
    if spec and text == spec and isinstance(value, (dt.date, dt.time)):
        raise ValueError("a format of dates or times is needed")  # Python writes any other in place of the value
    return text


def _write_number(value: float | Decimal, spec: str) -> str:
    """Return a number in a format, without a minus where it reads as zero."""
    text = _with_sign(value, spec)
    if "-" in text and value > -1:
        size = _with_sign(value.copy_abs() if isinstance(value, Decimal) else abs(value), spec)
        if size == _with_sign(0.0, spec):
            return size
    return text


def _with_sign(value: float | Decimal, spec: str) -> str:
    found = _number_format(spec)
    if found is None:
        raise ValueError("a format of numbers is needed")
    exact, kind = Decimal(repr(value) if isinstance(value, float) else value), found["type"]
    if kind in {None, "d"}:
        if exact == exact.to_integral_value():
            return format(int(exact), spec)
        if kind:
            raise ValueError("a whole number is needed")
        digits = _plain(exact)
        if not spec:
            return digits
        spec = f"{spec}.{len(digits) - digits.index('.') - 1}f"
    elif not kind.startswith("."):
        spec = f"{spec[:-1]}.6{kind}"  # Python's for floats
    with localcontext(CONTEXT):
        return format(exact, spec)


def _plain(exact: Decimal) -> str:
    """Return a number with the digits that it needs."""
    digits = format(exact, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def sets_decimals(spec: str) -> bool:
    """Return whether a format sets the number of digits of a number that is not whole."""
    found = _number_format(spec)
    return found is not None and bool(found["type"])


def format_value_in(text: str, spec: str) -> str | None:
    """Return the number, date or time that a text represents, in a format; None where it represents none."""
    if not is_number_format(spec):
        moment = _moment_in(text)
        return None if moment is None else write(moment, spec)
    return write(Decimal(text), spec) if _NUMBER.fullmatch(text) else None


def is_number_format(spec: str) -> bool:
    """Return whether a format is for numbers."""
    return _number_format(spec) is not None


def fits_text(spec: str) -> bool:
    """Return whether a format is for text as it stands."""
    try:
        format("", spec)
    except ValueError:
        return False
    return not re.match("0[0-9]", spec)  # 05 would turn the text 5 into 50000


def key_text(text: str) -> str:
    """Return a text as it counts in a key: numbers, dates, times and booleans as if they were stored as such."""
    if _KEY_NUMBER.fullmatch(text):
        return _plain(Decimal(text))
    if text in {"True", "False"}:
        return text.lower()
    if found := _TIME.fullmatch(text):
        return found["time"] + _fraction(found["fraction"])
    found, moment = _MOMENT.fullmatch(text), _moment_in(text)
    if found is None or moment is None:
        return text
    zone = "Z" if found["zone"] else ""
    try:
        moment = moment.astimezone(dt.timezone.utc) if zone else moment
    except OverflowError:
        return text
    fraction = _fraction(found["fraction"] or "")
    time = f" {moment:%H:%M:%S}{fraction}" if fraction or moment.time().replace(microsecond=0) != dt.time() else ""
    return f"{moment.date()}{time}{zone}"


def _moment_in(text: str) -> dt.datetime | None:
    """Return the date or time that a text represents in the form of ISO 8601, to the microsecond."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    zone = (found["zone"] or "").replace("Z", "+00:00")
    zone = zone and f"{zone[:3]}:{zone[-2:]}"
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    try:
        return dt.datetime.fromisoformat(f"{found['day']} {found['time'] or '00:00:00'}.{fraction}{zone}")
    except ValueError:
        return None


def _fraction(digits: str) -> str:
    kept = digits.rstrip("0")
    return f".{kept}" if kept else ""


def value_text(value: Any) -> str | None:
    """Return the text of a value beside values of other kinds, None where there is none; other kinds are TypeErrors."""
    if type(value).__name__ in NULLS:
        return None
    if isinstance(value, str):
        return str.__str__(value)  # that of an enumeration would return the name of its member
    if isinstance(value, UUID):
        return str(value)
    lost_from, dtype = LOST_FROM[64], getattr(value, "dtype", None)
    if dtype is not None and dtype.kind in "biuf":
        lost_from = LOST_FROM.get(8 * dtype.itemsize, lost_from)
        value = float(str(value)) if dtype.kind == "f" else value.item()
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        return None
    if isinstance(value, float) and abs(value) >= lost_from:
        return format(value, ".17e")  # as LOST_TEXT tells
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    if isinstance(value, (bool, int, float, Decimal, dt.date, dt.time)):
        return write(value)
    raise TypeError


def tidy_text(text: str) -> str:
    """Return a text as :func:`plain_text` does, without blanks around it."""
    return plain_text(text).strip(_BLANKS)


def tidy_value(value: str) -> str:
    """Return a value as it stands in a text and in a key: tidied, with a blank in place of each line break."""
    return tidy_text(_line_break.sub(" ", value))


def plain_text(text: str) -> str:
    r"""Return a text as people see it: without unseen characters, and in Unicode's composed form (NFC).

    Tabs and no-break spaces are spaces, and each line break is ``\n``.
    """
    if _is_changed(text):
        text = _line_break.sub("\n", _other_blank.sub(" ", text))
        text = _seen_or_not.sub(r"\1", _never_seen.sub("", text))
    return unicodedata.normalize("NFC", text)
