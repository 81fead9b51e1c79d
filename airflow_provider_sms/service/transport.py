"""Transport: one request, one response; never retried, never redirected, always bounded in time and size.

:mod:`airflow_provider_sms.service.tracked_connections` decides when a connection is used again.
"""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import NotSentError, UnknownOutcomeError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.service.elapsed import latest_end
from airflow_provider_sms.service.tracked_connections import Exchange, UnaskedBytesError, track, tracking

if TYPE_CHECKING:
    from collections.abc import Callable

    from requests import PreparedRequest


class _NoAuth(AuthBase):
    """Keeps ``requests`` from taking an ``Authorization`` out of ``~/.netrc`` where there is none."""

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        return r


@dataclass(frozen=True, slots=True, repr=False)
class Route:
    """The parts that all requests to one address share; the repr shows no password of a proxy.

    :param request: without body and ``Authorization``.
    :param headers: of the request.
    :param settings: with which the adapter sends it: timeouts, verification, proxies.
    """

    request: PreparedRequest
    headers: dict[str, str]
    settings: dict[str, Any]

    def request_with(self, auth: AuthBase, body: bytes | None) -> PreparedRequest:
        """Return one request.

        :param auth: sets ``Authorization``.
        :param body: the content; None: there is none.
        """
        request = copy(self.request)
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Length"] = str(len(body))
        # A plain dictionary serves as the case-insensitive one does, and urllib3 copies it in one step.
        request.headers = headers  # type: ignore[assignment]
        request.body = body
        return auth(request)


def prepared_route(
    session: requests.Session, method: str, url: str, *, timeouts: tuple[float, float], verify: bool | str
) -> Route:
    """Return the shared parts of requests to an address: headers of the session, proxies and CA bundle.

    :param session: with its headers set.
    :param method: ``GET`` or ``POST``.
    :param url: the whole address.
    :param timeouts: seconds to make a connection, and to wait for a response or its next byte.
    :param verify: whether TLS certificates are verified, or the path of a CA bundle to verify them by.
    """
    request = session.prepare_request(requests.Request(method, url, auth=_NoAuth()))
    # Verification is set here and not in the session: there, REQUESTS_CA_BUNDLE would override a bundle or False.
    settings = session.merge_environment_settings(request.url, proxies={}, stream=True, verify=verify, cert=None)
    return Route(request, dict(request.headers), {"timeout": timeouts, **settings})


