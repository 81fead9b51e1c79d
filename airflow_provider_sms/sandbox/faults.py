"""Faults on demand: what goes wrong with the next requests, in the order in which the faults were added."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

FaultKind = Literal[
    "none", "drop_before", "drop_after", "delay", "status", "truncated", "foreign", "late_charge", "spend"
]
Target = Literal["send", "balance", "authentication"]
Author = Literal["service", "gateway"]
Moment = Literal["before", "after"]

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
TARGETS: tuple[Target, ...] = get_args(Target)
AUTHORS: tuple[Author, ...] = get_args(Author)
MOMENTS: tuple[Moment, ...] = get_args(Moment)

ACCEPTING: frozenset[FaultKind] = frozenset({"drop_after", "delay", "truncated", "foreign", "late_charge"})
"""Kinds with which a send request is always accepted, so that its cost can be charged late."""


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
    :param charge_after: seconds after which the balance falls by the cost of a send request, for a fault that accepts
        it: any but ``none``, ``drop_before``, ``spend`` and a ``status`` that is not ``accepted``; default 0, at once.
    :param amount: credits that somebody else spends, for a ``spend``; a negative amount is a top-up; default 0.
    :param when: whether a ``spend`` comes right ``before`` (default) or right ``after`` the request is served.
    :raises ValueError: when a field has the wrong type or is out of range.
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
        _require(self.kind in KINDS, f"kind must be one of {', '.join(KINDS)}")
        _require(self.on in TARGETS, f"on must be one of {', '.join(TARGETS)}")
        _require(self.by in AUTHORS, f"by must be one of {', '.join(AUTHORS)}")
        _require(type(self.times) is int and self.times >= 1, "times must be an integer of at least 1")
        for name in ("seconds", "charge_after"):
            value = getattr(self, name)
            _require(type(value) in (int, float) and value >= 0, f"{name} must be a number of at least 0")
        _require(type(self.amount) in (int, float) and math.isfinite(self.amount), "amount must be a finite number")
        _require(self.when in MOMENTS, f"when must be one of {', '.join(MOMENTS)}")
        _require(type(self.status) is int and 200 <= self.status <= 599, "status must be 200 to 599")  # noqa: PLR2004 - RFC 9110 section 15
        is_accepting = self.kind in ACCEPTING or (self.kind == "status" and self.accepted)
        if self.charge_after:
            _require(self.on == "send" and is_accepting, "charge_after needs a fault that accepts a send request")
        for name in ("persistent", "accepted", "reset"):
            _require(isinstance(getattr(self, name), bool), f"{name} must be true or false")
        for name in ("retry_after", "body"):
            _require(isinstance(getattr(self, name), str | None), f"{name} must be a string")
        header = self.retry_after or ""
        _require(header.isascii() and header.isprintable(), "retry_after must be printable ASCII")


def parse_fault(fields: Any) -> Fault:
    """Return the fault that a JSON object describes.

    :param fields: an object with the fields of :class:`Fault`.
    :raises ValueError: when the value is not an object, lacks ``kind``, or has an unknown or invalid field.
    """
    _require(isinstance(fields, Mapping), "a fault must be an object")
    _require("kind" in fields, "a fault must have a kind")
    unknown = fields.keys() - set(Fault.__slots__)
    _require(not unknown, f"a fault may have only the fields {', '.join(Fault.__slots__)}")
    return Fault(**fields)


class FaultQueue:
    """The faults that are still waiting for a request. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[Fault, int]] = []
        self._version = 0

    def add(self, faults: Iterable[Fault]) -> None:
        """Append faults to the waiting ones.

        :param faults: the faults, in the order in which requests will meet them.
        """
        with self._lock:
            self._waiting.extend((fault, fault.times) for fault in faults)
            self._version += 1

    def clear(self) -> None:
        """Remove all waiting faults."""
        with self._lock:
            self._waiting.clear()
            self._version += 1

    def take(self, target: Target) -> Fault:
        """Return the next fault of an operation, and count one request against it.

        :param target: the operation of the request.
        :returns: the fault; one of kind ``none`` when no fault waits.
        """
        with self._lock:
            for position, (fault, left) in enumerate(self._waiting):
                if fault.on == target:
                    if fault.persistent:
                        pass
                    elif left > 1:
                        self._waiting[position] = (fault, left - 1)
                    else:
                        del self._waiting[position]
                    self._version += not fault.persistent
                    return fault
        return Fault("none")

    @property
    def version(self) -> int:
        """A number that changes whenever the waiting faults change."""
        with self._lock:
            return self._version

    def pending(self) -> list[dict[str, Any]]:
        """Return the waiting faults as JSON objects, with the requests left in ``times``."""
        with self._lock:
            return [{**asdict(fault), "times": left} for fault, left in self._waiting]

    def first(self, limit: int) -> tuple[int, list[tuple[Fault, int]]]:
        """Return the next faults, without copying all of them.

        :param limit: maximum number of faults.
        :returns: the number of all waiting faults, and the first of them, each with its requests left.
        """
        with self._lock:
            return len(self._waiting), self._waiting[:limit]


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - a condition, like that of an assertion
    if not condition:
        raise ValueError(message)
