"""The messages that arrived, indexed as the page shows them: by request, by number and by search; and their JSON rows.

The indexes are updated when the page asks, not when a message is accepted. A sandbox without a page open therefore
spends nothing on them, and each message is indexed once, however often it is shown.
Event ids in rows are strings, because numbers in a browser are exact up to 2^53 only.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.messages.parts import encoding
from airflow_provider_sms.sandbox.networks import network_of
from airflow_provider_sms.sandbox.response_bodies import json_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sms.sandbox.records import AcceptedMessage, RequestRecord
    from airflow_provider_sms.sandbox.state import SandboxState

UPDATE_SIZE = 10_000
"""Records copied from the memory at a time, so that accepting never waits long for its lock."""
MAX_SEARCHED = 20_000
"""Messages that one call of :meth:`Inbox.search` examines, at most, so that a call stays short."""
MAX_CHARACTERS = 20_000
"""Characters of a text that the page shows, at most: a text may be as long as memory allows."""
PREVIEW_CHARACTERS = 120
"""Characters of the latest text in the list of numbers: more than its line can show."""

Row = dict[str, Any]
Page = dict[str, Any]
"""``epoch``; ``total``; ``rows``, newest first; ``next``, where older rows begin, None when there are none."""

_SEPARATORS = re.compile(r"[\s+().-]")


@dataclass(slots=True)
class RequestMessages:
    """The accepted messages of one request, which are consecutive in the order of acceptance.

    :param start: position of the first message among all messages.
    :param count: number of messages.
    :param parts: SMS parts of all of them.
    :param cost: credits for all of them.
    """

    start: int = 0
    count: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)


@dataclass(slots=True)
class Conversation:
    """The messages to one number, oldest first.

    :param destination: the number.
    :param messages: the messages, at least one.
    :param latest: position of the latest message among all messages.
    """

    destination: str = field(repr=False)
    messages: list[AcceptedMessage] = field(default_factory=list, repr=False)
    latest: int = -1


class Inbox:
    """The indexes of one sandbox. Every method may be called from any thread.

    In every method, ``before`` is the ``next`` of an earlier page, or None for the newest page, and ``limit`` is the
    maximum number of rows.

    :param state: the sandbox's memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._begin(None)

    def requests(self, before: int | None, limit: int) -> Page:
        """Return a page of requests."""
        with self._up_to_date():
            positions = _older(len(self._requests), before, limit)
            requests = [self._requests[position] for position in positions]
            rows = [_request_row(request, self._messages_in(request.number)) for request in requests]
            return self._page(len(self._requests), rows, positions)

    def messages_of(self, request: int, offset: int, limit: int) -> Page:
        """Return messages of one request, in request order.

        :param request: number of the request; an unknown one has no messages.
        :param offset: number of messages to skip.
        :param limit: maximum number of messages.
        """
        with self._up_to_date():
            found = self._messages_in(request)
            positions = range(found.start + min(offset, found.count), found.start + min(offset + limit, found.count))
            rows = [_message_row(position, self._messages[position]) for position in positions]
            following = offset + limit if offset + limit < found.count else None
            return {"epoch": self._epoch, "total": found.count, "rows": rows, "next": following}

    def numbers(self, before: int | None, limit: int) -> Page:
        """Return a page of numbers, the one with the latest message first."""
        with self._up_to_date():
            rows: list[Row] = []
            following = None
            for conversation in reversed(self._conversations.values()):
                if before is not None and conversation.latest >= before:
                    continue
                if len(rows) == limit:
                    break
                rows.append(_conversation_row(conversation))
                following = conversation.latest
            else:
                following = None
            return {"epoch": self._epoch, "total": len(self._conversations), "rows": rows, "next": following}

    def messages_to(self, destination: str, before: int | None, limit: int) -> Page:
        """Return a page of messages to one number.

        :param destination: the number; an unknown one has no messages.
        """
        with self._up_to_date():
            found = self._conversations.get(destination)
            messages = found.messages if found else []
            positions = _older(len(messages), before, limit)
            return self._page(len(messages), [_message_row(index, messages[index]) for index in positions], positions)

    def search(self, query: str, before: int | None, limit: int) -> Page:
        """Return messages that contain a query in number or text, or that have it as their event id.

        One call examines a limited number of messages. A page may therefore hold fewer rows than requested, or none,
        although another page follows.

        :param query: text to find, in any case; for a number, with any separators.
        """
        matches = _matcher(query)
        with self._up_to_date():
            start = len(self._messages) if before is None else min(before, len(self._messages))
            rows: list[Row] = []
            position = start
            while position > max(0, start - MAX_SEARCHED) and len(rows) < limit:
                position -= 1
                if matches(self._messages[position]):
                    rows.append(_message_row(position, self._messages[position]))
            return {"epoch": self._epoch, "total": len(self._messages), "rows": rows, "next": position or None}

    def _page(self, total: int, rows: list[Row], positions: range) -> Page:
        following = (positions[-1] or None) if positions else None
        return {"epoch": self._epoch, "total": total, "rows": rows, "next": following}

    def _messages_in(self, request: int) -> RequestMessages:
        return self._by_request.get(request, RequestMessages())

    def _begin(self, epoch: str | None) -> None:
        self._epoch = epoch
        self._requests: list[RequestRecord] = []
        self._messages: list[AcceptedMessage] = []
        self._by_request: dict[int, RequestMessages] = {}
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        with self._lock:
            is_more = True
            while is_more:
                new = self._state.added_since(self._epoch, len(self._requests), len(self._messages), UPDATE_SIZE)
                if new.epoch != self._epoch:
                    self._begin(new.epoch)
                self._requests.extend(new.requests)
                for message in new.messages:
                    self._index(message)
                is_more = UPDATE_SIZE in (len(new.requests), len(new.messages))
            yield

    def _index(self, message: AcceptedMessage) -> None:
        position = len(self._messages)
        self._messages.append(message)
        siblings = self._by_request.get(message.request)
        if siblings is None:
            siblings = self._by_request[message.request] = RequestMessages(position)
        siblings.count += 1
        siblings.parts += message.parts
        siblings.cost += message.cost
        conversation = self._conversations.get(message.destination)
        if conversation is None:
            conversation = self._conversations[message.destination] = Conversation(message.destination)
        else:
            self._conversations.move_to_end(message.destination)
        conversation.messages.append(message)
        conversation.latest = position


