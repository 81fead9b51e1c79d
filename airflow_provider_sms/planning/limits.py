"""Limits of a plan, checked before any of it is sent.

DAG files load this module, so it is apart from :mod:`~airflow_provider_sms.planning.plan`, which loads Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import InvalidRowsError, LimitError
from airflow_provider_sms.formatting import by_count

if TYPE_CHECKING:
    from decimal import Decimal

    from airflow_provider_sms.planning.plan import Plan
    from airflow_provider_sms.planning.scan import Scan


REPEATS_ADVICE = (
    "If it is the same message in other words, they have had it: in the next campaign, say in key_columns what "
    "identifies a message beside its number"
)


def repeats_in_words(people: int, campaign: str) -> str:
    """Return how many people have had another text of a campaign, for a log or an error."""
    return f"{people} {by_count(people, 'person has', 'people have')} had another text of campaign {campaign}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a plan may have, and the least. None means no limit.

    :param max_rows: rows of the source.
    :param min_rows: rows of the source, at least.
    :param max_cost: credits, as estimated.
    :param max_invalid: rows that cannot be texted: a whole number of them, or a share of all rows below 1.
    :param max_parts_per_message: SMS parts of the longest text.
    :param max_repeats: people who have had another text of the campaign.
    """

    max_rows: int | None = None
    min_rows: int | None = None
    max_cost: Decimal | None = None
    max_invalid: float | Decimal | None = None
    max_parts_per_message: int | None = None
    max_repeats: int | None = None

    def check_rows(self, rows: int) -> None:
        """Refuse too many rows, while they are being read.

        :param rows: read so far.
        :raises LimitError: there are more than ``max_rows``.
        """
        if self.max_rows is not None and rows > self.max_rows:
            raise LimitError(
                f"The source has more rows than max_rows={self.max_rows}. Nothing was sent. Is it the right source? "
                "If so, raise max_rows"
            )

    def check_enough(self, rows: int) -> None:
        """Refuse too few rows, once all are read.

        :raises LimitError: there are fewer than ``min_rows``.
        """
        if self.min_rows is not None and rows < self.min_rows:
            raise LimitError(
                f"The source has {rows} {by_count(rows, 'row')}, fewer than min_rows={self.min_rows}. Nothing was "
                "sent. Is it the right source, and is it complete? If so, lower min_rows"
            )

    def check_invalid(self, scan: Scan) -> None:
        """Refuse too many rows that cannot be texted.

        :raises InvalidRowsError: names the count, the reasons and the first rows.
        """
        if self.max_invalid is None:
            return
        is_share = not isinstance(self.max_invalid, int)
        if scan.invalid > (self.max_invalid * scan.rows if is_share else self.max_invalid):
            raise InvalidRowsError(
                scan.explain_invalid(
                    f"Nothing was sent, since max_invalid={self.max_invalid:g} allows fewer"
                    f"{' (a share of the rows)' if is_share else ''}. Correct the rows, or raise max_invalid"
                )
            )

    def check(self, plan: Plan) -> None:
        """Refuse a plan that texts too many people again, costs too much, or has too long a text.

        :raises LimitError: names the limit, and what to do.
        """
        if self.max_repeats is not None and plan.repeats > self.max_repeats:
            raise LimitError(
                f"{repeats_in_words(plan.repeats, plan.campaign)}, more than max_repeats={self.max_repeats}. Nothing "
                f"was sent. {REPEATS_ADVICE}. If they should get one more, raise max_repeats, or send it under another "
                "campaign name"
            )
        most, estimate = self.max_parts_per_message, plan.estimate
        if most is not None and estimate.most_parts > most:
            raise LimitError(
                f"The message of row {estimate.most_parts_row} takes {estimate.most_parts} SMS parts, more than "
                f"max_parts_per_message={most}. Rows count from 0. Nothing was sent. Shorten the text, look at the "
                "encoding in the plan above, or raise max_parts_per_message"
            )
        if self.max_cost is not None and plan.cost > self.max_cost:
            raise LimitError(
                f"The {by_count(plan.to_send, 'message costs', 'messages cost')} about {plan.cost:f} "
                f"{by_count(plan.cost, 'credit')}, more than max_cost={self.max_cost:f}. Nothing was sent. Send to "
                "fewer people or less text, or raise max_cost"
            )
