"""Transport: one request, one response; never retried, never redirected, always bounded in time and size.

``requests`` decides on the way to an address (proxies, certificates) and on a request's headers, once for each address;
:mod:`airflow_provider_sms.service.connections` writes each request, reads its response, and decides when a connection
is used again.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict
from urllib3.util import parse_url

from airflow_provider_sms import __version__
from airflow_provider_sms.exceptions import NotSentError, UnknownOutcomeError
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.service.connections import Connections, Exchange, UnaskedBytesError, UnusableResponseError
from airflow_provider_sms.service.elapsed import latest_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from requests import PreparedRequest

    from airflow_provider_sms.service.settings import Settings


class _NoAuth(AuthBase):
    """Keeps ``requests`` from taking an ``Authorization`` out of ``~/.netrc``."""

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        return r


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A whole response of the service, of any status.

    :param url: the address of the request.
    :param status: HTTP status.
    :param retry_after: the header ``Retry-After`` as received; None where there was none.
    :param body: the content; empty for an error response that broke off while it was read, whose status tells enough.
    """

    url: str
    status: int
    retry_after: str | None
    body: bytes = field(repr=False)

    @property
    def operation(self) -> str:
        """The last part of the request's path, for example ``bulkmessages``."""
        return self.url.rpartition("/")[2]


class Transport:
    """The one HTTP session of a client, shared by its threads.

    A request ends within ``connect_timeout + timeout``, counted from its start: writing, the status line,
    headers and body share that deadline, and no byte of a request is written after it. Only the time before the
    first byte can outlast it, and then the request is not sent: name resolution (the system's own limit), and
    connecting, where each address of the host and then the TLS handshake may take ``connect_timeout``. A request whose
    deadline is after the moment of :func:`~airflow_provider_sms.service.elapsed.ending_by` is not begun.

    The environment (proxies, CA bundle) is read with the first request to an address, and holds for all of them.

    :param pool_size: connections kept open per host: the number of threads that send at once.
    :param clock: the client's clock.
    """

    def __init__(self, settings: Settings, pool_size: int, clock: Callable[[], float]) -> None:
        self._timeouts = (settings.connect_timeout, settings.timeout)
        self._verify = settings.verify
        self._clock = clock
        self._session = requests.Session()
        self._session.headers = CaseInsensitiveDict(
            {
                "User-Agent": f"airflow-provider-sms/{__version__}",
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                # A balance from before a request would hide its charge (RFC 9111 section 5.2.1.4).
                "Cache-Control": "no-cache",
            }
        )
        self._pool_size = pool_size
        self._adapter = HTTPAdapter()
        self._connections: dict[Any, Connections] = {}
        self._routes: dict[tuple[str, str], tuple[bytes, Connections]] = {}

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        self._routes.clear()
        while self._connections:
            self._connections.popitem()[1].close()
        self._adapter.close()

    def exchange(self, method: str, url: str, authorization: str, body: bytes | None = None) -> RawResponse:
        """Make one request and return its response.

        An exception that is no ``Exception`` (a signal, an exit) passes through: the outcome is unknown to its handler.

        :param method: ``GET`` or ``POST``.
        :param url: the whole address.
        :param authorization: the header of that name.
        :param body: the content; None where there is none.
        :raises NotSentError: the request failed before its first byte was written, or came too late.
        :raises UnknownOutcomeError: it failed later.
        """
        operation = url.rpartition("/")[2]
        exchange = Exchange(self._clock() + sum(self._timeouts), self._clock)
        if exchange.deadline > latest_end():
            raise NotSentError(f"{operation}: not sent: too little time was left for it to finish")
        outer = sys.exc_info()[1]
        try:
            head, connections = self._route(method, url)
            own = [f"Authorization: {authorization}", *([] if body is None else [f"Content-Length: {len(body)}"])]
            request = b"\r\n".join([head, *map(str.encode, own), b"", body or b""])
            response = connections.exchange(method, request, exchange)
            return RawResponse(url, *response)
        except Exception as error:  # noqa: BLE001 - what it means is decided by what was written, not by its type
            # "from None": the errors below hold the request with its token, and quote what the server sent.
            reason = _reason(error, outer)
            if exchange.written:
                raise UnknownOutcomeError(f"{operation}: sent, but no whole response came: {reason}") from None
            raise NotSentError(f"{operation}: not sent: {reason}") from None

    def _route(self, method: str, url: str) -> tuple[bytes, Connections]:
        if (route := self._routes.get((method, url))) is None:
            route = self._routes[method, url] = self._new_route(method, url)
        return route

    def _new_route(self, method: str, url: str) -> tuple[bytes, Connections]:
        """Return what all requests to an address begin with, and the connections that carry them."""
        prepared = self._session.prepare_request(requests.Request(method, url, auth=_NoAuth()))
        address = parse_url(str(prepared.url))
        # Verification is set here and not in the session: there, REQUESTS_CA_BUNDLE would override a bundle or False.
        settings = self._session.merge_environment_settings(
            prepared.url, proxies={}, stream=None, verify=self._verify, cert=None
        )
        verify, proxies = settings["verify"], settings["proxies"]
        pool: Any = self._adapter.get_connection_with_tls_context(prepared, verify, proxies)
        self._adapter.cert_verify(pool, prepared.url, verify, None)  # type: ignore[no-untyped-call]
        tls = address.scheme == "https"
        tunnel = tls and pool.proxy is not None
        connect_timeout, timeout = self._timeouts
        connections = self._connections.setdefault(
            pool,
            Connections(pool, tunnel=tunnel, connect_timeout=connect_timeout, timeout=timeout, size=self._pool_size),
        )
        port = "" if address.port in (None, 443 if tls else 80) else f":{address.port}"
        headers = {**prepared.headers, **({} if tunnel else pool.proxy_headers), "Host": f"{address.host}{port}"}
        headers.pop("Content-Length", None)  # that of each body
        lines = [f"{method} {self._adapter.request_url(prepared, proxies)} HTTP/1.1"]
        return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items())]).encode(), connections


def _reason(error: BaseException, outer: BaseException | None) -> str:
    """Return the innermost cause of an error, in words.

    :param error: the error that was caught.
    :param outer: the error that the caller was handling already, which is not a cause.
    """
    causes = [error]
    while (inner := causes[0].__cause__ or causes[0].__context__) is not None and inner is not outer:
        causes.insert(0, inner)
    for cause in causes:
        if isinstance(cause, (UnusableResponseError, UnaskedBytesError)):
            return str(cause)
        if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
            return mask_numbers_in(cause.strerror or str(cause) or type(cause).__name__)
    # All others by name alone: BadStatusLine quotes what the server sent, InvalidHeader the token.
    return " of ".join(dict.fromkeys((type(causes[0]).__name__, type(error).__name__)))
