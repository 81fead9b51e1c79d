"""What is about to be sent, known before the first request: whom, how much, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from airflow_provider_sms.planning.estimate import Estimate
    from airflow_provider_sms.planning.scan import CheckedTable, Scan
    from airflow_provider_sms.service.responses import Balance

MAX_CHARACTERS = 5
"""Characters that are named in the table of the log."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be sent.

    :param id: of the recipients and their texts: another table has another one, the same in another order has not.
    :param invalid: rows that cannot be texted, by reason.
    :param duplicate: rows that repeat the message of another row.
    :param suppressed: rows whose number is on a list of those not to be texted.
    :param capped: rows whose recipient was texted too recently.
    :param already_sent: rows whose message the campaign has sent already.
    :param unknown: rows whose message may have been sent, or that another process is sending.
    :param to_send: messages to be sent: all other rows.
    :param requests: that they take.
    :param measure: of their texts; of rows that repeat another one it may hold some.
    :param balance: now; None where nobody asked.
    :param seconds: that sending takes, about; None where nothing tells.
    """

    id: str
    campaign: str
    rows: int
    invalid: dict[str, int]
    duplicate: int
    suppressed: int
    capped: int
    already_sent: int
    unknown: int
    to_send: int
    requests: int
    measure: Estimate
    balance: Balance | None
    seconds: float | None

    @property
    def cost(self) -> Decimal:
        """Credits that it costs, about."""
        return self.measure.cost

    @property
    def is_settled(self) -> bool:
        """Whether the ledger says of every message that it is sent: nothing is left to be done or found out."""
        return not (self.to_send or self.unknown or self.capped)

    def as_json(self) -> dict[str, Any]:
        """Give it as an XCom holds it: no number, and no text but single characters."""
        from airflow_provider_sms.planning.estimate import as_json

        balance = self.balance
        return {
            "id": self.id,
            "campaign": self.campaign,
            "rows": self.rows,
            "valid": self.rows - sum(self.invalid.values()),
            "invalid": dict(self.invalid),
            "duplicate": self.duplicate,
            "suppressed": {"listed": self.suppressed, "texted_recently": self.capped},
            "already_sent": self.already_sent,
            "unknown": self.unknown,
            "to_send": self.to_send,
            "requests": self.requests,
            "parts": self.measure.parts,
            "cost": float(self.cost),
            "balance": None if balance is None else float(balance.amount),
            "post_paid": None if balance is None else balance.post_paid,
            "seconds": None if self.seconds is None else round(self.seconds),
            "texts": as_json(self.measure),
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give it as pairs of a name and a value, for people."""
        yield "rows", str(self.rows)
        reasons = "; ".join(f"{count} times {reason}" for reason, count in self.invalid.items())
        yield "invalid", f"{sum(self.invalid.values())}{f' ({reasons})' if reasons else ''}"
        yield "duplicate", str(self.duplicate)
        capped = f", {self.capped} texted too recently" if self.capped else ""
        yield "suppressed", f"{self.suppressed + self.capped}{capped}"
        yield "already sent", str(self.already_sent)
        if self.unknown:
            yield "unknown", f"{self.unknown} that may have been sent, or are being sent"
        yield "to send", f"{self.to_send} messages in {self.requests} requests"
        yield from _text_lines(self.measure)
        yield "cost", f"about {self.cost:f} credits"
        if self.balance is not None:
            yield "balance", "post-paid" if self.balance.post_paid else f"{self.balance.amount:f}"
        yield "time", "not known yet" if self.seconds is None else f"about {duration(self.seconds)}"

    def table(self) -> str:
        """Give it as a table for a log."""
        lines = list(self.lines())
        width = max(len(name) for name, _ in lines)
        return "\n".join(
            [f"Plan {self.id} of campaign {self.campaign}", *(f"  {name:<{width}}  {value}" for name, value in lines)]
        )


def make_plan(
    campaign: str,
    table: CheckedTable,
    survey: Scan,
    *,
    chunk_size: int,
    balance: Balance | None = None,
    seconds_per_request: float | None = None,
) -> Plan:
    """Put together what a check and a survey found.

    :param chunk_size: messages a request.
    :param seconds_per_request: that go by for each one, with several at once; None where that is not known.
    """
    duplicate = survey.duplicate
    others = survey.suppressed + survey.capped + survey.already_sent + survey.unknown + duplicate
    to_send = table.rows - table.invalid - others
    requests = -(-to_send // chunk_size)
    return Plan(
        id=survey.fingerprint.hexdigest(),
        campaign=campaign,
        rows=table.rows,
        invalid=dict(table.reasons.most_common()),
        duplicate=duplicate,
        suppressed=survey.suppressed,
        capped=survey.capped,
        already_sent=survey.already_sent,
        unknown=survey.unknown,
        to_send=to_send,
        requests=requests,
        measure=survey.measure,
        balance=balance,
        seconds=None if seconds_per_request is None else requests * seconds_per_request,
    )


def _text_lines(measure: Estimate) -> Iterator[tuple[str, str]]:
    yield "SMS parts", str(measure.parts)
    for name, encoded in (("GSM-7", measure.gsm), ("UCS-2", measure.ucs2)):
        if encoded.messages:
            yield f"  in {name}", f"{encoded.parts} of {encoded.messages} messages"
    characters = measure.characters.most_frequent()
    for character in characters[:MAX_CHARACTERS]:
        alone = f", in {character.alone} of them it alone" if character.alone else ""
        what = f"{character.code} {character.name}"
        yield "  UCS-2 because of", f"{what} ({character.character}) in {character.messages} messages{alone}"
    if len(characters) > MAX_CHARACTERS:
        yield "  UCS-2 because of", f"{len(characters) - MAX_CHARACTERS} more characters"
    if measure.messages:
        yield "longest text", f"{measure.longest} characters, {measure.longest_parts} parts"


def duration(seconds: float) -> str:
    """Give a time in words: of two units at most."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min"
