"""The body of a send request, checked strictly: any key or form outside the contract is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

from airflow_provider_sms.sandbox.config import DESTINATION
from airflow_provider_sms.sandbox.errors import FORMAT, REQUIRED, TYPE, RefusalError, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Kind = Literal["bulk", "group"]

MAX_MESSAGES = 100
"""Messages in one request, at most, by the service's contract."""
OPTION_LIMITS = {"SenderId": 11, "CampaignName": 100, "CostCentre": 100}
"""Maximum characters of each text in ``SendOptions``, by the service's contract."""
CUSTOMER_ID_LIMIT = 100
"""Maximum characters of ``CustomerId``, by the service's contract."""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A well-formed send request.

    :param kind: ``bulk`` or ``group``.
    :param messages: pairs of destination and text, in request order.
    :param send_options: ``SendOptions`` as received; None when the request had none.
    """

    kind: Kind
    messages: tuple[tuple[str, str], ...] = field(repr=False)
    send_options: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def test_mode(self) -> bool:
        """Whether the request asks for a response only: nothing is sent, nothing is charged."""
        return bool(self.send_options and self.send_options.get("TestMode"))


def parse_bulk_body(raw: bytes) -> SendRequest:
    """Return the send request in the body of ``bulkmessages``.

    :param raw: the body as received.
    :raises RefusalError: 400, which names every malformed message by its index.
    """
    body = _body(raw, {"Messages"})
    messages = body["Messages"]
    if not isinstance(messages, list):
        raise bad_request(TYPE, "Messages must be a list")
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise bad_request(FORMAT, f"Messages must hold 1 to {MAX_MESSAGES} entries, not {len(messages)}")
    errors = [error for index, message in enumerate(messages) for error in _message_errors(index, message)]
    if errors:
        raise RefusalError(400, *errors)
    pairs = tuple((message["Destination"], message["Content"]) for message in messages)
    return SendRequest("bulk", pairs, _send_options(body))


def parse_group_body(raw: bytes, groups: Mapping[str, Sequence[str]]) -> SendRequest:
    """Return the send request in the body of ``groupmessages``: one message to each member of each group, in order.

    :param raw: the body as received.
    :param groups: the members of each known group.
    :raises RefusalError: 400; with ``EntityNotFound.Group`` for an unknown group.
    """
    body = _body(raw, {"Message", "Groups"})
    text, names = body["Message"], body["Groups"]
    if not isinstance(text, str):
        raise bad_request(TYPE, "Message must be a string")
    if not text:
        raise bad_request(FORMAT, "Message must not be empty")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise bad_request(TYPE, "Groups must be a list of strings")
    if not names:
        raise bad_request(FORMAT, "Groups must name at least one group")
    unknown = [index for index, name in enumerate(names) if name not in groups]
    if unknown:
        raise RefusalError(
            400, *(("EntityNotFound.Group", f"Groups[{index}] is not a known group") for index in unknown)
        )
    pairs = tuple((number, text) for name in names for number in groups[name])
    return SendRequest("group", pairs, _send_options(body))


def _body(raw: bytes, required: set[str]) -> dict[str, Any]:
    try:
        body = orjson.loads(raw)
    except ValueError:
        raise bad_request(FORMAT, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise bad_request(TYPE, "the body must be an object")
    missing = sorted(required - body.keys())
    if missing:
        raise RefusalError(400, *((REQUIRED, f"{name} is missing") for name in missing))
    if body.keys() - required - {"SendOptions"}:
        allowed = ", ".join(sorted(required))
        raise bad_request(FORMAT, f"the body has unknown keys: only {allowed} and SendOptions are allowed")
    return body


def _message_errors(index: int, message: Any) -> Iterator[tuple[str, str]]:
    where = f"Messages[{index}]"
    if not isinstance(message, dict):
        yield TYPE, f"{where} must be an object"
        return
    for name in ("Content", "Destination"):
        if name not in message:
            yield REQUIRED, f"{where}.{name} is missing"
        elif not isinstance(message[name], str):
            yield TYPE, f"{where}.{name} must be a string"
    if message.get("Content") == "":
        yield FORMAT, f"{where}.Content must not be empty"
    destination = message.get("Destination")
    if isinstance(destination, str) and not DESTINATION.fullmatch(destination):
        yield FORMAT, f"{where}.Destination must be 7 to 15 digits without a leading zero"
    if "CustomerId" in message:
        yield from _limit_errors(f"{where}.CustomerId", message["CustomerId"], CUSTOMER_ID_LIMIT)
    if message.keys() - {"Content", "Destination", "CustomerId"}:
        yield FORMAT, f"{where} has unknown keys: only Content, Destination and CustomerId are allowed"


def _send_options(body: dict[str, Any]) -> dict[str, Any] | None:
    if "SendOptions" not in body:
        return None
    options = body["SendOptions"]
    if not isinstance(options, dict):
        raise bad_request(TYPE, "SendOptions must be an object")
    errors = [
        error
        for name, limit in OPTION_LIMITS.items()
        if name in options
        for error in _limit_errors(f"SendOptions.{name}", options[name], limit)
    ]
    if not isinstance(options.get("TestMode", False), bool):
        errors.append((TYPE, "SendOptions.TestMode must be true or false"))
    if errors:
        raise RefusalError(400, *errors)
    return options


def _limit_errors(where: str, value: Any, limit: int) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str):
        yield TYPE, f"{where} must be a string"
    elif len(value) > limit:
        yield FORMAT, f"{where} must have at most {limit} characters"
