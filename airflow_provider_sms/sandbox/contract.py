"""The service's contract: from the body of a request to messages with their prices, and to the body of the response."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from airflow_provider_sms.messages.parts import count_parts

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

Kind = Literal["bulk", "group"]

REQUIRED, TYPE, FORMAT = "RequiredParameter.Missing", "InvalidParameter.Type", "InvalidParameter.Format"
MAX_MESSAGES = 100
DESTINATION = re.compile(r"[1-9][0-9]{6,14}")  # ITU-T E.164: country code first, at most 15 digits
OPTION_LIMITS = {"SenderId": 11, "CampaignName": 100, "CostCentre": 100}
"""Maximum characters of the texts in ``SendOptions``."""
CUSTOMER_ID_LIMIT = 100


NETWORKS = {"2799": None, "276": "Acacia", "277": "Baobab", "27": "Local", "": "International"}
"""Made-up networks by the first digits of a number; the first match wins. None serves the numbers from 2799."""
PRICES = {"Acacia": Decimal("0.35"), "Baobab": Decimal("0.8"), "Local": Decimal(1), "International": Decimal("2.4")}
"""Credits for an SMS part."""


class RefusalError(Exception):
    """The request is refused, and none of its messages is accepted.

    :param status: HTTP status of the response.
    :param errors: pairs of error code and message, at least one, without numbers, texts or tokens.
    """

    def __init__(self, status: int, *errors: tuple[str, str]) -> None:
        super().__init__(f"{status}: {errors[0][0]}")
        self.status = status
        self.errors = errors

    def body(self) -> dict[str, Any]:
        """Return the service's error body."""
        errors = [{"errorCode": code, "errorMessage": message} for code, message in self.errors]
        return {"statusCode": self.status, "errors": errors}


class SendRequest(NamedTuple):
    """A well-formed send request: pairs of destination and text, and ``SendOptions`` as received."""

    kind: Kind
    messages: Sequence[tuple[str, str]]
    send_options: dict[str, Any] | None


class PricedMessages:
    """The messages of a request that can be sent, and counts of the others, each under the first reason that applies.

    ``sendable`` has position in the request, destination, text and parts.

    :param messages: pairs of destination and text.
    :param opted_out: destinations that have opted out.
    """

    def __init__(self, messages: Iterable[tuple[str, str]], opted_out: Container[str]) -> None:
        self.sendable: list[tuple[int, str, str, int]] = []
        self.duplicates = self.opted_outs = self.no_network = 0
        self._parts: Counter[str] = Counter()
        self._quantities: Counter[str] = Counter()
        seen: set[tuple[str, str]] = set()
        for index, message in enumerate(messages):
            destination, content = message
            network = next(name for digits, name in NETWORKS.items() if destination.startswith(digits))
            if message in seen:
                self.duplicates += 1
            elif destination in opted_out:
                self.opted_outs += 1
            elif network is None:
                self.no_network += 1
            else:
                parts = count_parts(content)
                self.sendable.append((index, destination, content, parts))
                self._parts[network] += parts
                self._quantities[network] += 1
            seen.add(message)

    @property
    def cost(self) -> Decimal:
        """Credits for the whole request."""
        return sum((PRICES[network] * parts for network, parts in self._parts.items()), Decimal(0))

    def body(self, event_id: int, balance: Decimal) -> dict[str, Any]:
        """Return the body of the send response.

        :param balance: credits after the request.
        """
        return {
            "Cost": json_number(self.cost),
            "RemainingBalance": json_number(balance),
            "EventId": event_id,
            "Sample": self.sendable[0][2] if self.sendable else "",
            "Messages": len(self.sendable),
            "Parts": self._parts.total(),
            "CostBreakDown": [
                {
                    "Network": network,
                    "Cost": json_number(PRICES[network] * parts),
                    "Quantity": self._quantities[network],
                }
                for network, parts in self._parts.items()
            ],
            "ErrorReport": {
                "NoNetwork": self.no_network,
                "Duplicates": self.duplicates,
                "OptedOuts": self.opted_outs,
                "Faults": [],
            },
        }


def json_number(amount: Decimal) -> int | float:
    """Return an amount of credits as a JSON number: an integer if it is whole and fits into 64 bits."""
    return int(amount) if amount == int(amount) and abs(amount) < 2**63 else float(amount)


