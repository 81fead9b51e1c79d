"""Booleans and numbers that templates may render, read strictly.

A template renders to text, and the text ``False`` counts as true in Python: with ``dry_run="{{ params.dry }}"`` a task
would succeed and send nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.checks import Check, form_of

if TYPE_CHECKING:
    from collections.abc import Callable

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class _Kind(NamedTuple):
    """A kind of value.

    :param read: returns the value; None where it is of another kind.
    :param words: the accepted values, for an error.
    :param is_limit: whether None means no limit.
    """

    read: Callable[[Any], bool | int | Decimal | None]
    words: str
    is_limit: bool = True


def _flag(value: Any) -> bool | None:
    if type(value) in (bool, int, str):
        return _FLAGS.get(str(value).strip().lower())
    return None


def _number(value: Any) -> int | Decimal | None:
    if type(value) is int:
        return value
    if type(value) in (float, Decimal):
        number = Decimal(str(value))
        return number if number.is_finite() else None
    if not isinstance(value, str) or _NUMBER.fullmatch(text := value.strip()) is None:
        return None
    return Decimal(text) if "." in text else int(text)


def _amount(value: Any) -> Decimal | None:
    number = _number(value)
    return None if number is None or number < 0 else Decimal(number)


def _count(value: Any) -> int | None:
    number = _number(value)
    return number if isinstance(number, int) and number >= 0 else None


def _count_or_share(value: Any) -> int | Decimal | None:
    number = _number(value)
    if number is None or number < 0 or (isinstance(number, Decimal) and number >= 1):
        return None
    return number


_YES_OR_NO = _Kind(_flag, "true or false", is_limit=False)
_KINDS = {
    "dry_run": _YES_OR_NO,
    "min_rows": _Kind(_count, "a whole number, at least 0, or None for no limit"),
    "max_rows": _Kind(_count, "a whole number, at least 0, or None for no limit"),
    "max_invalid": _Kind(_count_or_share, "a whole number of rows, a share below 1, or None for no limit"),
    "max_cost": _Kind(_amount, "a number of credits, at least 0, or None for no limit"),
    "max_repeats": _Kind(_count, "a whole number, at least 0, or None for no limit"),
}


def _check_of(name: str) -> Check:
    return Check(lambda task: read_value(task, name), (name,))


def read_value(task: Any, name: str) -> Any:
    """Return a rendered argument as a bool, int or Decimal; None means no limit.

    A flag is also read from the numbers 1 and 0, and a value of every kind from its text. Neither the case of a flag
    nor spaces around a text matter.

    :raises InputError: names the argument and the form of the value.
    """
    return _read(name, getattr(task, name))


def _read(name: str, value: Any) -> bool | int | Decimal | None:
    kind = _KINDS[name]
    if value is None and kind.is_limit:
        return None
    found = kind.read(value)
    if found is None:
        raise InputError(f"{name} must be {kind.words}, not {form_of(value)}")
    return found


VALUE_CHECKS = tuple(_check_of(name) for name in _KINDS)
"""The checks of these values; :func:`read_value` returns a value once its template is rendered."""
