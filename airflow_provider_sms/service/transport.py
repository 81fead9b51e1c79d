"""One request, one answer: never retried, never redirected, always bounded in time and size."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import NotSentError, UnknownOutcomeError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.service.elapsed import latest_end
from airflow_provider_sms.service.prepared_requests import Route, prepared_route
from airflow_provider_sms.service.tracked_connections import Exchange, UnaskedBytesError, watch, watching

if TYPE_CHECKING:
    from collections.abc import Callable

    from requests import PreparedRequest
    from requests.auth import AuthBase

MAX_ANSWER = 10 * 1024 * 1024
"""Bytes of the longest answer that is read: a send response is below 100 KB."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of the service, of any status.

    :param operation: the last part of the request's path, for example ``bulkmessages``.
    :param status: HTTP status.
    :param retry_after: the header ``Retry-After`` as received; None where there was none.
    :param body: the content. Of a failure that broke off while it was read, empty: its status says enough.
    """

    operation: str
    status: int
    retry_after: str | None
    body: bytes = field(repr=False)


class _UnusableAnswerError(Exception):
    """An answer came, and cannot be one to the request."""


class _Adapter(HTTPAdapter):
    """An adapter whose connections, direct or through any proxy, report to the exchange.

    All requests to one address must have the same settings.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._pools: dict[str | None, Any] = {}
        super().__init__(**kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        watch(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        watch(manager)
        return manager

    def get_connection_with_tls_context(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Give the pool for a request, looked up once per address. requests before 2.32 asks elsewhere, each time."""
        if (pool := self._pools.get(request.url)) is None:
            pool = super().get_connection_with_tls_context(request, *args, **kwargs)
            self._pools[request.url] = pool
        return pool

    def close(self) -> None:
        self._pools.clear()
        super().close()

    def build_response(self, req: PreparedRequest, resp: Any) -> requests.Response:
        """Wrap an answer: without its cookies, which are not kept, and its encoding, which JSON does not need."""
        response = requests.Response()
        response.status_code = resp.status
        # urllib3's own, which do not mind the case either.
        response.headers = resp.headers
        response.raw = resp
        response.request = req
        return response


class Transport:
    """The one HTTP session of a client, shared by its threads.

    A request ends within ``connect_timeout + timeout``, counted from its start: writing, the status line,
    headers and body share that deadline, and no byte of a request is written after it. Only what precedes the
    first byte can outlast it, and then the request is not sent: name resolution (the system's own limit), and
    connecting, where each address of the host and then the TLS handshake may take ``connect_timeout``. A request whose
    deadline is after the moment of :func:`~airflow_provider_sms.service.elapsed.ending_by` is not begun.

    The environment (proxies, CA bundle) is read with the first request to an address, and holds for all of them.

    :param connect_timeout: seconds for a connection to be made.
    :param timeout: seconds to wait for an answer, or for its next byte.
    :param verify: whether TLS certificates are verified, or the path of a CA bundle to verify them by.
    :param pool_size: connections kept open per host: the number of threads that send at once.
    :param clock: as of the client.
    """

    def __init__(
        self,
        *,
        connect_timeout: float,
        timeout: float,
        verify: bool | str,
        pool_size: int,
        clock: Callable[[], float],
    ) -> None:
        self._timeouts = (connect_timeout, timeout)
        self._verify = verify
        self._clock = clock
        self._session = requests.Session()
        self._session.headers = CaseInsensitiveDict(
            {
                "User-Agent": f"airflow-provider-sms/{__version__}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            }
        )
        self._adapter = _Adapter(pool_maxsize=pool_size, max_retries=0)
        self._routes: dict[tuple[str, str], Route] = {}

    def close(self) -> None:
        """Close every pooled connection."""
        self._adapter.close()

    def exchange(self, method: str, url: str, auth: AuthBase, body: bytes | None = None) -> Answer:
        """Make one request and read its answer.

        An exception that is no ``Exception`` (a signal, an exit) passes through: whoever catches it knows
        nothing of the outcome.

        :param method: ``GET`` or ``POST``.
        :param url: the whole address.
        :param auth: what sets ``Authorization``; with none given, ``requests`` would take one from
            ``~/.netrc``.
        :param body: the content; None: none.
        :raises NotSentError: it failed before the first byte of the request was written, or came too late.
        :raises UnknownOutcomeError: it failed after that.
        """
        operation = url.rpartition("/")[2]
        exchange = Exchange(self._clock() + sum(self._timeouts), self._clock)
        if exchange.deadline > latest_end():
            raise NotSentError(f"{operation}: not sent: it came too late to end in the time that was left for it")
        outer = sys.exc_info()[1]
        try:
            with watching(exchange):
                return self._answer(operation, method, url, auth, body)
        except Exception as error:  # noqa: BLE001 - what it means is decided by what was written, not by its type
            # "from None": the errors below hold the request with its token, and quote what the server sent.
            reason = _reason(error, outer)
            if exchange.written:
                raise UnknownOutcomeError(f"{operation}: sent, but no whole answer came: {reason}") from None
            raise NotSentError(f"{operation}: not sent: {reason}") from None

    def _route(self, method: str, url: str) -> Route:
        if (route := self._routes.get((method, url))) is None:
            route = prepared_route(self._session, method, url, timeouts=self._timeouts, verify=self._verify)
            self._routes[method, url] = route
        return route

    def _answer(self, operation: str, method: str, url: str, auth: AuthBase, body: bytes | None) -> Answer:
        route = self._route(method, url)
        with self._adapter.send(route.request_with(auth, body), **route.settings) as response:
            status = response.status_code
            if status < HTTPStatus.OK:
                # The final answer is still to come: the next request on this connection would take it for its
                # own.
                raise _UnusableAnswerError(f"HTTP {status} is not a final answer")
            try:
                content = _content(response)
            except Exception:
                if status == HTTPStatus.OK:
                    raise
                content = b""
            return Answer(operation, status, response.headers.get("Retry-After"), content)


def _content(response: requests.Response) -> bytes:
    pieces: list[bytes] = []
    length = 0
    for piece in response.iter_content(64 * 1024):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_ANSWER:
            raise _UnusableAnswerError(f"it is longer than {MAX_ANSWER} bytes")
    return b"".join(pieces)


def _reason(error: BaseException, outer: BaseException | None) -> str:
    """Say what failed, by its innermost cause that is one.

    :param error: what was caught.
    :param outer: what the caller was handling already, which is no cause.
    """
    causes = [error]
    while (inner := causes[0].__cause__ or causes[0].__context__) is not None and inner is not outer:
        causes.insert(0, inner)
    for cause in causes:
        if isinstance(cause, (_UnusableAnswerError, UnaskedBytesError)):
            return str(cause)
        if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
            return mask_numbers_in(cause.strerror or str(cause) or type(cause).__name__)
    # The rest by name alone: BadStatusLine quotes what the server sent, InvalidHeader the token.
    return " of ".join(dict.fromkeys((type(causes[0]).__name__, type(error).__name__)))
