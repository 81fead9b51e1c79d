"""The base of the models of arguments: pydantic's checks, in the words of this package.

The words of pydantic would show values, which may be numbers of people.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.masking import mask_numbers_in, quoted

LATER: Any = object()
"""Stands for a value that Airflow renders before the task runs: it is not checked yet."""
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Arguments(BaseModel):
    """Arguments of a task.

    The description of a field says what it must be. A validator raises an ``InputError`` with words of its own, or any
    other ``ValueError`` for those of the description.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True, hide_input_in_errors=True)
    named: ClassVar[str] = ""
    """What an error names before the field."""
    shows_values: ClassVar[bool] = True
    """Whether an error shows the value, or none since it may be a secret."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            refusal = _refusal(self, values, error)
        else:
            return
        raise refusal

    @field_validator("*", mode="wrap")
    @classmethod
    def _wait(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        return value if value is LATER else check(value)


def _refusal(model: Arguments, values: dict[str, Any], error: ValidationError) -> InputError:
    """Return the first error of a model in the words of this package."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    name = str(first["loc"][0])
    words = type(model).model_fields[name].description
    given = f", not {form_of(values.get(name))}" if model.shows_values else ""
    return InputError(f"{model.named}{name} must be {words}{given}")


def form_of(value: Any) -> str:
    """Return a value as an error may show it: a text is cut and masked, since it may be anything."""
    if value is None or isinstance(value, (bool, int, float, Decimal)):
        return mask_numbers_in(str(value))
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    return f"a value of type {type(value).__name__}"


def flag(value: Any) -> bool:
    """Return a bool, also of a text: in Python the text ``False`` counts as true.

    :raises ValueError: it is neither true nor false.
    """
    if type(value) in (bool, int, str) and (found := _FLAGS.get(str(value).strip().lower())) is not None:
        return found
    raise ValueError


def number(value: Any) -> int | Decimal:
    """Return a number, exactly, also of a text.

    :raises ValueError: it is not a finite number.
    """
    if type(value) is int:
        return value
    if type(value) in (float, Decimal) and (exact := Decimal(str(value))).is_finite():
        return exact
    if not isinstance(value, str) or _NUMBER.fullmatch(text := value.strip()) is None:
        raise ValueError
    return Decimal(text) if "." in text else int(text)
