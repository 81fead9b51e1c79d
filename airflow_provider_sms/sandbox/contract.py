"""The service's contract: from the body of a request to messages with their prices, and to the body of the response."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_sms.messages.parts import count_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Sequence

    from pydantic_core import ErrorDetails

Kind = Literal["bulk", "group"]

REQUIRED, TYPE, FORMAT = "RequiredParameter.Missing", "InvalidParameter.Type", "InvalidParameter.Format"
DESTINATION = re.compile(r"[1-9][0-9]{6,14}")  # ITU-T E.164: country code first, at most 15 digits

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


def group_members(name: str) -> list[str]:
    """Return the made-up numbers of a group, always the same ones for a name."""
    start = zlib.crc32(name.encode()) % 1000
    return [f"2782{start:03}{member:04}" for member in range(1, 6)]


def parse_send_request(kind: Kind, raw: bytes, groups: Collection[str]) -> SendRequest:
    """Return the send request in a body: for groups, the text to each member of each group, in order.

    :param groups: the known groups.
    :raises RefusalError: 400, which names each malformed field; of one that the contract does not have, its parent.
    """
    body = parse_json(raw)
    try:
        if kind == "bulk":
            pairs = [(message.Destination, message.Content) for message in _BulkBody.model_validate(body).Messages]
        else:
            group = _GroupBody.model_validate(body)
            unknown = [index for index, name in enumerate(group.Groups) if name not in groups]
            if unknown:
                errors = (("EntityNotFound.Group", f"Groups[{index}] is not a known group") for index in unknown)
                raise RefusalError(400, *errors)
            pairs = [(number, group.Message) for name in group.Groups for number in group_members(name)]
    except ValidationError as error:
        raise refusal(error) from None
    return SendRequest(kind, pairs, body.get("SendOptions"))


class _Fields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Message(_Fields):
    Content: str = Field(min_length=1)
    Destination: str = Field(pattern=rf"^{DESTINATION.pattern}$")
    CustomerId: str = Field(default="", max_length=100)


class _SendOptions(_Fields, extra="allow"):
    SenderId: str = Field(default="", max_length=11)
    CampaignName: str = Field(default="", max_length=100)
    CostCentre: str = Field(default="", max_length=100)
    TestMode: bool = False


class _BulkBody(_Fields):
    Messages: list[_Message] = Field(min_length=1, max_length=100)
    SendOptions: _SendOptions = _SendOptions()


class _GroupBody(_Fields):
    Message: str = Field(min_length=1)
    Groups: list[str] = Field(min_length=1)
    SendOptions: _SendOptions = _SendOptions()


def refusal(error: ValidationError) -> RefusalError:
    """Return the refusal of a body with malformed fields."""
    return RefusalError(400, *map(_told, error.errors(include_url=False, include_input=False)))


def _told(error: ErrorDetails) -> tuple[str, str]:
    """Return the service's error code for a malformed field, and words that name it, without its value."""
    kind, place = error["type"], error["loc"]
    if kind == "extra_forbidden":  # its name may be anything
        place = place[:-1]
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".") or "the body"
    code = REQUIRED if kind == "missing" else TYPE if kind.endswith("_type") else FORMAT
    return code, f"{field}: {error['msg']}"
