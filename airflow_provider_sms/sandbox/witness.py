"""What arrived: records of requests and of accepted messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_sms.sandbox.contract import Kind
    from airflow_provider_sms.sandbox.faults import FaultKind

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
    :param submitted: messages in the request; 0 when its body was refused.
    :param accepted: messages that were accepted.
    :param event_id: event id of the send response; None when there is none.
    :param send_options: ``SendOptions`` as received; None when the request had none.
    """

    number: int
    operation: Operation
    path: str
    status: int | None
    error: str | None
    fault: FaultKind
    submitted: int
    accepted: int
    event_id: int | None
    send_options: dict[str, Any] | None = field(repr=False)


@dataclass(slots=True)
class AcceptedMessage:
    """One accepted message.

    :param event_id: event id of the send response.
    :param request: number of the request.
    :param index: position of the message in the request, from 0.
    :param destination: digits with country code.
    :param content: the text.
    :param kind: ``bulk`` or ``group``.
    :param parts: SMS parts of the text.
    :param at: when the message was accepted, UTC.
    """

    event_id: int
    request: int
    index: int
    destination: str = field(repr=False)
    content: str = field(repr=False)
    kind: Kind
    parts: int
    at: datetime
