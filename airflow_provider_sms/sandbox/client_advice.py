"""What each fault does, and in one line what a correct client must do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sms.sandbox.faults import Fault, FaultKind, Target

EFFECTS: Mapping[FaultKind, str] = {
    "none": "The request is served as usual.",
    "drop_before": "The request is read but not accepted; the connection ends without a byte.",
    "drop_after": "The request is accepted; the connection ends without a byte.",
    "delay": "The request is accepted at once; the response is late.",
    "status": "The response has this HTTP status.",
    "truncated": "The request is accepted; the connection ends after half of the response body.",
    "foreign": "The request is accepted; the response is a 200 with a web page that is not the service's.",
    "late_charge": "The request is served as usual, but its cost is charged some time after the response.",
    "spend": "The request is served as usual; right before or after it, somebody else spends or tops up the balance.",
}
"""What happens to a request that meets a fault, by the fault's kind."""

_UNKNOWN = "record the messages as unknown, and never resend them without a decision."

SENDING: Mapping[FaultKind, str] = {
    "none": "Nothing is wrong: record the messages as accepted, and carry on.",
    "drop_before": f"No response arrived, which looks the same as if the messages had been sent: {_UNKNOWN}",
    "drop_after": f"The response is lost, and the messages may have been sent: {_UNKNOWN}",
    "delay": f"Wait until the timeout. After that, the response counts as lost: {_UNKNOWN}",
    "status": f"This error does not prove that nothing was sent: {_UNKNOWN}",
    "truncated": f"Half of a response proves nothing: {_UNKNOWN}",
    "foreign": f"A 200 with a body that is not the service's proves nothing: {_UNKNOWN}",
    "late_charge": "Record the messages as accepted: a balance that has not fallen proves nothing yet.",
    "spend": "Record the messages as accepted: a balance that moved for another reason proves nothing about them.",
}
"""What a correct client does about a send request, by the fault's kind; a status listed below has its own line."""

_LATER = "Nothing was sent: after the delay in Retry-After, send the same request again, a limited number of times."
_STOP = "Nothing was sent: stop sending, and fail with the service's error message."

SENDING_STATUS: Mapping[int, str] = {
    401: "Nothing was sent: with client credentials, fetch a new token once and send again; otherwise fail for good.",
    429: _LATER,
    503: _LATER,
}
"""What a correct client does about a send request after a status that proves that nothing was sent."""

PASSED_ON = frozenset({303, 408, 499})
"""Statuses below 500 that prove nothing, because a gateway may return them for a request that it has passed on.

303 says where the result is; 408 and 499 say that one side stopped waiting.
"""

_REDIRECT = "Nothing was sent: do not follow the redirect, which would disclose the token; stop sending, and fail."

_READ_AGAIN = {
    "balance": "Reading sends nothing: read the balance again later, a limited number of times.",
    "authentication": "Without a token, nothing was sent: request one again later, a limited number of times.",
}
_GIVE_UP = {
    "balance": "Fail at once with the service's error message: another attempt will not help.",
    "authentication": "Fail for good: the credentials are not accepted, and nothing was sent.",
}
_RENEW = "With client credentials, fetch a new token once and read again; otherwise fail at once."
_WAIT = "Wait until the timeout. Reading sends nothing: after that, try again later."
_CARRY_ON = "Nothing is wrong: carry on."


def advice_for(fault: Fault) -> str:
    """Return what a correct client must do about a request that meets a fault.

    :param fault: the fault.
    """
    return _for_sending(fault) if fault.on == "send" else _for_reading(fault, fault.on)


def _for_sending(fault: Fault) -> str:
    if fault.kind != "status":
        return SENDING[fault.kind]
    if not is_proof(fault):
        return SENDING["status"]
    if fault.accepted:
        return "A service must never say this after accepting a request: clients cannot know, and may text twice."
    if fault.status in SENDING_STATUS:
        return SENDING_STATUS[fault.status]
    return _REDIRECT if fault.status < 400 else _STOP  # noqa: PLR2004 - RFC 9110 section 15.4


def is_proof(fault: Fault) -> bool:
    """Return whether the response of a ``status`` fault proves that the request was not processed.

    A 503 proves it only when the service itself wrote the response: a gateway also returns 503 for a request that it
    has passed on.

    :param fault: the fault.
    """
    if fault.status == 503:  # noqa: PLR2004 - RFC 9110 section 15.6.4
        return _is_by_service(fault)
    return 300 <= fault.status < 500 and fault.status not in PASSED_ON  # noqa: PLR2004 - RFC 9110 section 15


def _is_by_service(fault: Fault) -> bool:
    """Return whether a fault's body is the service's error body: an ``errorCode``, in any case, bare or in a list."""
    if fault.body is None:
        return fault.by == "service"
    try:
        document = _lowered(orjson.loads(fault.body))
    except ValueError:
        return False
    errors = document.get("errors")
    entries = map(_lowered, errors) if errors and isinstance(errors, list) else [document]
    return any(isinstance(code, str) and code for code in (entry.get("errorcode") for entry in entries))


def _lowered(document: Any) -> dict[str, Any]:
    return {key.lower(): value for key, value in document.items()} if isinstance(document, dict) else {}


def _for_reading(fault: Fault, target: Target) -> str:
    if fault.kind in ("none", "late_charge", "spend"):
        return _CARRY_ON
    if fault.kind == "delay":
        return _WAIT
    if fault.kind != "status" or not 300 <= fault.status < 500 or fault.status in {429, *PASSED_ON}:  # noqa: PLR2004 - RFC 9110
        return _READ_AGAIN[target]
    return _RENEW if target == "balance" and fault.status == 401 else _GIVE_UP[target]  # noqa: PLR2004 - RFC 9110
