"""Inputs: the arguments of callers, checked and written in the service's form before anything is sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.message import Message, Outgoing

if TYPE_CHECKING:
    from collections.abc import Sequence

_REQUIRED_KEYS = frozenset({"Content", "Destination"})
_KEYS = _REQUIRED_KEYS | {"CustomerId"}


def checked_url(url: str, name: str) -> str:
    """Return a base URL with its scheme, without a trailing slash.

    :param url: as a user wrote it.
    :param name: the field in which the user wrote it, for the error.
    :raises InputError: it is not a usable URL. The error does not quote it, since it may hold a password.
    """
    url = url.strip()
    if not url:
        raise InputError(f"{name} is missing: the base URL, for example https://rest.example.com/v1")
    if "://" not in url:
        url = f"https://{url}"
    import requests  # only where a client follows, which needs it as well
    from urllib3.util import parse_url

    try:
        parts = urlsplit(url)
        # An empty port is the colon of a scheme with one slash: http:/example.com would be the host http.
        usable = bool(parts.hostname) and parts.port != 0 and not parts.netloc.endswith(":")
        # As a request does it, which could not go to a host with an empty label, say.
        (parse_url(str(requests.Request("GET", url).prepare().url)).host or "").encode("idna")
    except ValueError:
        usable = False
    if not usable or any(c.isspace() for c in url):
        raise InputError(f"{name} is not a URL: write it like https://rest.example.com/v1")
    if parts.scheme not in ("http", "https"):
        raise InputError(f"{name} must begin with https:// or http://, not with {parts.scheme}://")
    if parts.username is not None or "?" in url or "#" in url:
        raise InputError(f"{name} must be a URL without user name, query and fragment")
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: ``localhost``, or an address of 127.0.0.0/8 or ``::1``.

    No other name is, whatever it resolves to: which machine answers to it is decided elsewhere, and may change.

    :param host: in lower case, without port or brackets.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bulk_request(messages: Sequence[Any] | Outgoing, send_options: Mapping[str, Any] | None) -> tuple[bytes, list[str]]:
    """Return a request to several people as JSON, and its texts.

    The JSON object of each message is discarded here: kept until the response, the objects of all requests in flight
    would keep Python's garbage collector busy.

    :param messages: messages, or mappings with the keys of the service.
    :raises InputError: a message is none, the options are not a mapping, or JSON cannot express a value.
    """
    entries: list[dict[str, Any]]
    if isinstance(messages, Outgoing):
        if None in messages.destinations:
            raise InputError("a message to a group has no number")
        pairs = zip(messages.contents, messages.destinations, strict=True)
        entries = [{"Content": content, "Destination": destination} for content, destination in pairs]
    else:
        entries = [_message_entry(position, message) for position, message in enumerate(messages, 1)]
    return request_body({"Messages": entries}, send_options), [entry["Content"] for entry in entries]


def _message_entry(position: int, message: Message | Mapping[str, str]) -> dict[str, str]:
    """Return the JSON object of one message.

    :raises InputError: it is none. The error names the position, and quotes nothing.
    """
    if isinstance(message, Message):
        entry = {"Content": message.content, "Destination": message.destination}
    elif isinstance(message, Mapping):
        entry = dict(message)
        if not entry.keys() >= _REQUIRED_KEYS or not entry.keys() <= _KEYS:
            raise InputError(f"message {position} must have Content and Destination, and may have CustomerId")
    else:
        raise InputError(f"message {position} is neither a Message nor a mapping")
    if not all(isinstance(value, str) for value in entry.values()):
        raise InputError(f"message {position}: its values must be texts")
    return entry


def request_body(request: dict[str, Any], send_options: Mapping[str, Any] | None) -> bytes:
    """Return a request as JSON.

    :param request: its fields; the options are added to them, unless they are empty.
    :raises InputError: the options are not a mapping, or JSON cannot express a value. The error quotes none of it.
    """
    if send_options is not None and not isinstance(send_options, Mapping):
        raise InputError("send_options must be a dict of the service's Send Options, or None")
    if send_options:
        request["SendOptions"] = dict(send_options)
    try:
        return orjson.dumps(request)
    except orjson.JSONEncodeError as error:
        # The error's own words name a type, never a value.
        raise InputError(f"the request cannot be written as JSON: {error}") from None