def _older(total: int, before: int | None, limit: int) -> range:
    """Return the positions of a page, newest first."""
    stop = total if before is None else min(before, total)
    return range(stop - 1, max(0, stop - limit) - 1, -1)


def _matcher(query: str) -> Callable[[AcceptedMessage], bool]:
    folded = query.casefold()
    digits = _SEPARATORS.sub("", query)
    if not (digits.isascii() and digits.isdigit()):
        return lambda message: folded in message.content.casefold()
    number = digits.lstrip("0") or digits  # 00 before a country code and 0 before a national number are never stored
    event_id = int(digits) if len(digits) < 20 else None  # noqa: PLR2004 - a signed 64-bit integer has at most 19 digits
    return lambda message: (
        number in message.destination or event_id == message.event_id or folded in message.content.casefold()
    )


def _request_row(request: RequestRecord, messages: RequestMessages) -> Row:
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
        "parts": messages.parts,
        "cost": json_number(messages.cost),
        "at": request.at.isoformat(timespec="milliseconds"),
    }


def _message_row(key: int, message: AcceptedMessage) -> Row:
    """Return the row of a message under a key that is unique in its list."""
    return {
        "key": key,
        "destination": message.destination,
        "content": message.content[:MAX_CHARACTERS],
        "characters": len(message.content),
        "encoding": encoding(message.content),
        "parts": message.parts,
        "cost": json_number(message.cost),
        "network": _network_name(message.destination),
        "event_id": str(message.event_id),
        "request": message.request,
        "at": message.at.isoformat(timespec="milliseconds"),
    }


def _conversation_row(conversation: Conversation) -> Row:
    latest = conversation.messages[-1]
    return {
        "key": conversation.destination,
        "destination": conversation.destination,
        "network": _network_name(conversation.destination),
        "messages": len(conversation.messages),
        "latest": latest.content[:PREVIEW_CHARACTERS],
        "at": latest.at.isoformat(timespec="milliseconds"),
    }


def _network_name(destination: str) -> str:
    network = network_of(destination)
    return network.name if network else "none"
