"""The names by which the sandbox may be addressed: those of this machine alone.

A website can point its own name at 127.0.0.1 (DNS rebinding). A browser then takes the sandbox for a part of that
website, whose page can read and change it. Only the ``Host`` header gives it away: it still has the website's name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.config import is_loopback
from airflow_provider_sms.sandbox.errors import RefusalError
from airflow_provider_sms.sandbox.responses import JsonResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9.-]+))(?::[0-9]*)?", re.IGNORECASE)
"""``Host`` of RFC 9110, section 7.2, as far as it can name a loopback address."""

_REFUSAL = RefusalError(
    421, ("OtherHost", "the sandbox is addressed as 127.0.0.1, [::1] or localhost only; this request has another Host")
)
"""421 Misdirected Request, RFC 9110, section 15.5.20."""


class TrustedHosts:
    """ASGI middleware that refuses every request with any other ``Host``, on every path and by every protocol.

    :param app: the application, which gets only the other requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan" or is_trusted([value for name, value in scope["headers"] if name == b"host"]):
            await self._app(scope, receive, send)
        else:
            await JsonResponse(_REFUSAL.body(), _REFUSAL.status)(scope, receive, send)


def is_trusted(hosts: list[bytes]) -> bool:
    """Return whether a request has exactly one ``Host`` header, and it names a loopback address.

    :param hosts: the values of all ``Host`` headers. HTTP/1.0 allows a request without one, which no browser sends.
    """
    if len(hosts) != 1 or (found := _HOST.fullmatch(hosts[0].decode("latin-1"))) is None:
        return False
    return is_loopback((found["ipv6"] or found["name"]).lower())
