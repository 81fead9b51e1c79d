"""What each fault does, and in one line what a correct client must do then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sms.sandbox.faults import Fault, FaultKind, Target

EFFECTS: Mapping[FaultKind, str] = {
    "none": "The request is served as always.",
    "drop_before": "The request is read and not accepted; the connection ends without a byte.",
    "drop_after": "The request is accepted; the connection ends without a byte.",
    "delay": "The request is accepted at once and answered late.",
    "status": "An answer with that HTTP status.",
    "truncated": "The request is accepted; half of the answer, then the connection ends.",
    "foreign": "The request is accepted; the answer is 200 with a page of somebody else's.",
}
"""What happens to a request that meets a fault of each kind."""

_UNKNOWN = "record the messages as unknown, and never send them again unasked."

SENDING: Mapping[FaultKind, str] = {
    "none": "Nothing is wrong: record the messages as accepted, and go on.",
    "drop_before": f"No answer came, and this looks as if the messages had been sent: {_UNKNOWN}",
    "drop_after": f"The answer is lost, and the messages may have been sent: {_UNKNOWN}",
    "delay": f"Wait until the timeout. An answer that is later than that is a lost one: {_UNKNOWN}",
    "status": f"The error does not say that nothing was sent: {_UNKNOWN}",
    "truncated": f"Half of an answer proves nothing: {_UNKNOWN}",
    "foreign": f"A 200 whose body is not the contract's proves nothing: {_UNKNOWN}",
}
"""What a correct client does when it sends: by kind, and for ``status`` where no line below is about it."""

_LATER = (
    "Nothing was sent: send the same request again after the time that Retry-After asks for, a bounded number of times."
)
_STOP = "Nothing was sent: stop sending, and fail with the service's own words."

SENDING_STATUS: Mapping[int, str] = {
    401: "Nothing was sent: with client credentials, fetch a new token once and send again; otherwise fail for good.",
    429: _LATER,
    503: _LATER,
}
"""What a correct client does after such a status where that proves that nothing was sent."""

PASSED_ON = frozenset({303, 408, 499})
"""Below 500, what may be said after a request was passed on: where its result is, or that somebody waits no more."""

_REDIRECT = "Nothing was sent: do not follow it, or the token goes elsewhere; stop sending, and fail."

_ASK_AGAIN = {
    "balance": "Nothing can have been sent: read the balance again later, a bounded number of times.",
    "authentication": "No token, so nothing was sent: ask for one again later, a bounded number of times.",
}
_GIVE_UP = {
    "balance": "Fail at once with the service's own words: asking again will not help.",
    "authentication": "Fail for good: these credentials will not do, and nothing was sent.",
}
_RENEW = "With client credentials, fetch a new token once and read again; otherwise fail at once."
_WAIT = "Wait until the timeout. Nothing can have been sent: after that, ask again later."
_GO_ON = "Nothing is wrong: go on."


def advice(fault: Fault) -> str:
    """Tell what a correct client must do with a request that meets a fault.

    :param fault: the fault.
    """
    return _for_sending(fault) if fault.on == "send" else _for_reading(fault, fault.on)


def _for_sending(fault: Fault) -> str:
    if fault.kind != "status":
        return SENDING[fault.kind]
    if not is_proof(fault):
        return SENDING["status"]
    if fault.accepted:
        return "The service must never answer so after it accepted: a client cannot know, and may text people twice."
    if fault.status in SENDING_STATUS:
        return SENDING_STATUS[fault.status]
    return _REDIRECT if fault.status < 400 else _STOP  # noqa: PLR2004 - RFC 9110 section 15.4


def is_proof(fault: Fault) -> bool:
    """Return whether the response of a ``status`` fault says that the request was not processed.

    A 503 does where the service itself wrote it: a gateway says it of requests that it passed on, too.

    :param fault: the fault.
    """
    if fault.status == 503:  # noqa: PLR2004 - RFC 9110 section 15.6.4
        return _is_by_service(fault)
    return 300 <= fault.status < 500 and fault.status not in PASSED_ON  # noqa: PLR2004 - RFC 9110 section 15


def _is_by_service(fault: Fault) -> bool:
    """Return whether the body of a fault is the service's own error: an ``errorCode``, in any case, bare or listed."""
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
    if fault.kind == "none":
        return _GO_ON
    if fault.kind == "delay":
        return _WAIT
    if fault.kind != "status" or not 300 <= fault.status < 500 or fault.status in {429, *PASSED_ON}:  # noqa: PLR2004 - RFC 9110
        return _ASK_AGAIN[target]
    return _RENEW if target == "balance" and fault.status == 401 else _GIVE_UP[target]  # noqa: PLR2004 - RFC 9110
