"""The sandbox's records of requests and of accepted messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from airflow_provider_sms.sandbox.faults import FaultKind
    from airflow_provider_sms.sandbox.message_filter import FilteredMessages, SendableMessage
    from airflow_provider_sms.sandbox.request_bodies import Kind

Operation = Literal["bulk", "group", "balance", "authentication"]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to the service, and its response.

    :param number: 1 for the first request since the start; the witness has the same number.
    :param operation: ``bulk``, ``group``, ``balance`` or ``authentication``.
    :param path: path of the URL.
    :param status: HTTP status of the response; None when the connection was dropped instead.
    :param error: the first error code when the service refused the request; None otherwise.
    :param fault: kind of the fault that the request met; ``none`` when it met no fault.
    :param advice: what a correct client must do about the fault; None when the request met no fault.
    :param submitted: messages in the request; 0 when its body was refused.
    :param accepted: messages that were accepted.
    :param event_id: event id of the send response; None when there is none.
    :param send_options: ``SendOptions`` as received; None when the request had none.
    :param at: when the outcome was decided, UTC.
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
class AcceptedMessage:
    """One accepted message.

    :param event_id: event id of the send response.
    :param request: number of the request.
    :param index: position of the message in the request, from 0.
    :param destination: digits with country code.
    :param content: the text.
    :param kind: ``bulk`` or ``group``.
    :param parts: SMS parts of the text.
    :param cost: credits.
    :param at: when the message was accepted, UTC.
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
    def of(cls, sent: SendableMessage, *, event_id: int, request: int, kind: Kind, at: datetime) -> AcceptedMessage:
        """Return the record of a message.

        :param sent: the message and its price.
        :param event_id: event id of the send response.
        :param request: number of the request.
        :param kind: ``bulk`` or ``group``.
        :param at: when the message was accepted, UTC.
        """
        return cls(event_id, request, sent.index, sent.destination, sent.content, kind, sent.parts, sent.cost, at)

    def entry(self) -> dict[str, Any]:
        """Return the message's line in the witness."""
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
class SendResult:
    """The result of a send request, which its response reports.

    :param event_id: event id of the send response.
    :param messages: the sendable messages, and the number of others.
    :param remaining_balance: the balance after the request, in credits.
    :param accepted: messages that were accepted: all sendable ones, or 0 in test mode.
    """

    event_id: int
    messages: FilteredMessages
    remaining_balance: Decimal
    accepted: int
