"""Authentication: the bearer tokens that the sandbox accepts, and the client credentials that fetch one."""

from __future__ import annotations

import base64
import binascii
import hmac
import math
import secrets
import time
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.sandbox.errors import RefusalError

if TYPE_CHECKING:
    from airflow_provider_sms.sandbox.config import SandboxConfig


class Tokens:
    """The tokens of one sandbox. A comparison takes the same time whether or not the values match.

    :param config: the fixed token, the client's credentials and the lifetime of fetched tokens.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._deadlines: dict[bytes, float] = {}
        if config.token is not None:
            self._deadlines[config.token.encode()] = math.inf

    def check(self, authorization: str | None) -> None:
        """Raise unless a request carries a known token that has not expired.

        :param authorization: value of the ``Authorization`` header; None when the header is missing.
        :raises RefusalError: 401, ``AuthenticationToken.Invalid`` or ``AuthenticationToken.Expired``.
        """
        given = _credentials("bearer", authorization)
        deadline = -math.inf
        for token, until in self._deadlines.items():
            if hmac.compare_digest(token, given):
                deadline = until
        if deadline == -math.inf:
            raise RefusalError(401, ("AuthenticationToken.Invalid", "the bearer token is missing or wrong"))
        if deadline <= time.monotonic():
            raise RefusalError(401, ("AuthenticationToken.Expired", "the bearer token has expired"))

    def check_client(self, authorization: str | None) -> None:
        """Raise unless a request carries the client's credentials.

        :param authorization: value of the ``Authorization`` header, HTTP Basic (RFC 7617).
        :raises RefusalError: 401, ``InvalidCredentials``.
        """
        expected = f"{self._config.client_id}:{self._config.client_secret}".encode()
        try:
            given = base64.b64decode(_credentials("basic", authorization), validate=True)
        except binascii.Error:
            given = b""
        if self._config.client_id is None or not hmac.compare_digest(expected, given):
            raise RefusalError(401, ("InvalidCredentials", "the client id or the API secret is wrong"))

    def issue(self) -> dict[str, Any]:
        """Issue a new token, and return the response body that carries it."""
        minutes = self._config.token_minutes
        token = secrets.token_urlsafe(32)
        self._deadlines[token.encode()] = time.monotonic() + minutes * 60
        return {"token": token, "schema": "JWT", "expiresInMinutes": minutes}


def _credentials(scheme: str, authorization: str | None) -> bytes:
    given_scheme, _, credentials = (authorization or "").partition(" ")
    return credentials.strip().encode() if given_scheme.lower() == scheme else b""
