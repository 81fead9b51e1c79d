"""Errors: what a response other than 200 means, in the service's own words without personal data.

Between client and service stand gateways, which write some responses after they have passed the request on. So the
question is not what a status is called, but who can have written it, and when:

==================  =====================================  =============================================================
Meaning             Responses                              Why
==================  =====================================  =============================================================
not processed       429                                    A rate limit is counted before a request is handled
                                                           (RFC 6585 section 4).
not processed       503 whose body holds an ``errorCode``  The service speaks, and says that it did not handle it.
credentials         401                                    They are checked before the request is handled.
refused             every other 3xx and 4xx                The request was looked at and turned down, or sent elsewhere.
                                                           425, too: by its definition the server was not willing to
                                                           process the request (RFC 8470 section 5.2).
**unknown**         any other 503                          Gateways say 503 when the service is slow or has closed the
                                                           connection, after they passed the request on; often with
                                                           ``Retry-After``.
**unknown**         303                                    What a POST led to is elsewhere (RFC 9110 section 15.4.4): it
                                                           was handled.
**unknown**         408, 499                               The writer gave up waiting, and may have passed the request
                                                           on by then.
**unknown**         1xx, every other 2xx and 5xx           Nothing in them says that the request was not processed.
==================  =====================================  =============================================================

A body that broke off is read as an empty one, so a 503 with such a body is unknown. A new status is unknown until it is
shown that it cannot be written after the service processed the request. What a send does then is decided in
:mod:`airflow_provider_sms.sending.outcomes`; a 403 ``InsufficientCredits`` can wait for credit there.
"""

from __future__ import annotations

import json
import re
from datetime import timezone
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    RefusedError,
    ServiceError,
    ThrottledError,
    UnknownOutcomeError,
)
from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.service.echoes import SHORTEST, WITHHELD, harmless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sms.service.transport import RawResponse

MAX_WORDS = 300
"""Characters of the service's own words that an error carries."""

_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
"""The form of a code: one in another form may be anything, and is not shown."""

_LONGEST_WAIT = 2.0**31
"""Seconds to which any longer wait is cut (RFC 9111 section 1.2.2)."""

UNKNOWN_STATUSES = frozenset({HTTPStatus.SEE_OTHER, HTTPStatus.REQUEST_TIMEOUT, 499})
"""Statuses below 500 that may be written after the request was passed on: see the table above."""

_NO_ENTITY = "EntityNotFound."
"""The beginning of the codes of a 404 that comes from the right address, such as for a group that does not exist."""

_MEANINGS: dict[type[ServiceError], str] = {
    AuthenticationError: "the service did not accept the token or the credentials",
    ThrottledError: "the service did not process the request",
    RefusedError: "the service refused the request",
    UnknownOutcomeError: "this response does not say that the request was not processed",
}


def error_for(response: RawResponse, *, secrets: Iterable[str], texts: Iterable[str] = (), now: float) -> ServiceError:
    """Return the error that a response other than 200 means.

    :param secrets: tokens and the like, which must not show although the service may repeat them.
    :param texts: texts of messages, which must not show either.
    :param now: the time of day in seconds since the epoch, from which a date in ``Retry-After`` is counted.
    :returns: the error, with the status, the service's code and, if the request may be repeated, the seconds that the
        service asked to wait.
    """
    secrets, texts = list(secrets), list(texts)
    code, words = _own_words(response.body)
    kind = _kind(response.status, own=bool(code))
    if not code and not words:
        words = _plain_text(response.body)
    # A text about credit does not hide a code about it; a secret is hidden in any form.
    repeats = any(len(each) >= SHORTEST and each in code for each in texts)
    is_shown = _CODE.fullmatch(code) and not repeats and harmless(secrets, len(code))(code) != WITHHELD
    code = mask_numbers_in(code) if is_shown else ""
    words = harmless([*secrets, *texts], MAX_WORDS)(words)
    label = f"HTTP {response.status}" + (f", {code}" if code else "")
    meaning = _MEANINGS[kind]
    if kind is UnknownOutcomeError and response.operation in ("Balance", "Authentication"):
        meaning = "the service gave no usable response"
    message = f"{response.operation}: {meaning} ({label})" + (f": {words}" if words else "")
    if response.status == HTTPStatus.NOT_FOUND and response.url and not code.startswith(_NO_ENTITY):
        message += (
            f". There is nothing at {response.url}: the base URL in host (or in balance_url) may lack "
            "its version segment, such as /v1, or have another path than the service's"
        )
    retry_after = retry_after_seconds(response.retry_after, now) if kind is ThrottledError else None
    return kind(message, status=response.status, code=code or None, retry_after=retry_after)


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Return the seconds of ``Retry-After``, which is a number or a date (RFC 9110 section 10.2.3).

    :param value: the header; None where there is none.
    :param now: the time of day in seconds since the epoch.
    :returns: seconds to wait, 0 for a date that has passed; None where the header is missing or neither form.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        # An HTTP date is in UTC even in the obsolete form that does not say so (RFC 9110 section 5.6.7).
        date = date.replace(tzinfo=timezone.utc)
    return max(0.0, date.timestamp() - now)


def _kind(status: int, *, own: bool) -> type[ServiceError]:
    """Return the class of error, by the table of this module.

    :param own: whether the body holds the service's own error.
    """
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthenticationError
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and own):
        return ThrottledError
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in UNKNOWN_STATUSES:
        return RefusedError
    return UnknownOutcomeError


def _own_words(body: bytes) -> tuple[str, str]:
    """Return code and words of ``{"errors": [{…}, …]}`` or of a bare ``{"errorCode", "errorMessage"}``."""
    try:
        fields = _lowered(json.loads(body))
    except (ValueError, RecursionError):
        return "", ""
    errors = fields.get("errors")
    entries = [_lowered(error) for error in errors] if isinstance(errors, list) and errors else [fields]
    codes, words = (
        [value for entry in entries if isinstance(value := entry.get(key), str) and value]
        for key in ("errorcode", "errormessage")
    )
    return codes[0] if codes else "", "; ".join(words)


def _plain_text(body: bytes) -> str:
    """Return a body in no known form as text; empty where it is HTML or no text."""
    try:
        text = body.decode().strip()
    except UnicodeDecodeError:
        return ""
    return "" if text.startswith("<") else text


def _lowered(document: Any) -> dict[str, Any]:
    return {key.lower(): value for key, value in document.items()} if isinstance(document, dict) else {}
