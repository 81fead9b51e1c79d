"""The client: the service's three operations, one request each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.message import MAX_MESSAGES, Outgoing
from airflow_provider_sms.service.authentication import FetchedToken, FixedToken
from airflow_provider_sms.service.elapsed import elapsed
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.inputs import bulk_request, checked_url, request_body
from airflow_provider_sms.service.responses import (
    Balance,
    Billing,
    SendResponse,
    parse_balance,
    parse_send_response,
)
from airflow_provider_sms.service.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Self

    from airflow_provider_sms.messages.message import Message


class SmsClient:
    """The messaging service, for any number of threads.

    Each call makes one request and never repeats it, with one exception: after a 401, which means that nothing was
    processed, a client with credentials fetches a new token and makes the request once more.

    :param base_url: for example ``https://rest.example.com/v1``; ``https`` where it has no scheme. A trailing
        slash does not matter.
    :param token: the bearer token; None means that it is fetched with ``client_id`` and ``client_secret``.
    :param client_id: for ``{base_url}/Authentication``; None means that ``token`` is used.
    :param client_secret: the secret of ``client_id``.
    :param balance_url: base URL of ``Balance`` where it differs; None means ``base_url``.
    :param connect_timeout: seconds to make a connection, above 0, at most 180.
    :param timeout: seconds to wait for a response, above 0, at most 180. A request ends within the sum of both: see
        :class:`~airflow_provider_sms.service.transport.Transport`.
    :param verify: whether TLS certificates are verified, or the path of a CA bundle to verify them by.
    :param billing: ``auto``: a balance of exactly 1000000 is a post-paid account's; or ``prepaid``,
        ``postpaid``.
    :param pool_size: connections kept open: the number of threads that send at once.
    :param assumes_https: whether the scheme of ``base_url`` is an assumption, which errors mention.
    :param clock: seconds from any start, by a clock that cannot be set and counts while the machine sleeps.
    :raises InputError: an argument is missing or wrong.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        balance_url: str | None = None,
        connect_timeout: float = 5.0,
        timeout: float = 30.0,
        verify: bool | str = True,
        billing: Billing = "auto",
        pool_size: int = 10,
        assumes_https: bool = False,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        self._base_url = checked_url(base_url, "host")
        self._balance_url = checked_url(balance_url, "balance_url") if balance_url else self._base_url
        if not isinstance(verify, bool) and not (verify and Path(verify).exists()):
            # An empty path, too: requests would take it for "do not verify".
            raise InputError(f"verify: there is no CA bundle at {verify!r}")
        self.timeouts = (connect_timeout, timeout)
        """Seconds to make a connection, and to wait for a response: a request ends within their sum."""
        self._billing = billing
        self._transport = Transport(
            connect_timeout=connect_timeout,
            timeout=timeout,
            verify=verify,
            pool_size=pool_size,
            clock=clock,
            assumes_https=assumes_https,
        )
        self._tokens: FixedToken | FetchedToken
        if token is None:
            url = f"{self._base_url}/Authentication"
            self._tokens = FetchedToken(self._transport, url, str(client_id), str(client_secret), clock)
        else:
            self._tokens = FixedToken(token)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

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
        return sum(self.timeouts) * (4 if self._tokens.fetches else 1)

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
        body, texts = bulk_request(messages, send_options)
        return parse_send_response(self._post("bulkmessages", body, hidden=texts))

    def send_group(
        self, message: str, groups: Sequence[str], *, send_options: Mapping[str, Any] | None = None
    ) -> SendResponse:
        """Send a text to everyone in groups that the service knows.

        :param message: the text.
        :param groups: at least one name of a group.
        :param send_options: passed through as given; left out if None or empty.
        :raises InputError: there is no text or no group; nothing was sent.
        :raises ServiceError: one of its subclasses; each says whether the request may have been processed.
        """
        if not isinstance(message, str) or not message:
            raise InputError("message must be a text, and not empty")
        names = [] if isinstance(groups, str) else list(groups)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InputError("groups must be a list of at least one group name")
        body = request_body({"Message": message, "Groups": names}, send_options)
        return parse_send_response(self._post("groupmessages", body, hidden=(message,)))

    def get_balance(self) -> Balance:
        """Return the account's balance; the request is free.

        :raises ServiceError: one of its subclasses; an unknown outcome only means that no usable response came.
        """
        return parse_balance(self._request("GET", f"{self._balance_url}/Balance"), self._billing)

    def _post(self, operation: str, body: bytes, hidden: Iterable[str]) -> bytes:
        return self._request("POST", f"{self._base_url}/{operation}", body, hidden)

    def _request(self, method: str, url: str, body: bytes | None = None, hidden: Iterable[str] = ()) -> bytes:
        """Make a request, once more with another token after a 401, and return the content of a 200.

        :param hidden: texts that the service may repeat in an error, where they must not show.
        """
        token = self._tokens.current()
        response = self._transport.exchange(method, url, token.authorization(), body)
        if response.status == HTTPStatus.UNAUTHORIZED and (other := self._tokens.renewed(token)):
            token = other
            response = self._transport.exchange(method, url, token.authorization(), body)
        if response.status == HTTPStatus.OK:
            return response.body
        raise error_for(response, secrets=(token.value, *self._tokens.secrets), texts=hidden, now=time.time())
