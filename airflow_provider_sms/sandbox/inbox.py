"""What arrived, filed as the page shows it: by request, by number, and by what a person looks for.

The files are brought up to date when the page asks, and not when a message is accepted: so a sandbox that nobody looks
at pays nothing for them, and each message is filed once, however often it is shown.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sandbox.rows import Conversation, Span, conversation_row, message_row, request_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sms.sandbox.records import Accepted, Request
    from airflow_provider_sms.sandbox.state import SandboxState

BATCH = 10_000
SEARCHED = 20_000
"""Messages that one call of :meth:`Inbox.search` looks at, at most."""

Page = dict[str, Any]
"""``epoch``; ``total``; ``rows``, newest first; ``next``, where the older ones begin, None when there are none."""

_SEPARATORS = re.compile(r"[\s+().-]")


class Inbox:
    """The files of one sandbox. Every method may be called from any thread.

    In each, ``before`` is the ``next`` of an earlier page, None for the newest, and ``limit`` the rows of a page.

    :param state: the sandbox's memory.
    """

    def __init__(self, state: SandboxState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._begin(None)

    def requests(self, before: int | None, limit: int) -> Page:
        """Give a page of requests."""
        with self._up_to_date():
            places = _older(len(self._requests), before, limit)
            rows = [request_row(request, self._span(request)) for request in map(self._requests.__getitem__, places)]
            return self._page(len(self._requests), rows, places)

    def messages_of(self, request: int, offset: int, limit: int) -> Page:
        """Give messages of a request in its order.

        :param request: number of the request; one that is not known has no messages.
        :param offset: messages to leave out first.
        :param limit: messages to give, at most.
        """
        with self._up_to_date():
            span = self._spans.get(request, Span())
            places = range(span.start + min(offset, span.count), span.start + min(offset + limit, span.count))
            rows = [message_row(place, self._messages[place]) for place in places]
            after = offset + limit if offset + limit < span.count else None
            return {"epoch": self._epoch, "total": span.count, "rows": rows, "next": after}

    def numbers(self, before: int | None, limit: int) -> Page:
        """Give a page of numbers, that with the latest message first."""
        with self._up_to_date():
            rows: list[dict[str, Any]] = []
            following = None
            for conversation in reversed(self._conversations.values()):
                if before is not None and conversation.latest >= before:
                    continue
                if len(rows) == limit:
                    break
                rows.append(conversation_row(conversation))
                following = conversation.latest
            else:
                following = None
            return {"epoch": self._epoch, "total": len(self._conversations), "rows": rows, "next": following}

    def messages_to(self, destination: str, before: int | None, limit: int) -> Page:
        """Give a page of messages to a number.

        :param destination: the number; one that received nothing has no messages.
        """
        with self._up_to_date():
            found = self._conversations.get(destination)
            messages = found.messages if found else []
            places = _older(len(messages), before, limit)
            return self._page(len(messages), [message_row(place, messages[place]) for place in places], places)

    def search(self, query: str, before: int | None, limit: int) -> Page:
        """Give messages by a part of their number or text, or by their event id.

        One call looks at a bounded number of messages. So a page may have fewer rows than asked for, even none, and
        still be followed by another.

        :param query: what to look for; capitals do not matter, nor do separators in a number.
        """
        is_wanted = _matcher(query)
        with self._up_to_date():
            start = len(self._messages) if before is None else min(before, len(self._messages))
            rows: list[dict[str, Any]] = []
            place = start
            while place > max(0, start - SEARCHED) and len(rows) < limit:
                place -= 1
                if is_wanted(self._messages[place]):
                    rows.append(message_row(place, self._messages[place]))
            return {"epoch": self._epoch, "total": len(self._messages), "rows": rows, "next": place or None}

    def _page(self, total: int, rows: list[dict[str, Any]], places: range) -> Page:
        return {"epoch": self._epoch, "total": total, "rows": rows, "next": (places[-1] or None) if places else None}

    def _span(self, request: Request) -> Span:
        return self._spans.get(request.number, Span())

    def _begin(self, epoch: str | None) -> None:
        self._epoch = epoch
        self._requests: list[Request] = []
        self._messages: list[Accepted] = []
        self._spans: dict[int, Span] = {}
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        with self._lock:
            is_more = True
            while is_more:
                news = self._state.since(self._epoch, len(self._requests), len(self._messages), BATCH)
                if news.epoch != self._epoch:
                    self._begin(news.epoch)
                self._requests.extend(news.requests)
                for message in news.messages:
                    self._file(message)
                is_more = BATCH in (len(news.requests), len(news.messages))
            yield

    def _file(self, message: Accepted) -> None:
        place = len(self._messages)
        self._messages.append(message)
        span = self._spans.get(message.request)
        if span is None:
            span = self._spans[message.request] = Span(place)
        span.count += 1
        span.parts += message.parts
        span.cost += message.cost
        conversation = self._conversations.get(message.destination)
        if conversation is None:
            conversation = self._conversations[message.destination] = Conversation(message.destination)
        else:
            self._conversations.move_to_end(message.destination)
        conversation.messages.append(message)
        conversation.latest = place


def _older(total: int, before: int | None, limit: int) -> range:
    """Give the places of a page, newest first."""
    stop = total if before is None else min(before, total)
    return range(stop - 1, max(0, stop - limit) - 1, -1)


def _matcher(query: str) -> Callable[[Accepted], bool]:
    folded = query.casefold()
    digits = _SEPARATORS.sub("", query)
    if not (digits.isascii() and digits.isdigit()):
        return lambda message: folded in message.content.casefold()
    number = digits.lstrip("0") or digits  # 00 before a country code, 0 before a national number: neither is stored
    event_id = int(digits) if len(digits) < 20 else None  # noqa: PLR2004 - digits that 64 bits have at most
    return lambda message: (
        number in message.destination or event_id == message.event_id or folded in message.content.casefold()
    )
