"""Limits that a plan must keep before anything of it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import InvalidRowsError, LimitError

if TYPE_CHECKING:
    from decimal import Decimal

    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.scan import CheckedTable


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan must not go beyond. None: no limit.

    :param max_rows: rows of the source.
    :param max_cost: credits, as estimated.
    :param max_invalid: rows that cannot be texted: a whole number of them, or a share of all rows below 1.
    :param max_parts_per_message: SMS parts of the longest text.
    """

    max_rows: int | None = None
    max_cost: Decimal | None = None
    max_invalid: float | None = None
    max_parts_per_message: int | None = None

    def check_rows(self, rows: int) -> None:
        """Refuse too many rows, as soon as they have been seen.

        :raises LimitError: says how many.
        """
        if self.max_rows is not None and rows > self.max_rows:
            raise LimitError(
                f"The source has more than max_rows={self.max_rows} rows. Nothing was sent. Is it the right source? "
                "Else raise max_rows"
            )

    def check_invalid(self, table: CheckedTable) -> None:
        """Refuse too many rows that cannot be texted.

        :raises InvalidRowsError: says how many, why and which.
        """
        if self.max_invalid is None:
            return
        is_share = isinstance(self.max_invalid, float)
        if table.invalid > (self.max_invalid * table.rows if is_share else self.max_invalid):
            raise InvalidRowsError(
                f"{table.explain()}. Nothing was sent, since max_invalid={self.max_invalid:g} allows fewer"
                f"{' (a share of the rows)' if is_share else ''}. Mend the rows, or raise max_invalid"
            )

    def check(self, plan: Plan) -> None:
        """Refuse a plan that is beyond a limit.

        :raises LimitError: names the limit, and what to do.
        """
        most, measure = self.max_parts_per_message, plan.measure
        if most is not None and measure.most_parts > most:
            raise LimitError(
                f"The message of row {measure.most_parts_row} takes {measure.most_parts} SMS parts, more than "
                f"max_parts_per_message={most}. Rows count from 0. Nothing was sent. Shorten the text, look at the "
                "encoding in the plan above, or raise max_parts_per_message"
            )
        if self.max_cost is not None and plan.cost > self.max_cost:
            raise LimitError(
                f"The messages cost about {plan.cost:f} credits, more than max_cost={self.max_cost:f}. Nothing was "
                "sent. Send to fewer people or less text, or raise max_cost"
            )


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a plan may be without anybody's approval. None: anything.

    :param rows: messages to be sent.
    :param cost: credits, as estimated.
    """

    rows: int | None = None
    cost: Decimal | None = None

    def is_below(self, plan: Plan) -> bool:
        """Whether a plan is beyond it."""
        too_many = self.rows is not None and plan.to_send > self.rows
        return too_many or (self.cost is not None and plan.cost > self.cost)
