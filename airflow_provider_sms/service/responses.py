"""Responses with status 200 as values, exact to the last digit.

A body that does not meet the contract is an unknown outcome: nothing in it says whether the request was processed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_sms.exceptions import UnknownOutcomeError

if TYPE_CHECKING:
    from collections.abc import Mapping

Billing = Literal["auto", "prepaid", "postpaid"]

POST_PAID_BALANCE = 1_000_000
"""The balance that the service states for every post-paid account, in credits."""

_INT64 = 2**63

_EXACT_BELOW = 2**53
"""A double tells integers apart up to here."""

_MAX_EXPONENT = 100
"""The largest exponent of an amount, and its most decimals: written without an exponent, ``1e-800000000`` takes a
gigabyte."""

MAX_COUNTER = 999_999
"""The largest counter of an error report, in messages: no request has as many, and a phone number has more digits."""

_KNOWN_COUNTERS = frozenset({"nonetwork", "duplicates", "optedouts"})


@dataclass(frozen=True, slots=True)
class NetworkCost:
    """The messages of a request that went to one network.

    :param network: its name, free text: ``Local`` is the only one ever seen. Empty where the service states none.
    :param cost: in credits.
    :param quantity: messages, from 0.
    """

    network: str
    cost: Decimal
    quantity: int


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """Messages that the service did not take within a request that it accepted.

    A counter above :data:`MAX_COUNTER` counts no messages, and is left out.

    :param no_network: messages that no network takes, from 0.
    :param duplicates: messages left out as duplicates, from 0.
    :param opted_outs: messages to people who opted out, from 0.
    :param faults: the service's words on each faulty message, as received; they may hold phone numbers. Empty where it
        has none: the shape of a fault is not specified.
    :param other: further counters, from 0, by their name as received, for example ``NoContents``.
    """

    no_network: int = 0
    duplicates: int = 0
    opted_outs: int = 0
    faults: tuple[str, ...] = field(default=(), repr=False)
    other: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SendResponse:
    """The response to a request that the service accepted, in whole or in part.

    :param cost: of the request, in credits.
    :param remaining_balance: credits left after it; 1000000 on a post-paid account.
    :param event_id: identifier of the send event, 64 bits.
    :param sample: sample of the text as sent: message content, so personal data.
    :param messages: messages of the request that were taken, from 0; can be fewer than were submitted.
    :param parts: SMS parts of those messages, from 0.
    :param cost_breakdown: cost per network.
    :param error_report: why messages were not taken.
    :param body: the content as received, which holds all of the above.
    """

    cost: Decimal
    remaining_balance: Decimal
    event_id: int
    sample: str = field(repr=False)
    messages: int
    parts: int
    cost_breakdown: tuple[NetworkCost, ...]
    error_report: ErrorReport
    body: bytes = field(repr=False)

    @property
    def raw(self) -> dict[str, Any]:
        """The JSON as received, with plain numbers."""
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass(frozen=True, slots=True)
class Balance:
    """The credit of the account.

    :param amount: credits.
    :param post_paid: whether the account is billed afterwards, so that ``amount`` tells nothing.
    """

    amount: Decimal
    post_paid: bool

    def covers(self, cost: Decimal | int) -> bool:
        """Return whether a cost, in credits, can be paid."""
        return self.post_paid or self.amount >= cost


def parse_send_response(body: bytes) -> SendResponse:
    """Return the response to a send.

    Keys match in any case and unknown ones are ignored; ``Sample``, ``CostBreakDown`` and ``ErrorReport`` may
    be missing or null. Counts and the event id may be written as floats, such as ``2.0``.

    :param body: content of a response with status 200.
    :raises UnknownOutcomeError: it does not meet the contract. The error names the field and quotes nothing.
    """
    fields = _unwrapped(_object(body))
    return SendResponse(
        cost=_amount(fields, "Cost"),
        remaining_balance=_amount(fields, "RemainingBalance"),
        event_id=_event_id(fields),
        sample=_text(fields, "Sample"),
        messages=_count(fields, "Messages"),
        parts=_count(fields, "Parts"),
        cost_breakdown=tuple(_network_cost(entry) for entry in _list(fields, "CostBreakDown")),
        error_report=_error_report(_get(fields, "ErrorReport", {})),
        body=body,
    )


def parse_balance(body: bytes, billing: Billing) -> Balance:
    """Return the response to ``Balance``.

    :param body: content of a response with status 200.
    :param billing: ``auto``: a balance of exactly 1000000 is a post-paid account's; ``prepaid`` and
        ``postpaid`` set it.
    :raises UnknownOutcomeError: it does not meet the contract.
    """
    amount = _amount(_fields(_object(body)), "Balance")
    return Balance(amount, amount == POST_PAID_BALANCE if billing == "auto" else billing == "postpaid")


def is_counter(value: object) -> bool:
    """Return whether a value of an error report counts messages; a larger integer may be a phone number."""
    count = _whole(value)
    return isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_COUNTER


def _not_of_the_contract(what: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(f"the response does not meet the contract: {what}", status=HTTPStatus.OK.value)


def _object(body: bytes) -> dict[str, Any]:
    """Return a JSON object, with decimals for floats, which are exact."""
    try:
        document = json.loads(body, parse_float=_finite, parse_constant=_finite)
    except (ValueError, ArithmeticError, RecursionError):
        # "from None": the error from the parser holds the whole body.
        raise _not_of_the_contract("it is not JSON") from None
    if not isinstance(document, dict):
        raise _not_of_the_contract("it is not a JSON object")
    return document


def _finite(text: str) -> Decimal:
    """Return a number; NaN and infinity are none (RFC 8259 section 6), nor is one too large for a float."""
    if not math.isfinite(float(text)):
        raise ValueError("not a finite number")
    return Decimal(text)


def _lowered(document: dict[str, Any]) -> dict[str, Any]:
    fields = {key.lower(): value for key, value in document.items()}
    if len(fields) < len(document):
        raise _not_of_the_contract("a field occurs twice, in upper and in lower case")
    return fields


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a response, which may repeat its status.

    :raises UnknownOutcomeError: it says another status than the one it came with, so one of the two is wrong.
    """
    fields = _lowered(document)
    if str(_whole(_get(fields, "statusCode", HTTPStatus.OK.value))) != str(HTTPStatus.OK.value):
        raise _not_of_the_contract(f"its status is {HTTPStatus.OK.value}, and its statusCode is not")
    return fields


