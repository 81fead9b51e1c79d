"""Parsing: columns of numbers as people and spreadsheets store them → their digits, or why they cannot be read."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.recipients.columns import (
    constant,
    is_float,
    is_text,
    plain,
    replace_rows,
    strings,
    value_type,
)
from airflow_provider_sms.recipients.values import LOST_FROM

NO_NUMBER = "no number"
EXPONENT = "written with an exponent, digits were lost: store the column as text"
SHORT_FLOAT = "stored as a float too short for it, digits were lost: store the column as text"
DECIMALS = "has decimals, so it is not a phone number"
NEGATIVE = "a negative number is no phone number"
CHARACTERS = "holds letters or signs that do not belong to a phone number"
LENGTH = "not 7 to 15 digits"

_SEPARATOR = r"[ \t\-./()]"
_FLOAT = r"^(\+?[0-9]+)\.0$|^(\+?[0-9]{10,})\.0+$"
_DECIMAL = r"^([0-9]+)\.0+$"
_EXPONENT = r"^[+-]?[0-9]*[.,]?[0-9]+[eE][+-]?[0-9]+$"
# One point after 7 or more digits, or zeros alone after the only point: floats and decimals end like this. Groups of
# digits hardly do: 082123.0000 is a decimal, or a number in two groups.
_DECIMALS = r"^\+?[0-9]{7,}\.[0-9]+$|\.0$|^\+?[0-9]+\.0+$"
_TRUNK_ZERO = rf"[0-9]{_SEPARATOR}*\( ?0 ?\)"

_NO_FLOAT = pa.nulls(1, pa.float64())[0]


@dataclass(frozen=True, slots=True, repr=False)
class ParsedNumbers:
    """The digits of a column of numbers, as they are written. All four arrays are as long as the column."""

    digits: pa.Array
    """The digits alone, as strings; null where the number cannot be read."""
    with_plus: pa.Array
    """Whether a plus stands before the digits."""
    with_trunk_zero: pa.Array
    """Whether the digits hold a zero that is written ``(0)``, as in +27 (0)82 123 4567."""
    reasons: pa.Array
    """Why a number cannot be read, without the number; null where it can."""


def can_hold_numbers(kind: pa.DataType) -> bool:
    """Return whether phone numbers can be read from a column of this type."""
    kind, types = value_type(kind), pa.types
    checks = (is_text, is_float, types.is_integer, types.is_decimal, types.is_null)
    return any(check(kind) for check in checks)


def parse_numbers(column: pa.Array | pa.ChunkedArray) -> ParsedNumbers:
    """Return the digits of each number; where its type or a spreadsheet has lost digits, it is refused, not guessed.

    :param column: of a type that can hold numbers.
    """
    column = plain(column)
    if is_float(column.type):
        return _read_texts(*_write_floats(column))
    if pa.types.is_decimal(column.type):
        return _read_texts(*_write_decimals(column))
    return _read_texts(column.cast(pa.string()), pa.nulls(len(column), pa.string()))


def first_reason(*rules: tuple[pa.Array, str]) -> pa.Array:
    """Return for each row the reason of the first rule that holds for it, null where none does."""
    conditions = pc.make_struct(*(condition for condition, _ in rules), field_names=[str(i) for i in range(len(rules))])
    return pc.case_when(conditions, *(constant(reason) for _, reason in rules))


def _false_if_null(condition: pa.Array) -> pa.Array:
    """Return a condition with False for null: a mask with a null would replace a row by null."""
    return pc.coalesce(condition, constant(False))  # noqa: FBT003 - a value, and no switch


def whole_floats(column: pa.Array) -> pa.Array:
    """Return the whole numbers of a float64 column as 64-bit integers where exact, null for every other value."""
    exact, whole = pc.less(pc.abs(column), constant(float(LOST_FROM[64]))), pc.equal(pc.floor(column), column)
    return pc.if_else(pc.and_(exact, whole), column, _NO_FLOAT).cast(pa.int64())


def _write_floats(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Write floats as text without an exponent, where they are exact."""
    exact, whole = pc.less(pc.abs(column), constant(float(LOST_FROM[64]))), pc.equal(pc.floor(column), column)
    rules = (
        (pc.is_nan(column), NO_NUMBER),
        (pc.is_inf(column), SHORT_FLOAT),
        (pc.invert(whole), DECIMALS),
        (pc.invert(exact), LENGTH),
    )
    return whole_floats(column).cast(pa.string()), first_reason(*rules)


def _write_decimals(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    if column.type.scale < 0:
        column = column.cast(pa.decimal256(76, 0))  # its text would show an exponent, though no digit is lost
    texts = pc.replace_substring_regex(column.cast(pa.string()), _DECIMAL, r"\1")
    return texts, first_reason((pc.match_substring(texts, "."), DECIMALS))


def _read_texts(texts: pa.Array, lost: pa.Array) -> ParsedNumbers:
    """Return the digits of each text.

    :param texts: numbers as written.
    :param lost: reasons that follow from the column's type, null where there is none; they take precedence.
    """
    texts = pc.ascii_trim_whitespace(_in_ascii(texts))
    texts = pc.replace_substring_regex(texts, _FLOAT, r"\1\2")
    compact = pc.replace_substring_regex(texts, f"{_SEPARATOR}+", "")
    with_plus = _false_if_null(pc.starts_with(compact, "+"))
    digits = pc.if_else(with_plus, pc.utf8_slice_codeunits(compact, 1), compact)
    reasons = first_reason(
        (pc.equal(pc.coalesce(digits, constant("")), constant("")), NO_NUMBER),
        (pc.match_substring_regex(texts, _EXPONENT), EXPONENT),
        (pc.match_substring_regex(texts, "^-[0-9]"), NEGATIVE),
        (pc.invert(pc.ascii_is_decimal(digits)), CHARACTERS),
        (pc.match_substring_regex(texts, _DECIMALS), DECIMALS),
    )
    reasons = pc.coalesce(lost, reasons)
    return ParsedNumbers(
        digits=pc.if_else(pc.is_null(reasons), digits, constant(None)),
        with_plus=with_plus,
        with_trunk_zero=_false_if_null(pc.match_substring_regex(texts, _TRUNK_ZERO)),
        reasons=reasons,
    )


class _PlainCharacters(dict[int, str]):
    """The ASCII for digits, spaces, dashes and invisible characters of Unicode, each looked up once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if (digit := unicodedata.decimal(character, None)) is not None:
            return self.setdefault(code, str(digit))
        character = "+" if character == "\uff0b" else character
        by_category = {"Zs": " ", "Pd": "-", "Cf": ""}
        return self.setdefault(code, by_category.get(unicodedata.category(character), character))


_PLAIN_CHARACTERS = _PlainCharacters()


def _in_ascii(texts: pa.Array) -> pa.Array:
    """Return texts with no-break spaces, copied invisible marks and digits of other scripts in ASCII."""
    foreign = _false_if_null(pc.invert(pc.string_is_ascii(texts)))
    if not pc.any(foreign).as_py():
        return texts
    translated = [text.translate(_PLAIN_CHARACTERS) for text in texts.filter(foreign).to_pylist()]
    return replace_rows(texts, foreign, strings(translated))
