"""Authentication: a bearer token that the user set, or one fetched with credentials and kept while it lasts.

:meth:`Tokens.current` fetches a token before a request, and :meth:`Tokens.renewed` after a 401.
"""

from __future__ import annotations

import base64
import copy
import json
import math
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    NotSentError,
    ServiceError,
    UnknownOutcomeError,
)
from airflow_provider_sms.service.errors import error_for
from airflow_provider_sms.service.settings import fits_a_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sms.service.settings import Settings
    from airflow_provider_sms.service.transport import Transport

ASSUMED_MINUTES = 60
"""Minutes that a token is assumed to live where its response states no usable lifetime; too long costs one 401."""

LONGEST_LEAD = 60.0
"""Seconds before a token expires at which it is replaced, or a tenth of its lifetime where that is less."""

_MOST_MINUTES = 10 * 366 * 24 * 60
"""Ten years: a longer lifetime must be an error in the unit."""


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    """A bearer token.

    :param value: the token itself; not in the repr.
    :param good_until: when it must be replaced, in seconds of the client's clock; infinity for a token that the user
        set.
    """

    value: str = field(repr=False)
    good_until: float


class Tokens:
    """The token that the user set, or one fetched from ``Authentication``: one thread fetches, the others wait for it.

    :param settings: with the token, or with the client id and secret to fetch one with.
    """

    def __init__(self, settings: Settings, transport: Transport, clock: Callable[[], float]) -> None:
        self._token = None if settings.token is None else Token(settings.token, math.inf)
        self.fetches = settings.token is None
        """Whether a request may have to wait for a token, and a rejected one is replaced."""
        pair = f"{settings.client_id}:{settings.client_secret}"
        basic = base64.b64encode(pair.encode()).decode()
        self.secrets = (str(settings.client_secret), pair, basic) if self.fetches else ()
        """Texts that no error may repeat, besides the tokens."""
        self._authorization = f"Basic {basic}"
        self._transport = transport
        self._url = f"{settings.base_url}/Authentication"
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._failure: ServiceError | None = None

    def current(self) -> Token:
        """Return the token, fetched where none is held or the one held is about to expire.

        :raises ServiceError: as for :meth:`renewed`.
        """
        token = self._token
        return token if token is not None and self._is_good(token) else self.renewed(token)

    def _is_good(self, token: Token) -> bool:
        return self._clock() < token.good_until

    def renewed(self, rejected: Token | None) -> Token:
        """Return a token other than the one that the service did not accept.

        :raises NotSentError: no token came, so the request that needs it is not sent.
        :raises ThrottledError: the service asks to wait.
        :raises AuthenticationError: the client id or the secret is not valid (401, 403).
        :raises RefusedError: the service refuses to issue one (other 3xx and 4xx).
        """
        failures = self._failures
        with self._lock:
            token = self._token
            if token is not None and token is not rejected and self._is_good(token):
                return token
            if self._failure is not None and self._failures != failures:
                # It failed while this thread waited: if each thread tried again, the last would wait for all of them.
                raise copy.copy(self._failure)
            try:
                self._token = token = self._fetch()
            except ServiceError as error:
                self._failures += 1
                self._failure = error
                raise
            return token

    def _fetch(self) -> Token:
        asked_at = self._clock()
        try:
            response = self._transport.exchange("GET", self._url, self._authorization)
        except UnknownOutcomeError as error:
            raise NotSentError(f"no token came: {error}") from None
        if response.status == HTTPStatus.OK:
            value, minutes = _parse_token(response.body)
            life = minutes * 60.0
            return Token(value, asked_at + life - min(LONGEST_LEAD, life / 10))
        failure = error_for(response, secrets=self.secrets, now=time.time())
        if isinstance(failure, UnknownOutcomeError) or response.status == HTTPStatus.SERVICE_UNAVAILABLE:
            # Whatever became of this request, the one that needs the token was not sent.
            raise NotSentError(
                f"no token came: HTTP {response.status}",
                status=response.status,
                code=failure.code,
                retry_after=failure.retry_after,
            )
        if response.status == HTTPStatus.FORBIDDEN:
            raise AuthenticationError(str(failure), status=response.status, code=failure.code)
        raise failure


def _parse_token(body: bytes) -> tuple[str, float]:
    """Return the token and its life in minutes from ``{"token", "schema", "expiresInMinutes"}``, keys in any case."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    fields = {key.lower(): value for key, value in document.items()} if isinstance(document, dict) else {}
    token, minutes = fields.get("token"), fields.get("expiresinminutes")
    if not isinstance(token, str) or not token or not fits_a_header(token):
        # Quotes nothing: the body of a response with a token is a secret.
        raise NotSentError("no token came: the response of Authentication has none", status=HTTPStatus.OK.value)
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not 0 < minutes <= _MOST_MINUTES:
        minutes = ASSUMED_MINUTES
    return token, minutes