def parse_json(raw: bytes) -> Any:
    """Return a body's JSON.

    :raises RefusalError: 400.
    """
    try:
        return orjson.loads(raw)
    except ValueError:
        raise RefusalError(400, (FORMAT, "the body is not JSON")) from None


def parse_send_request(kind: Kind, raw: bytes, groups: Mapping[str, Sequence[str]]) -> SendRequest:
    """Return the send request in a body: for groups, the text to each member of each group, in order.

    :param groups: the members of each known group.
    :raises RefusalError: 400, which names each malformed field, also one that the contract does not have.
    """
    body = parse_json(raw)
    required = {"Messages"} if kind == "bulk" else {"Message", "Groups"}
    if not isinstance(body, dict):
        raise RefusalError(400, (TYPE, "the body must be an object"))
    errors = [(REQUIRED, f"{name} is missing") for name in sorted(required - body.keys())]
    if body.keys() - required - {"SendOptions"}:
        allowed = ", ".join(sorted(required))
        errors.append((FORMAT, f"the body has unknown keys: only {allowed} and SendOptions are allowed"))
    if not errors:
        errors += _bulk_errors(body) if kind == "bulk" else _group_errors(body, groups)
        errors += _option_errors(body.get("SendOptions", {}))
    if errors:
        raise RefusalError(400, *errors)
    if kind == "bulk":
        pairs = [(message["Destination"], message["Content"]) for message in body["Messages"]]
    else:
        pairs = [(number, body["Message"]) for name in body["Groups"] for number in groups[name]]
    return SendRequest(kind, pairs, body.get("SendOptions"))


def _bulk_errors(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    messages = body["Messages"]
    if not isinstance(messages, list):
        yield TYPE, "Messages must be a list"
    elif not 1 <= len(messages) <= MAX_MESSAGES:
        yield FORMAT, f"Messages must hold 1 to {MAX_MESSAGES} entries, not {len(messages)}"
    else:
        for index, message in enumerate(messages):
            for code, error in _message_errors(message):
                yield code, f"Messages[{index}]{error}"


def _message_errors(message: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(message, dict):
        yield TYPE, " must be an object"
        return
    for name in ("Content", "Destination"):
        if name not in message:
            yield REQUIRED, f".{name} is missing"
        elif not isinstance(message[name], str):
            yield TYPE, f".{name} must be a string"
        elif name == "Content" and not message[name]:
            yield FORMAT, ".Content must not be empty"
        elif name == "Destination" and not DESTINATION.fullmatch(message[name]):
            yield FORMAT, ".Destination must be 7 to 15 digits without a leading zero"
    if len(message) > 2:  # noqa: PLR2004 - the two fields above
        yield from _limit_errors(message, {"CustomerId": CUSTOMER_ID_LIMIT})
        if message.keys() - {"Content", "Destination", "CustomerId"}:
            yield FORMAT, " has unknown keys: only Content, Destination and CustomerId are allowed"


def _group_errors(body: dict[str, Any], groups: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    text, names = body["Message"], body["Groups"]
    if not isinstance(text, str):
        yield TYPE, "Message must be a string"
    elif not text:
        yield FORMAT, "Message must not be empty"
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield TYPE, "Groups must be a list of strings"
    elif not names:
        yield FORMAT, "Groups must name at least one group"
    else:
        unknown = [index for index, name in enumerate(names) if name not in groups]
        yield from (("EntityNotFound.Group", f"Groups[{index}] is not a known group") for index in unknown)


def _option_errors(options: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(options, dict):
        yield TYPE, "SendOptions must be an object"
        return
    for code, error in _limit_errors(options, OPTION_LIMITS):
        yield code, f"SendOptions{error}"
    if not isinstance(options.get("TestMode", False), bool):
        yield TYPE, "SendOptions.TestMode must be true or false"


def _limit_errors(fields: dict[str, Any], limits: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for name, limit in limits.items():
        value = fields.get(name, "")
        if not isinstance(value, str):
            yield TYPE, f".{name} must be a string"
        elif len(value) > limit:
            yield FORMAT, f".{name} must have at most {limit} characters"
