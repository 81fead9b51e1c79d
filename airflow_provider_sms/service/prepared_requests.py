"""What all requests to one address share, prepared once: ``requests`` takes longer over it than over the rest."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests
from requests.auth import AuthBase

if TYPE_CHECKING:
    from requests import PreparedRequest


class _NoAuth(AuthBase):
    """Keeps ``requests`` from taking an ``Authorization`` out of ``~/.netrc`` where none is given."""

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        return r


@dataclass(frozen=True, slots=True, repr=False)
class Route:
    """What all requests to one address have in common; its repr shows no proxy's password.

    :param request: one of them, without body and ``Authorization``.
    :param headers: its headers.
    :param settings: how the adapter is to send it: timeouts, verification, proxies.
    """

    request: PreparedRequest
    headers: dict[str, str]
    settings: dict[str, Any]

    def request_with(self, auth: AuthBase, body: bytes | None) -> PreparedRequest:
        """Make one request.

        :param auth: what sets ``Authorization``.
        :param body: the content; None: none.
        """
        request = copy(self.request)
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Length"] = str(len(body))
        # A plain dictionary is read as the case-insensitive one is, and urllib3 copies it in one step.
        request.headers = headers  # type: ignore[assignment]
        request.body = body
        return auth(request)


def prepared_route(
    session: requests.Session, method: str, url: str, *, timeouts: tuple[float, float], verify: bool | str
) -> Route:
    """Prepare what requests to an address share: headers of the session, proxies and CA bundle of the environment.

    :param session: whose headers are set.
    :param method: ``GET`` or ``POST``.
    :param url: the whole address.
    :param timeouts: seconds for a connection to be made, and for an answer or its next byte.
    :param verify: whether TLS certificates are verified, or the path of a CA bundle to verify them by.
    """
    request = session.prepare_request(requests.Request(method, url, auth=_NoAuth()))
    # Verification is given here and not to the session: there, REQUESTS_CA_BUNDLE would override a bundle or False.
    settings = session.merge_environment_settings(request.url, proxies={}, stream=True, verify=verify, cert=None)
    return Route(request, dict(request.headers), {"timeout": timeouts, **settings})
