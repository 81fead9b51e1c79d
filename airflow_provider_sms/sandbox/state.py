"""The sandbox's memory: the account, waiting faults, and what arrived. One lock guards all of it."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import orjson
from pydantic import TypeAdapter

from airflow_provider_sms.sandbox.config import Credits
from airflow_provider_sms.sandbox.contract import PricedMessages, RefusalError
from airflow_provider_sms.sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.sandbox.contract import Kind, SendRequest
    from airflow_provider_sms.sandbox.faults import Target

Operation = Literal["bulk", "group", "balance", "authentication"]
POST_PAID_BALANCE = Decimal(1000000)
"""The balance that the service reports for every post-paid account."""
TOKEN_MINUTES = 1440
"""Lifetime of a fetched token: one day."""
NO_FAULT = Fault("none")
_CREDITS: TypeAdapter[Any] = TypeAdapter(Credits)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to the service, and its response.

    :param number: 1 for the first request since the start; the witness has the same number.
    :param operation: ``bulk``, ``group``, ``balance`` or ``authentication``.
    :param path: path of the URL.
    :param status: HTTP status of the response; None when the connection was dropped instead.
    :param response: JSON of the response as it would have been without a fault; empty when the request was not served.
    :param send_options: ``SendOptions`` as received; None when the request had none.
    """

    number: int
    operation: Operation
    path: str
    status: int | None
    response: dict[str, Any] = field(repr=False)
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


class SandboxState:
    """The memory of one sandbox. Every method may be called from any thread.

    :param config: the settings.
    :raises OSError: the witness cannot be opened.
    """

    requests: list[RequestRecord]
    """All requests to the service, in the order in which they were decided."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.opted_out = config.opted_out
        self._lock = threading.Lock()
        # It holds numbers and texts, so nobody else may read it.
        self._witness = open(config.log or os.devnull, "ab", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115 - see close()
        self.numbers = itertools.count(1)
        """The numbers of requests."""
        # From the clock, so that no restart repeats an id; odd and above 2**53, so that no float can hold one.
        self._event_ids = itertools.count(time.time_ns() | 1, 2)
        self._tokens = {config.token}
        self.reset()

    def reset(self) -> None:
        """Remove requests, messages and faults, and restore balance and post-paid. The witness stays unchanged."""
        with self._lock:
            self._balance = _CREDITS.validate_python(self.config.balance)
            self.post_paid = self.config.post_paid
            """Whether nothing is deducted."""
            self._faults: list[Fault] = []
            self.requests = []
            self._accepted: list[AcceptedMessage] = []

    @property
    def balance(self) -> Decimal:
        """The balance that the service reports, in credits."""
        with self._lock:
            return self._reported()

    @property
    def accepted(self) -> list[AcceptedMessage]:
        """All accepted messages, in the order of the witness."""
        with self._lock:
            return list(self._accepted)

    @property
    def accepted_messages(self) -> list[tuple[str, str]]:
        """Destination and text of all accepted messages, in the order of the witness."""
        return [(message.destination, message.content) for message in self.accepted]

    @property
    def faults(self) -> list[Fault]:
        """The waiting faults, each with the requests left in ``times``."""
        with self._lock:
            return list(self._faults)

    def set_balance(self, balance: Decimal | float) -> None:
        """Set the balance of the pre-paid account.

        :param balance: credits.
        :raises ValueError: the balance is not a finite number of at least 0.
        """
        amount = _CREDITS.validate_python(balance)
        with self._lock:
            self._balance = amount

    def set_faults(self, faults: Iterable[Mapping[str, Any] | Fault]) -> None:
        """Replace the waiting faults.

        :param faults: the faults, in the order in which requests will meet them.
        :raises ValueError: a field of one of the faults is invalid; the waiting faults then stay.
        """
        parsed = [each if isinstance(each, Fault) else Fault(**each) for each in faults]
        with self._lock:
            self._faults = parsed

    def take_fault(self, target: Target) -> Fault:
        """Return the next fault of an operation, or one of kind ``none``, and count one request against it."""
        with self._lock:
            place, fault = next(((n, each) for n, each in enumerate(self._faults) if each.on == target), (0, NO_FAULT))
            if fault is not NO_FAULT and not fault.persistent:
                left = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                self._faults[place : place + 1] = left
        return fault

    def spend(self, amount: float) -> None:
        """Deduct credits that no request cost, as another user of the account would.

        :param amount: credits, of which at most what there is is deducted; a negative amount is added.
        """
        with self._lock:
            if not self.post_paid:
                self._balance -= min(Decimal(str(amount)), self._balance)

    def issue_token(self) -> dict[str, Any]:
        """Issue a new token, and return the response body that carries it."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(token)
        return {"token": token, "schema": "JWT", "expiresInMinutes": TOKEN_MINUTES}

    def check_token(self, token: str) -> None:
        """Raise unless a token is known.

        :raises RefusalError: 401.
        """
        if token not in self._tokens:
            raise RefusalError(401, ("AuthenticationToken.Invalid", "the bearer token is missing or wrong"))

    def accept(self, request: SendRequest, number: int) -> dict[str, Any]:
        """Accept a send request as a whole. On return, the witness holds its messages.

        :param number: the request's number.
        :returns: the response's body; in test mode, none is accepted.
        :raises RefusalError: 403, ``InsufficientCredits``; no message is accepted then.
        """
        priced = PricedMessages(request.messages, self.opted_out)
        with self._lock:
            event_id = next(self._event_ids)
            if (request.send_options or {}).get("TestMode"):
                return priced.body(event_id, self._reported())
            cost = Decimal(0) if self.post_paid else priced.cost
            if cost > self._balance:
                raise RefusalError(403, ("InsufficientCredits", "the balance does not cover the request"))
            at = datetime.now(timezone.utc)
            accepted = [
                AcceptedMessage(event_id, number, index, destination, content, request.kind, parts, at)
                for index, destination, content, parts in priced.sendable
            ]
            self._witness.writelines(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in accepted)
            self._witness.flush()  # the lines outlive a killed sandbox
            self._balance -= cost
            self._accepted += accepted
            return priced.body(event_id, self._reported())

    def close(self) -> None:
        """Close the witness. The memory can still be read."""
        self._witness.close()

    def _reported(self) -> Decimal:
        return POST_PAID_BALANCE if self.post_paid else self._balance
