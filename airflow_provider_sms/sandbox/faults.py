"""Faults on demand: what goes wrong with a request."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, FiniteFloat
from pydantic.dataclasses import dataclass

FaultKind = Literal["none", "drop_before", "drop_after", "delay", "status", "truncated", "spend"]
Target = Literal["send", "balance", "authentication"]
Author = Literal["service", "gateway"]
Moment = Literal["before", "after"]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True))
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
    :param amount: credits that somebody else spends, for a ``spend``; a negative amount is a top-up; default 0.
    :param when: whether a ``spend`` comes right ``before`` (default) or right ``after`` the request is served.
    :raises ValueError: a field has the wrong type or is out of range.
    """

    kind: FaultKind
    on: Target = "send"
    times: int = Field(default=1, ge=1)
    persistent: bool = False
    seconds: float = Field(default=0.0, ge=0)
    status: int = Field(default=500, ge=200, le=599)  # RFC 9110 section 15
    accepted: bool = False
    by: Author = "service"
    retry_after: str | None = Field(default=None, pattern="^[ -~]*$")
    body: str | None = None
    reset: bool = False
    amount: FiniteFloat = 0.0
    when: Moment = "before"

    @property
    def is_served(self) -> bool:
        """Whether the service processes the request, whatever the response is."""
        return self.accepted if self.kind == "status" else self.kind != "drop_before"
