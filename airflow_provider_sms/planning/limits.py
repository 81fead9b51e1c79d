"""Limits of a plan, checked before any of it is sent; ``max_error_rate`` is one of the send.

DAG files load this module, so it is apart from :mod:`~airflow_provider_sms.planning.plan`, which loads Arrow.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from airflow_provider_sms.arguments import Arguments, number
from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.exceptions import InputError, InvalidRowsError, LimitError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.masking import quoted

if TYPE_CHECKING:
    from airflow_provider_sms.planning.invalid_rows import InvalidRows
    from airflow_provider_sms.planning.plan import Plan


def repeats_in_words(plan: Plan, more: str) -> str:
    """Return how many people have had another text of the campaign, what more there is to say of it, and advice."""
    return (
        f"{plan.repeats} {by_count(plan.repeats, 'person has', 'people have')} had another text of campaign "
        f"{plan.campaign}, {more}. If it is the same message in other words, they have had it: in the next campaign, "
        "say in key_columns what identifies a message beside its number"
    )


def _read(value: Any) -> Any:
    """Return a number, also of a text; a template is left for Airflow to render."""
    is_template = isinstance(value, str) and ("{{" in value or "{%" in value)
    return value if value is None or is_template else number(value)


_READ = BeforeValidator(_read)
_Whole: TypeAlias = Annotated[int, Field(strict=True, ge=0)]
_Share: TypeAlias = Annotated[Decimal, Field(strict=True, ge=0, lt=1)]
_ROWS = Field(default=None, description="a whole number, at least 0, or None for no limit")


class Limits(Arguments):
    """The most that a plan may have, and the least. None means no limit; a value may be a template.

    :param min_rows: rows of the source, at least; 1 refuses an empty source.
    :param max_rows: rows of the source.
    :param max_cost: credits, as estimated.
    :param max_parts: SMS parts of the longest text.
    :param max_invalid: rows that cannot be texted: a whole number of them, or a share of all rows below 1, such as
        ``0.02``. For ``on_invalid="skip"``.
    :param max_repeats: people who have had another text of the campaign, from another task or run; 0 refuses any.
    :param max_error_rate: the share of the last 1,000 messages, 0 to 1, that the service may refuse or call faulty;
        above it, sending stops.
    """

    named: ClassVar[str] = "limits: "

    min_rows: Annotated[_Whole | str | None, _READ] = _ROWS
    max_rows: Annotated[_Whole | str | None, _READ] = _ROWS
    max_cost: Annotated[Annotated[Decimal, Field(ge=0)] | str | None, _READ] = Field(
        default=None, description="a number of credits, at least 0, or None for no limit"
    )
    max_parts: Annotated[Annotated[int, Field(strict=True, ge=1)] | str | None, _READ] = Field(
        default=None, description="a whole number, at least 1, or None for no limit"
    )
    max_invalid: Annotated[_Whole | _Share | str | None, _READ] = Field(
        default=None, description="a whole number of rows, a share below 1, or None for no limit"
    )
    max_repeats: Annotated[_Whole | str | None, _READ] = _ROWS
    max_error_rate: Annotated[Annotated[float, Field(ge=0, le=1)] | str | None, _READ] = Field(
        default=None, description="a share, 0 to 1, or None for no limit"
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in values:
            if name not in cls.model_fields:
                raise InputError(f"limits has no {quoted(str(name))}: it has {', '.join(cls.model_fields)}")
        return values

    @property
    def given(self) -> dict[str, Any]:
        """The limits that are set, by name."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    def check_rows(self, rows: int) -> None:
        """Refuse too many rows, while they are being read."""
        if isinstance(self.max_rows, int) and rows > self.max_rows:
            raise LimitError(
                f"The source has more rows than max_rows={self.max_rows}. Nothing was sent. Is it the right source? "
                "If so, raise max_rows"
            )

    def check_enough(self, rows: int) -> None:
        """Refuse too few rows, once all are read."""
        if isinstance(self.min_rows, int) and rows < self.min_rows:
            raise LimitError(
                f"The source has {rows} {by_count(rows, 'row')}, fewer than min_rows={self.min_rows}. Nothing was "
                "sent. Is it the right source, and is it complete? If so, lower min_rows"
            )

    @own_decimals()
    def check_invalid(self, invalid: InvalidRows, *, skip_invalid: bool) -> None:
        """Refuse rows that cannot be texted: any or, where they are left out, all, and more than ``max_invalid``."""
        limit = self.max_invalid
        allowed = limit * invalid.rows if isinstance(limit, Decimal) else limit
        if not invalid.total:
            return
        if not skip_invalid:
            advice = "Nothing was sent. Correct the rows, or set on_invalid='skip' to leave them out"
        elif isinstance(allowed, (int, Decimal)) and invalid.total > allowed:
            advice = f"Nothing was sent, since max_invalid={limit} allows fewer. Correct the rows, or raise max_invalid"
        elif invalid.total == invalid.rows:
            advice = "Nothing was sent, since no row is valid"
        else:
            return
        raise InvalidRowsError(invalid.in_words(advice))

    def check(self, plan: Plan) -> None:
        """Refuse a plan that texts too many people again, costs too much, or has too long a text."""
        if isinstance(self.max_repeats, int) and plan.repeats > self.max_repeats:
            more = f"more than max_repeats={self.max_repeats}. Nothing was sent"
            raise LimitError(
                f"{repeats_in_words(plan, more)}. If they should get one more, raise max_repeats, or send it under "
                "another campaign name"
            )
        most, estimate = self.max_parts, plan.estimate
        if isinstance(most, int) and estimate.most_parts > most:
            raise LimitError(
                f"The message of row {estimate.most_parts_row} takes {estimate.most_parts} SMS parts, more than "
                f"max_parts={most}. Rows count from 0. Nothing was sent. Shorten the text, look at the "
                "encoding in the plan above, or raise max_parts"
            )
        if isinstance(self.max_cost, Decimal) and estimate.cost > self.max_cost:
            raise LimitError(
                f"The {by_count(plan.to_send, 'message costs', 'messages cost')} about {estimate.cost:f} "
                f"{by_count(estimate.cost, 'credit')}, more than max_cost={self.max_cost:f}. Nothing was sent. Send to "
                "fewer people or less text, or raise max_cost"
            )
