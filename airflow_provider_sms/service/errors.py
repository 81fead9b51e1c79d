"""What an answer other than 200 means, in the service's own words without anyone's data."""

from __future__ import annotations

import json
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
from airflow_provider_sms.messages.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sms.service.transport import Answer

MAX_WORDS = 300
"""Characters of the service's own words that an error carries."""

_MAX_FOREIGN_WORDS = 200
"""Characters carried of a body that is not of a known form: a proxy's page, most likely."""

_LONGEST_WAIT = 2.0**31
"""Seconds that a larger number of them is taken for (RFC 9111 section 1.2.2)."""

_MEANINGS: dict[type[ServiceError], str] = {
    AuthenticationError: "the service did not accept the token or the credentials",
    ThrottledError: "the service did not process the request",
    RefusedError: "the service refused the request",
    UnknownOutcomeError: "this answer does not say that the request was not processed",
}


def error_for(answer: Answer, *, hidden: Iterable[str], now: float) -> ServiceError:
    """Make the error that an answer other than 200 means.

    :param answer: the answer.
    :param hidden: what must not be seen although the service may repeat it: tokens, secrets, texts of
        messages.
    :param now: the time of day in seconds since the epoch, which a date in ``Retry-After`` is counted from.
    :return: the error, with the status, the service's code and, where it is to be tried later, the seconds it
        asked to wait.
    """
    kind = _kind(answer.status)
    hidden = sorted(filter(None, hidden), key=len, reverse=True)
    code, words = _own_words(answer.body)
    if not code and not words:
        words = _harmless(_plain_text(answer.body), hidden, _MAX_FOREIGN_WORDS)
    code, words = _harmless(code, hidden, MAX_WORDS), _harmless(words, hidden, MAX_WORDS)
    label = f"HTTP {answer.status}" + (f", {code}" if code else "")
    message = f"{answer.operation}: {_MEANINGS[kind]} ({label})" + (f": {words}" if words else "")
    retry_after = retry_after_seconds(answer.retry_after, now) if kind is ThrottledError else None
    return kind(message, status=answer.status, code=code or None, retry_after=retry_after)


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Read ``Retry-After``: seconds, or a date (RFC 9110 section 10.2.3).

    :param value: the header; None where there was none.
    :param now: the time of day in seconds since the epoch.
    :return: seconds to wait, 0 for a date that has passed; None where the header is missing or neither form.
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


def _kind(status: int) -> type[ServiceError]:
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthenticationError
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return ThrottledError
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return RefusedError
    return UnknownOutcomeError


def _own_words(body: bytes) -> tuple[str, str]:
    """Read code and words of ``{"errors": [{…}, …]}`` or of a bare ``{"errorCode", "errorMessage"}``."""
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
    """Read a body of no known form, unless it is HTML or no text at all."""
    try:
        text = body.decode().strip()
    except UnicodeDecodeError:
        return ""
    return "" if text.startswith("<") else text


def _lowered(document: Any) -> dict[str, Any]:
    return {key.lower(): value for key, value in document.items()} if isinstance(document, dict) else {}


def _harmless(text: str, hidden: Iterable[str], limit: int) -> str:
    """Blank out what is hidden, mask numbers, put it on one line; cut only then, or a part would be seen."""
    for secret in hidden:
        text = text.replace(secret, "***")
    text = mask_numbers_in(" ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"
