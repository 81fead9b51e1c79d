"""What the sandbox remembers of each request and each message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from airflow_provider_sms.sandbox.faults import FaultKind, Target
    from airflow_provider_sms.sandbox.screening import Priced, Screened
    from airflow_provider_sms.sandbox.submissions import Kind

Operation = Literal["bulk", "group", "balance", "authentication"]

TARGETS: dict[Operation, Target] = {
    "bulk": "send",
    "group": "send",
    "balance": "balance",
    "authentication": "authentication",
}
"""What a fault is said to be on, by the operation that meets it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the service, as it was answered.

    :param number: 1 for the first request since the start; the witness names it too.
    :param operation: ``bulk``, ``group``, ``balance`` or ``authentication``.
    :param path: path of the URL.
    :param status: HTTP status of the answer; None when the connection was dropped instead.
    :param error: the first error code when the service refused it; None otherwise.
    :param fault: kind of the fault that met it; ``none`` when nothing was made to go wrong.
    :param advice: what a correct client must do then; None when nothing was made to go wrong.
    :param submitted: messages that it asked for; 0 when its body was refused.
    :param accepted: messages that were accepted.
    :param event_id: event id of its send response; None when it has none.
    :param send_options: ``SendOptions`` as received; None when there were none.
    :param at: when it was decided, UTC.
    """

    number: int
    operation: Operation
    path: str
    status: int | None
    error: str | None
    fault: FaultKind
    advice: str | None
    submitted: int
    accepted: int
    event_id: int | None
    send_options: dict[str, Any] | None = field(repr=False)
    at: datetime


@dataclass(frozen=True, slots=True)
class Accepted:
    """One accepted message.

    :param event_id: event id of the send response.
    :param request: number of its request.
    :param index: its position in the request, from 0.
    :param destination: digits with country code.
    :param content: the text.
    :param kind: ``bulk`` or ``group``.
    :param parts: SMS parts of the text.
    :param cost: credits.
    :param at: when it was accepted, UTC.
    """

    event_id: int
    request: int
    index: int
    destination: str = field(repr=False)
    content: str = field(repr=False)
    kind: Kind
    parts: int
    cost: Decimal
    at: datetime

    @classmethod
    def of(cls, sent: Priced, *, event_id: int, request: int, kind: Kind, at: datetime) -> Accepted:
        """Give the record of a message.

        :param sent: the message and its price.
        :param event_id: event id of the send response.
        :param request: number of its request.
        :param kind: ``bulk`` or ``group``.
        :param at: when it was accepted, UTC.
        """
        return cls(event_id, request, sent.index, sent.destination, sent.content, kind, sent.parts, sent.cost, at)

    def entry(self) -> dict[str, Any]:
        """Give its line of the witness."""
        return {
            "event_id": self.event_id,
            "request": self.request,
            "index": self.index,
            "destination": self.destination,
            "content": self.content,
            "kind": self.kind,
            "at": self.at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a send response reports.

    :param event_id: identifier of the send.
    :param screened: what became of its messages.
    :param remaining_balance: credit after it.
    :param accepted: messages that are in the witness: all that can be sent, or 0 in test mode.
    """

    event_id: int
    screened: Screened
    remaining_balance: Decimal
    accepted: int