MAX_RESPONSE_BYTES = 10 * 1024 * 1024
"""Bytes of the longest response that is read, 10 MiB: a send response is below 100 KB."""


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A whole response of the service, of any status.

    :param operation: the last part of the request's path, for example ``bulkmessages``.
    :param status: HTTP status.
    :param retry_after: the header ``Retry-After`` as received; None where there was none.
    :param body: the content; empty for an error response that broke off while it was read, whose status tells enough.
    """

    operation: str
    status: int
    retry_after: str | None
    body: bytes = field(repr=False)


class _UnusableResponseError(Exception):
    """A response came that cannot be one to the request."""


class _Adapter(HTTPAdapter):
    """An adapter whose connections, direct or through any proxy, are tracked.

    All requests to one address must have the same settings.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._pools: dict[str | None, Any] = {}
        super().__init__(**kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        track(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        track(manager)
        return manager

    def get_connection_with_tls_context(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the pool for a request, looked up once per address. requests before 2.32 does not call this."""
        if (pool := self._pools.get(request.url)) is None:
            pool = super().get_connection_with_tls_context(request, *args, **kwargs)
            self._pools[request.url] = pool
        return pool

    def close(self) -> None:
        self._pools.clear()
        super().close()

    def build_response(self, req: PreparedRequest, resp: Any) -> requests.Response:
        """Return a response without cookies, which are not kept, and without an encoding, which JSON does not need."""
        response = requests.Response()
        response.status_code = resp.status
        # urllib3's own headers, which ignore case, too.
        response.headers = resp.headers
        response.raw = resp
        response.request = req
        return response


class Transport:
    """The one HTTP session of a client, shared by its threads.

    A request ends within ``connect_timeout + timeout``, counted from its start: writing, the status line,
    headers and body share that deadline, and no byte of a request is written after it. Only the time before the
    first byte can outlast it, and then the request is not sent: name resolution (the system's own limit), and
    connecting, where each address of the host and then the TLS handshake may take ``connect_timeout``. A request whose
    deadline is after the moment of :func:`~airflow_provider_sms.service.elapsed.ending_by` is not begun.

    The environment (proxies, CA bundle) is read with the first request to an address, and holds for all of them.

    :param connect_timeout: seconds to make a connection.
    :param timeout: seconds to wait for a response, or for its next byte.
    :param verify: whether TLS certificates are verified, or the path of a CA bundle to verify them by.
    :param pool_size: connections kept open per host: the number of threads that send at once.
    :param clock: of the client.
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
                # A balance of before a request would hide its charge (RFC 9111 section 5.2.1.4).
                "Cache-Control": "no-cache",
            }
        )
        self._adapter = _Adapter(pool_maxsize=pool_size, max_retries=0)
        self._routes: dict[tuple[str, str], Route] = {}

    def close(self) -> None:
        """Close every pooled connection."""
        self._adapter.close()

    def exchange(self, method: str, url: str, auth: AuthBase, body: bytes | None = None) -> RawResponse:
        """Make one request and return its response.

        An exception that is no ``Exception`` (a signal, an exit) passes through: the outcome is unknown to its handler.

        :param method: ``GET`` or ``POST``.
        :param url: the whole address.
        :param auth: sets ``Authorization``; without it, ``requests`` would take one from ``~/.netrc``.
        :param body: the content; None: there is none.
        :raises NotSentError: the request failed before its first byte was written, or came too late.
        :raises UnknownOutcomeError: it failed later.
        """
        operation = url.rpartition("/")[2]
        exchange = Exchange(self._clock() + sum(self._timeouts), self._clock)
        if exchange.deadline > latest_end():
            raise NotSentError(f"{operation}: not sent: it came too late to end in the time that was left for it")
        outer = sys.exc_info()[1]
        try:
            with tracking(exchange):
                return self._exchange(operation, method, url, auth, body)
        except Exception as error:  # noqa: BLE001 - what it means is decided by what was written, not by its type
            # "from None": the errors below hold the request with its token, and quote what the server sent.
            reason = _reason(error, outer)
            if exchange.written:
                raise UnknownOutcomeError(f"{operation}: sent, but no whole response came: {reason}") from None
            raise NotSentError(f"{operation}: not sent: {reason}") from None

    def _route(self, method: str, url: str) -> Route:
        if (route := self._routes.get((method, url))) is None:
            route = prepared_route(self._session, method, url, timeouts=self._timeouts, verify=self._verify)
            self._routes[method, url] = route
        return route

    def _exchange(self, operation: str, method: str, url: str, auth: AuthBase, body: bytes | None) -> RawResponse:
        route = self._route(method, url)
        with self._adapter.send(route.request_with(auth, body), **route.settings) as received:
            status = received.status_code
            if status < HTTPStatus.OK:
                # The final response is still to come: the next request on this connection would take it for its own.
                raise _UnusableResponseError(f"HTTP {status} is not a final response")
            try:
                content = _content(received)
            except Exception:
                if status == HTTPStatus.OK:
                    raise
                content = b""
            return RawResponse(operation, status, received.headers.get("Retry-After"), content)


def _content(response: requests.Response) -> bytes:
    pieces: list[bytes] = []
    length = 0
    for piece in response.iter_content(64 * 1024):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_RESPONSE_BYTES:
            raise _UnusableResponseError(f"it is longer than {MAX_RESPONSE_BYTES} bytes")
    return b"".join(pieces)


def _reason(error: BaseException, outer: BaseException | None) -> str:
    """Return the innermost cause of an error, in words.

    :param error: the error that was caught.
    :param outer: the error that the caller was handling already, which is no cause.
    """
    causes = [error]
    while (inner := causes[0].__cause__ or causes[0].__context__) is not None and inner is not outer:
        causes.insert(0, inner)
    for cause in causes:
        if isinstance(cause, (_UnusableResponseError, UnaskedBytesError)):
            return str(cause)
        if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
            return mask_numbers_in(cause.strerror or str(cause) or type(cause).__name__)
    # All others by name alone: BadStatusLine quotes what the server sent, InvalidHeader the token.
    return " of ".join(dict.fromkeys((type(causes[0]).__name__, type(error).__name__)))
