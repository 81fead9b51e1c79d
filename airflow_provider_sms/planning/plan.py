"""The plan of a send, made before the first request: how many messages go out, which rows get none, and the cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.planning.invalid_rows import reasons_in_words

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from airflow_provider_sms.planning.estimate import Estimate
    from airflow_provider_sms.service.responses import Balance


@dataclass(frozen=True, slots=True)
class Plan:
    """The messages of a table that are about to be sent, as figures; counts are of rows unless they say otherwise.

    :param id: a digest of the recipients, their texts and the values of the key columns: it changes with any of them,
        and with their order only where that changes which text of a message is sent.
    :param repeats: people among those to be texted who have had another text of the campaign, from another task or run.
    """

    id: str
    campaign: str
    rows: int
    invalid: Counter[str]
    duplicate: int
    suppressed: int
    already_sent: int
    unknown: int
    to_send: int
    repeats: int
    requests: int
    estimate: Estimate
    balance: Balance | None

    @property
    def is_settled(self) -> bool:
        """Whether the ledger holds every message as sent: nothing is left to send or to find out."""
        return not (self.to_send or self.unknown)

    def as_json(self) -> dict[str, Any]:
        """Return the figures of the plan; the XCom adds an id and ``markdown``, which has the template of the text."""
        balance = self.balance
        return {
            "id": self.id,
            "campaign": self.campaign,
            "rows": self.rows,
            "valid": self.rows - self.invalid.total(),
            "invalid": dict(self.invalid.most_common()),
            "duplicate": self.duplicate,
            "suppressed": self.suppressed,
            "already_sent": self.already_sent,
            "unknown": self.unknown,
            "to_send": self.to_send,
            "repeats": self.repeats,
            "requests": self.requests,
            "parts": self.estimate.parts,
            "cost": float(self.estimate.cost),
            "balance": None if balance is None else float(balance.amount),
            "post_paid": None if balance is None else balance.post_paid,
            "texts": self.estimate.as_json(),
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of a name and a value, for people to read."""
        estimate = self.estimate
        yield "rows", str(self.rows)
        reasons = f" ({reasons_in_words(self.invalid)})" if self.invalid else ""
        yield "invalid", f"{self.invalid.total()}{reasons}"
        yield "duplicate", str(self.duplicate)
        yield "suppressed", str(self.suppressed)
        yield "already sent", str(self.already_sent)
        if self.unknown:
            are = by_count(self.unknown, "is", "are")
            yield "unknown", f"{self.unknown} that may have been sent, or {are} being sent"
        messages, requests = by_count(self.to_send, "message"), by_count(self.requests, "request")
        yield "to send", f"{self.to_send} {messages} in {self.requests} {requests}"
        if self.repeats:
            have, get = by_count(self.repeats, "person has", "people have"), by_count(self.repeats, "gets", "get")
            yield "repeats", f"{self.repeats} {have} had another text of this campaign, and {get} one more"
        yield "SMS parts", str(estimate.parts)
        if estimate.ucs2_messages:
            texts = by_count(estimate.ucs2_messages, "message")
            yield "  in UCS-2", f"{estimate.ucs2_parts}, for {estimate.ucs2_messages} {texts}"
        for each in estimate.forcing():
            texts = by_count(each["messages"], "message")
            yield "  UCS-2 because of", f"{each['code']} {each['name']} in {each['messages']} {texts}"
        if estimate.most_parts_row is not None:
            parts = f"{estimate.most_parts} {by_count(estimate.most_parts, 'part')}"
            yield "longest message", f"{parts}, row {estimate.most_parts_row}"
        price = ", at 1 a part" if estimate.prices.are_default else ""
        yield "cost", f"about {estimate.cost:f} {by_count(estimate.cost, 'credit')}{price}"
        if self.balance is not None:
            less = ", less than the cost" if self.balance.amount < estimate.cost else ""
            yield "balance", "post-paid" if self.balance.post_paid else f"{self.balance.amount:f}{less}"

    def table(self) -> str:
        """Return the plan as a table for a log."""
        lines = list(self.lines())
        width = max(len(name) for name, _ in lines)
        return "\n".join(
            [f"Plan {self.id} of campaign {self.campaign}", *(f"  {name:<{width}}  {value}" for name, value in lines)]
        )
