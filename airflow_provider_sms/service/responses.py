"""Responses with status 200 as values, exact to the last digit.

A body that does not meet the contract is an unknown outcome: nothing in it says whether the request was processed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the types of the fields
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError

from airflow_provider_sms.exceptions import UnknownOutcomeError

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

_WRITTEN_INTEGER = re.compile("-?[0-9]{1,19}")

_LOWER = ConfigDict(alias_generator=lambda name: name.replace("_", ""))
"""The keys of the service, in small letters, are the names of our fields."""


def _not_of_the_contract(what: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(f"the response does not meet the contract: {what}", status=HTTPStatus.OK.value)


def _lowered(document: Any) -> Any:
    """Return the fields of an object by their names in small letters; null counts as missing."""
    if not isinstance(document, dict):
        return document
    fields = {key.lower(): value for key, value in document.items()}
    if len(fields) < len(document):
        raise _not_of_the_contract("a field occurs twice, in upper and in lower case")
    return {name: value for name, value in fields.items() if value is not None}


def _whole(value: Any) -> Any:
    """Return the integer that a number stands for, such as ``2.0``; anything else, or one beyond doubles, as it is."""
    if isinstance(value, Decimal) and -_EXACT_BELOW < value < _EXACT_BELOW and value == int(value):
        return int(value)
    return value


def _amount(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not -_INT64 < value < _INT64:
        raise ValueError("not an amount")
    amount = Decimal(value)
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MAX_EXPONENT:
        raise ValueError("not an amount")
    return amount


def _event_id(value: Any) -> Any:
    if isinstance(value, str) and _WRITTEN_INTEGER.fullmatch(value):
        return int(value)
    return _whole(value)


def _words(fault: Any) -> str:
    if isinstance(fault, dict):  # of any shape: it makes no response unusable
        fault = next((words for key, words in fault.items() if key.lower() == "errormessage"), "")
    return fault if isinstance(fault, str) else ""


def _is_counter(value: Any) -> bool:
    """Return whether a value of an error report counts messages; a larger integer may be a phone number."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNTER


def _report(report: Any) -> Any:
    if not isinstance(report, dict):
        return report
    further = {key: _whole(value) for key, value in report.items() if key.lower() not in _KNOWN_COUNTERS}
    return {**_lowered(report), "other": {key: value for key, value in further.items() if _is_counter(value)}}


Amount: TypeAlias = Annotated[Decimal, PlainValidator(_amount)]
Count: TypeAlias = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=0, lt=_INT64)]
Counter: TypeAlias = Annotated[Count, AfterValidator(lambda count: count if _is_counter(count) else 0)]
EventId: TypeAlias = Annotated[int, BeforeValidator(_event_id), Field(strict=True, ge=-_INT64, lt=_INT64)]
Words: TypeAlias = Annotated[str, BeforeValidator(_words)]


@dataclass(frozen=True, slots=True)
class NetworkCost:
    """The messages of a request that went to one network.

    :param network: its name, free text: ``Local`` is the only one ever seen. Empty where the service states none.
    :param cost: in credits.
    :param quantity: messages, from 0.
    """

    __pydantic_config__ = _LOWER

    network: str = ""
    cost: Amount = Decimal(0)
    quantity: Count = 0


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

    __pydantic_config__ = _LOWER

    no_network: Counter = 0
    duplicates: Counter = 0
    opted_outs: Counter = 0
    faults: tuple[Words, ...] = field(default=(), repr=False)
    other: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
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

    __pydantic_config__ = _LOWER

    cost: Amount
    remaining_balance: Amount
    event_id: EventId
    sample: str = field(default="", repr=False)
    messages: Count
    parts: Count
    cost_breakdown: tuple[Annotated[NetworkCost, BeforeValidator(_lowered)], ...] = ()
    error_report: Annotated[ErrorReport, BeforeValidator(_report)] = ErrorReport()
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


@cache
def _adapter() -> TypeAdapter[SendResponse]:
    return TypeAdapter(SendResponse)  # on first use: it takes longer than all the rest of this module


def parse_send_response(body: bytes) -> SendResponse:
    """Return the response to a send.

    Keys match in any case and unknown ones are ignored; ``Sample``, ``CostBreakDown`` and ``ErrorReport`` may
    be missing or null. Counts and the event id may be written as floats, such as ``2.0``.

    :param body: content of a response with status 200.
    :raises UnknownOutcomeError: it does not meet the contract. The error names the field and quotes nothing.
    """
    try:
        return _adapter().validate_python({**_unwrapped(_object(body)), "body": body})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _not_of_the_contract(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def parse_balance(body: bytes, billing: Billing) -> Balance:
    """Return the response to ``Balance``.

    :param body: content of a response with status 200.
    :param billing: ``auto``: a balance of exactly 1000000 is a post-paid account's; ``prepaid`` and
        ``postpaid`` set it.
    :raises UnknownOutcomeError: it does not meet the contract.
    """
    try:
        amount = _amount(_fields(_object(body)).get("balance"))
    except ValueError:
        raise _not_of_the_contract("balance is missing or not an amount") from None
    return Balance(amount, amount == POST_PAID_BALANCE if billing == "auto" else billing == "postpaid")


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


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a response, which may repeat its status.

    :raises UnknownOutcomeError: it says another status than the one it came with, so one of the two is wrong.
    """
    fields: dict[str, Any] = _lowered(document)
    if str(_whole(fields.get("statuscode", HTTPStatus.OK.value))) != str(HTTPStatus.OK.value):
        raise _not_of_the_contract(f"its status is {HTTPStatus.OK.value}, and its statusCode is not")
    return fields


def _unwrapped(document: dict[str, Any]) -> dict[str, Any]:
    """Return the send response, also from the newer ``{"statusCode", "sendResponse": {…}, "errors": […]}``."""
    fields = _fields(document)
    sent: dict[str, Any] = _lowered(fields.get("sendresponse", fields))
    if not isinstance(sent, dict):
        raise _not_of_the_contract("sendResponse is not an object")
    return sent
