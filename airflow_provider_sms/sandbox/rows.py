"""What the page shows of a request, of a message and of a number, as JSON.

Event ids are text: a browser's numbers are exact up to 2^53 only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.messages.parts import encoding
from airflow_provider_sms.sandbox.advice import EFFECTS, advice
from airflow_provider_sms.sandbox.answers import number
from airflow_provider_sms.sandbox.networks import network_of

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.faults import Fault
    from airflow_provider_sms.sandbox.records import Accepted, Request

SHOWN_CHARACTERS = 20_000
"""Of a text that is longer the page shows the beginning: a text may have as many characters as fit into memory."""
PREVIEW_CHARACTERS = 120


@dataclass(slots=True)
class Span:
    """The messages of one request: neighbours in the order in which messages were accepted.

    :param start: place of the first.
    :param count: how many.
    :param parts: SMS parts of them all.
    :param cost: credits for them all.
    """

    start: int = 0
    count: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)


@dataclass(slots=True)
class Conversation:
    """What a number received, oldest first.

    :param destination: the number.
    :param messages: its messages, at least one.
    :param latest: place of its latest message among all messages.
    """

    destination: str = field(repr=False)
    messages: list[Accepted] = field(default_factory=list, repr=False)
    latest: int = -1


def request_row(request: Request, span: Span) -> dict[str, Any]:
    """Give a request.

    :param request: the request.
    :param span: its messages.
    """
    return {
        "key": request.number,
        "number": request.number,
        "operation": request.operation,
        "path": request.path,
        "status": request.status,
        "error": request.error,
        "fault": request.fault,
        "advice": request.advice,
        "submitted": request.submitted,
        "accepted": request.accepted,
        "test_mode": bool(request.send_options and request.send_options.get("TestMode")),
        "event_id": None if request.event_id is None else str(request.event_id),
        "parts": span.parts,
        "cost": number(span.cost),
        "at": request.at.isoformat(timespec="milliseconds"),
    }


def message_row(key: int, message: Accepted) -> dict[str, Any]:
    """Give a message.

    :param key: what tells it from the others of its list.
    :param message: the message.
    """
    network = network_of(message.destination)
    return {
        "key": key,
        "destination": message.destination,
        "content": message.content[:SHOWN_CHARACTERS],
        "characters": len(message.content),
        "encoding": encoding(message.content),
        "parts": message.parts,
        "cost": number(message.cost),
        "network": network.name if network else "none",
        "event_id": str(message.event_id),
        "request": message.request,
        "at": message.at.isoformat(timespec="milliseconds"),
    }


def conversation_row(conversation: Conversation) -> dict[str, Any]:
    """Give a number with the beginning of its latest text.

    :param conversation: what it received.
    """
    latest = conversation.messages[-1]
    network = network_of(conversation.destination)
    return {
        "key": conversation.destination,
        "destination": conversation.destination,
        "network": network.name if network else "none",
        "messages": len(conversation.messages),
        "latest": latest.content[:PREVIEW_CHARACTERS],
        "at": latest.at.isoformat(timespec="milliseconds"),
    }


def fault_row(fault: Fault, left: int) -> dict[str, Any]:
    """Give a fault that waits.

    :param fault: the fault.
    :param left: requests that it is still for.
    """
    return {
        "kind": fault.kind,
        "on": fault.on,
        "left": left,
        "persistent": fault.persistent,
        "status": fault.status if fault.kind == "status" else None,
        "accepted": fault.kind == "status" and fault.accepted,
        "by": fault.by if fault.kind == "status" else None,
        "retry_after": fault.retry_after if fault.kind == "status" else None,
        "seconds": fault.seconds if fault.kind == "delay" else None,
        "effect": EFFECTS[fault.kind],
        "advice": advice(fault),
    }
