"""Prepared requests: the parts that all requests to one address share, made once.

``requests`` takes longer to make these parts for each request than for all the rest of it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests
from requests.auth import AuthBase

if TYPE_CHECKING:
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
