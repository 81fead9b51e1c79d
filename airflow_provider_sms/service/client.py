"""The client: the service's three operations, one request each."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from airflow_provider_sms.exceptions import InputError, UnknownOutcomeError
from airflow_provider_sms.messages.arguments import read_groups
from airflow_provider_sms.messages.message import MAX_MESSAGES, Message, Outgoing
from airflow_provider_sms.service.authentication import Tokens
from airflow_provider_sms.service.elapsed import elapsed
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.responses import Balance, SendResponse, parse_balance, parse_send_response
from airflow_provider_sms.service.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from airflow_provider_sms.service.settings import Settings

_REQUIRED_KEYS = frozenset({"Content", "Destination"})
_KEYS = _REQUIRED_KEYS | {"CustomerId"}


class SmsClient:
    """The messaging service, for any number of threads.

    Each call makes one request and never repeats it, with one exception: after a 401, which means that nothing was
    processed, a client with credentials fetches a new token and makes the request once more.

    :param pool_size: connections kept open: the number of threads that send at once.
    :param clock: seconds from any start, by a clock that cannot be set and counts while the machine sleeps.
    """

    def __init__(self, settings: Settings, *, pool_size: int = 1, clock: Callable[[], float] = elapsed) -> None:
        self._settings = settings
        self._transport = Transport(settings, pool_size, clock)
        self._tokens = Tokens(settings, self._transport, clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    @property
    def longest_call(self) -> float:
        """Seconds within which any call ends, so that a claim's deadline can be set by it.

        One request with a fixed token. With credentials up to four: a token, the request, another token after a 401,
        and the request once more.
        """
        return (self._settings.connect_timeout + self._settings.timeout) * (4 if self._tokens.fetches else 1)

    def send_bulk(
        self,
        messages: Sequence[Message | Mapping[str, str]] | Outgoing,
        *,
        send_options: Mapping[str, Any] | None = None,
    ) -> SendResponse:
        """Send a text each to up to 100 people.

        :param messages: 1 to 100 messages, or mappings with the keys ``Content``,
            ``Destination`` and, optionally, ``CustomerId``.
        :param send_options: passed through as given; left out if None or empty.
        :returns: the response; its ``messages``, those that the service took, can be fewer than were posted.
        :raises InputError: the messages are too many, too few or malformed; nothing was sent.
        :raises ServiceError: one of its subclasses; each says whether the request may have been processed.
        """
        if not isinstance(messages, (Sequence, Outgoing)) or isinstance(messages, (str, bytes)):
            raise InputError(f"messages must be a list of messages, not {type(messages).__name__}")
        if not 1 <= len(messages) <= MAX_MESSAGES:
            raise InputError(f"one request takes 1 to {MAX_MESSAGES} messages")
        body, texts = _bulk_body(messages, send_options)
        response = parse_send_response(self._post("bulkmessages", body, hidden=texts))
        if response.messages > len(messages):
            raise UnknownOutcomeError("the response counts more messages than were posted: it is another request's")
        return response

    def send_group(
        self, message: str, groups: Sequence[str] | str, *, send_options: Mapping[str, Any] | None = None
    ) -> SendResponse:
        """Send a text to everyone in groups that the service knows.

        :param message: the text.
        :param groups: one name, or a list of names, at least one.
        :param send_options: passed through as given; left out if None or empty.
        :raises InputError: there is no text or no group, or a name could miss its group; nothing was sent.
        :raises ServiceError: one of its subclasses; each says whether the request may have been processed.
        """
        if not isinstance(message, str) or not message:
            raise InputError("message must be a text, and not empty")
        body = _body({"Message": message, "Groups": read_groups(groups)}, send_options)
        return parse_send_response(self._post("groupmessages", body, hidden=(message,)))

    def get_balance(self) -> Balance:
        """Return the account's balance; the request is free.

        :raises ServiceError: one of its subclasses; an unknown outcome only means that no usable response came.
        """
        url = f"{self._settings.balance_url or self._settings.base_url}/Balance"
        return parse_balance(self._request("GET", url), self._settings.billing)

    def _post(self, operation: str, body: bytes, hidden: Iterable[str]) -> bytes:
        return self._request("POST", f"{self._settings.base_url}/{operation}", body, hidden)

    def _request(self, method: str, url: str, body: bytes | None = None, hidden: Iterable[str] = ()) -> bytes:
        """Make a request, once more with another token after a 401, and return the content of a 200.

        :param hidden: texts that the service may repeat in an error, where they must not show.
        """
        first = token = self._tokens.current()
        response = self._transport.exchange(method, url, f"Bearer {token.value}", body)
        if response.status == HTTPStatus.UNAUTHORIZED and self._tokens.fetches:
            token = self._tokens.renewed(first)
            response = self._transport.exchange(method, url, f"Bearer {token.value}", body)
        if response.status == HTTPStatus.OK:
            return response.body
        secrets = (first.value, token.value, *self._tokens.secrets)
        raise error_for(response, secrets=secrets, texts=hidden, now=time.time())


def _bulk_body(
    messages: Sequence[Message | Mapping[str, str]] | Outgoing, send_options: Mapping[str, Any] | None
) -> tuple[bytes, list[str]]:
    """Return a request to several people as JSON, and its texts.

    The JSON object of each message is discarded here: kept until the response, the objects of all requests in flight
    would keep Python's garbage collector busy.
    """
    entries: list[dict[str, Any]]
    if isinstance(messages, Outgoing):
        pairs = zip(messages.contents, messages.destinations, strict=True)
        entries = [{"Content": content, "Destination": destination} for content, destination in pairs]
    else:
        entries = [_entry(position, message) for position, message in enumerate(messages, 1)]
    return _body({"Messages": entries}, send_options), [entry["Content"] for entry in entries]


def _entry(position: int, message: Message | Mapping[str, str]) -> dict[str, str]:
    """Return the JSON object of one message; an error names its position, and quotes nothing."""
    if isinstance(message, Message):
        message = {"Content": message.content, "Destination": message.destination}
    if (
        not isinstance(message, Mapping)
        or not _REQUIRED_KEYS <= message.keys() <= _KEYS
        or not all(isinstance(value, str) for value in message.values())
    ):
        raise InputError(
            f"message {position} must be a Message, or a mapping with Content, Destination and, optionally, "
            "CustomerId; all of them are texts"
        )
    return dict(message)


def _body(request: dict[str, Any], send_options: Mapping[str, Any] | None) -> bytes:
    """Return a request as JSON, with the options unless they are empty; an error quotes none of it."""
    if send_options is not None and not isinstance(send_options, Mapping):
        raise InputError("send_options must be a dict of the service's Send Options, or None")
    if send_options:
        request["SendOptions"] = dict(send_options)
    try:
        return orjson.dumps(request)
    except orjson.JSONEncodeError as error:
        # The error's own words name a type, never a value.
        raise InputError(f"the request cannot be written as JSON: {error}") from None
