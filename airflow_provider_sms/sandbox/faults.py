"""Faults on demand: what goes wrong with a request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

FaultKind = Literal["none", "drop_before", "drop_after", "delay", "status", "truncated", "spend"]
Target = Literal["send", "balance", "authentication"]
Author = Literal["service", "gateway"]
Moment = Literal["before", "after"]

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
AUTHORS: tuple[Author, ...] = get_args(Author)
_CHOICES = {"kind": KINDS, "on": get_args(Target), "by": AUTHORS, "when": get_args(Moment)}


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that one or more requests will meet.

    :param kind: what goes wrong; ``none`` serves a request as usual.
    :param on: the operation that the fault applies to: ``send`` (default), ``balance`` or ``authentication``.
    :param times: number of requests that meet the fault, at least 1; default 1.
    :param persistent: True applies the fault until the faults are cleared; default False.
    :param seconds: delay of the response, for a ``delay``; default 0.
    :param status: HTTP status of a ``status`` fault, 200 to 599; default 500.
    :param accepted: whether a ``status`` fault processes the request first; default False.
    :param by: author of the response of a ``status`` fault: ``service`` (default), whose error body has an
        ``errorCode``, or ``gateway``, a proxy in front of the service, which returns an HTML page.
    :param retry_after: ``Retry-After`` of a ``status`` fault (RFC 9110 section 10.2.3); None (default) sends no such
        header, except for the 503 of a gateway, which asks for 5 seconds as Varnish does.
    :param body: body of a ``status`` fault, sent unchanged; None (default) sends that of ``by``.
    :param reset: whether a dropped connection is reset (RST); default False, an orderly end (FIN).
    :param charge_after: seconds after which the balance falls by the cost of the send request; default 0, at once.
    :param amount: credits that somebody else spends, for a ``spend``; a negative amount is a top-up; default 0.
    :param when: whether a ``spend`` comes right ``before`` (default) or right ``after`` the request is served.
    :raises ValueError: a field has the wrong type or is out of range.
    """

    kind: FaultKind
    on: Target = "send"
    times: int = 1
    persistent: bool = False
    seconds: float = 0.0
    status: int = 500
    accepted: bool = False
    by: Author = "service"
    retry_after: str | None = None
    body: str | None = None
    reset: bool = False
    charge_after: float = 0.0
    amount: float = 0.0
    when: Moment = "before"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            _require(getattr(self, name) in choices, f"{name} must be one of {', '.join(choices)}")
        for name in ("persistent", "accepted", "reset"):
            _require(isinstance(getattr(self, name), bool), f"{name} must be true or false")
        for name in ("seconds", "charge_after"):
            value = getattr(self, name)
            _require(type(value) in (int, float) and value >= 0, f"{name} must be a number of at least 0")
        _require(type(self.amount) in (int, float) and math.isfinite(self.amount), "amount must be a finite number")
        _require(type(self.times) is int and self.times >= 1, "times must be an integer of at least 1")
        _require(type(self.status) is int and 200 <= self.status <= 599, "status must be 200 to 599")  # noqa: PLR2004 - RFC 9110 section 15
        is_accepting = self.on == "send" and self.is_served
        _require(not self.charge_after or is_accepting, "charge_after needs a fault that accepts a send request")
        for name in ("retry_after", "body"):
            _require(isinstance(getattr(self, name), str | None), f"{name} must be a string")
        header = self.retry_after or ""
        _require(header.isascii() and header.isprintable(), "retry_after must be printable ASCII")

    @property
    def is_served(self) -> bool:
        """Whether the service processes the request, whatever the response is."""
        return self.accepted if self.kind == "status" else self.kind != "drop_before"


def parse_fault(fields: Any) -> Fault:
    """Return the fault that a JSON object describes.

    :param fields: an object with the fields of :class:`Fault`; or a fault, which is returned.
    :raises ValueError: the value is not an object, lacks ``kind``, or has an unknown or invalid field.
    """
    if isinstance(fields, Fault):
        return fields
    _require(isinstance(fields, Mapping) and "kind" in fields, "a fault must be an object with a kind")
    unknown = fields.keys() - set(Fault.__slots__)
    _require(not unknown, f"a fault may have only the fields {', '.join(Fault.__slots__)}")
    return Fault(**fields)


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - a condition, like that of an assertion
    if not condition:
        raise ValueError(message)