def _unwrapped(document: dict[str, Any]) -> dict[str, Any]:
    """Return the send response, also from the newer ``{"statusCode", "sendResponse": {…}, "errors": […]}``."""
    fields = _fields(document)
    if "sendresponse" not in fields:
        return fields
    if not isinstance(fields["sendresponse"], dict):
        raise _not_of_the_contract("sendResponse is not an object")
    return _lowered(fields["sendresponse"])


def _get(fields: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a field; null counts as missing."""
    value = fields.get(name.lower())
    return default if value is None else value


def _amount(fields: dict[str, Any], name: str, default: int | None = None) -> Decimal:
    value = _get(fields, name, default)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not -_INT64 < value < _INT64:
        raise _not_an_amount(name)
    amount = Decimal(value)
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MAX_EXPONENT:
        raise _not_an_amount(name)
    return amount


def _not_an_amount(name: str) -> UnknownOutcomeError:
    return _not_of_the_contract(f"{name} is missing or not an amount")


def _whole(value: Any) -> Any:
    """Return the integer that a number stands for, such as ``2.0``; anything else, or one beyond doubles, as it is."""
    if isinstance(value, Decimal) and -_EXACT_BELOW < value < _EXACT_BELOW and value == int(value):
        return int(value)
    return value


def _count(fields: dict[str, Any], name: str, default: int | None = None) -> int:
    value = _whole(_get(fields, name, default))
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _INT64:
        raise _not_of_the_contract(f"{name} is missing or not a count")
    return value


def _event_id(fields: dict[str, Any]) -> int:
    value = _whole(_get(fields, "EventId"))
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(_INT64)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        raise _not_of_the_contract("EventId is missing or not a 64-bit integer")
    return value


def _text(fields: dict[str, Any], name: str) -> str:
    value = _get(fields, name, "")
    if not isinstance(value, str):
        raise _not_of_the_contract(f"{name} is not a string")
    return value


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = _get(fields, name, [])
    if not isinstance(value, list):
        raise _not_of_the_contract(f"{name} is not a list")
    return value


def _network_cost(entry: Any) -> NetworkCost:
    if not isinstance(entry, dict):
        raise _not_of_the_contract("an entry of CostBreakDown is not an object")
    fields = _lowered(entry)
    return NetworkCost(_text(fields, "Network"), _amount(fields, "Cost", 0), _count(fields, "Quantity", 0))


def _error_report(report: Any) -> ErrorReport:
    if not isinstance(report, dict):
        raise _not_of_the_contract("ErrorReport is not an object")
    fields = _lowered(report)
    return ErrorReport(
        no_network=_counter(fields, "NoNetwork"),
        duplicates=_counter(fields, "Duplicates"),
        opted_outs=_counter(fields, "OptedOuts"),
        faults=tuple(map(_fault, _list(fields, "Faults"))),
        other={
            key: _whole(value)
            for key, value in report.items()
            if key.lower() not in _KNOWN_COUNTERS and is_counter(value)
        },
    )


def _fault(fault: Any) -> str:
    if isinstance(fault, dict):  # of any shape: it makes no response unusable
        fault = next((words for key, words in fault.items() if key.lower() == "errormessage"), "")
    return fault if isinstance(fault, str) else ""


def _counter(fields: dict[str, Any], name: str) -> int:
    count = _count(fields, name, 0)
    return count if is_counter(count) else 0
