"""Faults on demand: what goes wrong with the next requests, in the order it was asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

FaultKind = Literal["none", "drop_before", "drop_after", "delay", "status", "truncated", "foreign"]
Target = Literal["send", "balance", "authentication"]
Author = Literal["service", "gateway"]

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
TARGETS: tuple[Target, ...] = get_args(Target)
AUTHORS: tuple[Author, ...] = get_args(Author)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to go wrong.

    :param kind: what goes wrong; ``none`` lets a request through unharmed.
    :param on: the operation it waits for: ``send`` (default), ``balance`` or ``authentication``.
    :param times: requests it lasts for, at least 1; default 1.
    :param persistent: True makes it last until the faults are cleared; default False.
    :param seconds: how late a ``delay`` answers; default 0.
    :param status: HTTP status of a ``status`` fault, 200 to 599; default 500.
    :param accepted: whether a ``status`` fault processes the request first; default False.
    :param by: who writes the response of a ``status`` fault: ``service`` (default), whose error body has an
        ``errorCode``, or ``gateway``, a proxy before it, which shows an HTML page.
    :param retry_after: ``Retry-After`` of a ``status`` fault (RFC 9110 section 10.2.3); None (default): none, but
        for the 503 of a gateway, which asks for 5 seconds as Varnish does.
    :param body: body of a ``status`` fault, as it stands; None (default): that of ``by``.
    :param reset: whether a dropped connection is reset (RST); default False, an orderly end (FIN).
    :raises ValueError: when a field has another type or is out of its range.
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

    def __post_init__(self) -> None:
        _require(self.kind in KINDS, f"kind must be one of {', '.join(KINDS)}")
        _require(self.on in TARGETS, f"on must be one of {', '.join(TARGETS)}")
        _require(self.by in AUTHORS, f"by must be one of {', '.join(AUTHORS)}")
        _require(type(self.times) is int and self.times >= 1, "times must be an integer of at least 1")
        _require(type(self.seconds) in (int, float) and self.seconds >= 0, "seconds must be a number of at least 0")
        _require(type(self.status) is int and 200 <= self.status <= 599, "status must be 200 to 599")  # noqa: PLR2004 - RFC 9110 section 15
        for name in ("persistent", "accepted", "reset"):
            _require(isinstance(getattr(self, name), bool), f"{name} must be true or false")
        for name in ("retry_after", "body"):
            _require(isinstance(getattr(self, name), str | None), f"{name} must be a string")


def parse_fault(fields: Any) -> Fault:
    """Read one fault from its JSON object.

    :param fields: an object with the fields of :class:`Fault`.
    :raises ValueError: when it is no object, lacks ``kind`` or has fields that mean nothing.
    """
    _require(isinstance(fields, Mapping), "a fault must be an object")
    _require("kind" in fields, "a fault must have a kind")
    unknown = fields.keys() - set(Fault.__slots__)
    _require(not unknown, f"a fault has the fields {', '.join(Fault.__slots__)} and no other")
    return Fault(**fields)


class FaultQueue:
    """The faults that still wait for a request. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[Fault, int]] = []
        self._version = 0

    def add(self, faults: Iterable[Fault]) -> None:
        """Put faults behind those that wait.

        :param faults: what goes wrong next, in order.
        """
        with self._lock:
            self._waiting.extend((fault, fault.times) for fault in faults)
            self._version += 1

    def clear(self) -> None:
        """Forget every fault that waits."""
        with self._lock:
            self._waiting.clear()
            self._version += 1

    def take(self, target: Target) -> Fault:
        """Give the next fault of an operation, and use it up by one request.

        :param target: the operation that was asked for.
        :returns: the fault; one of kind ``none`` when nothing waits.
        """
        with self._lock:
            for place, (fault, left) in enumerate(self._waiting):
                if fault.on == target:
                    if fault.persistent:
                        pass
                    elif left > 1:
                        self._waiting[place] = (fault, left - 1)
                    else:
                        del self._waiting[place]
                    self._version += not fault.persistent
                    return fault
        return Fault("none")

    @property
    def version(self) -> int:
        """A number that is another one whenever the faults that wait are others."""
        with self._lock:
            return self._version

    def pending(self) -> list[dict[str, Any]]:
        """Give the faults that wait as JSON objects, ``times`` being what is left of each."""
        with self._lock:
            return [{**asdict(fault), "times": left} for fault, left in self._waiting]

    def first(self, limit: int) -> tuple[int, list[tuple[Fault, int]]]:
        """Give the faults that come next, without copying all of them.

        :param limit: faults to give, at most.
        :returns: the number of all that wait, and the first of them with what is left of each, in requests.
        """
        with self._lock:
            return len(self._waiting), self._waiting[:limit]


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence at its calls
    if not holds:
        raise ValueError(otherwise)
