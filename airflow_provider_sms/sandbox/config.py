"""The settings of one sandbox: account, access, groups, timing and the form of its responses."""

from __future__ import annotations

import ipaddress
import re
import time
import zlib
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

KeyCase = Literal["pascal", "camel"]

DESTINATION = re.compile(r"[1-9][0-9]{6,14}")  # ITU-T E.164: country code first, at most 15 digits
TOKEN_MINUTES = 1440
"""Lifetime of a fetched token in minutes: one day."""
KEEP_ALIVE_SECONDS = 5
"""Seconds after which an idle connection is closed: uvicorn's default."""


def made_up_members(name: str) -> tuple[str, ...]:
    """Return five made-up numbers for a group.

    :param name: the group's name; the same name always yields the same numbers.
    """
    start = zlib.crc32(name.encode()) % 1000
    return tuple(f"2782{start:03}{member:04}" for member in range(1, 6))


def named_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return groups of made-up members by name.

    :param names: the groups' names.
    """
    return {name: made_up_members(name) for name in names}


def parse_amount(value: Decimal | float | str, name: str = "balance") -> Decimal:
    """Return an amount exactly as it was written.

    :param value: credits, at least 0.
    :param name: the name of the amount, for the error.
    :raises ValueError: when the value is not a finite number of at least 0.
    """
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        raise ValueError(f"{name} must be a number") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{name} must be a finite number of at least 0")
    return amount


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """The settings of one sandbox. Tokens, secrets and numbers are left out of the ``repr``.

    Its durations are numbers. Unlike the operators, it takes no ``timedelta``.

    :param token: bearer token to accept, default ``sandbox-token``; None accepts fetched tokens only.
    :param balance: initial balance in credits, at least 0; default 1000.
    :param post_paid: True deducts nothing and reports a balance of 1000000; default False.
    :param latency: seconds, at least 0, by which every response to a send request is delayed; default 0.
    :param log: the witness, a file to which every accepted message is appended; None, the default, writes no file.
    :param groups: the numbers of each known group; default ``customers`` and ``staff``, five made-up numbers each.
    :param opted_out: numbers that have opted out of messages, in digits with country code; default none.
    :param host: loopback address to listen on; default ``127.0.0.1``.
    :param port: TCP port; 0, the default, picks a free one.
    :param client_id: client id that may fetch tokens; None, the default, refuses every client.
    :param client_secret: API secret of ``client_id``.
    :param token_minutes: lifetime of a fetched token in minutes, at least 0; default 1440.
    :param key_case: ``pascal`` (default) or ``camel`` keys in responses.
    :param wrapped: True wraps send responses as ``{"statusCode", "sendResponse", "errors"}``; default False.
    :param keep_alive: seconds, at least 0, after which an idle connection is closed; default 5.
    :param clock: function that returns seconds and never goes back, by which late charges fall due; default
        ``time.monotonic``.
    :raises ValueError: when a setting is out of range.
    """

    token: str | None = field(default="sandbox-token", repr=False)
    balance: Decimal | float | str = 1000
    post_paid: bool = False
    latency: float = 0.0
    log: Path | str | None = None
    groups: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: named_groups(("customers", "staff")), repr=False
    )
    opted_out: Collection[str] = field(default=frozenset(), repr=False)
    host: str = "127.0.0.1"
    port: int = 0
    client_id: str | None = field(default=None, repr=False)
    client_secret: str | None = field(default=None, repr=False)
    token_minutes: float = TOKEN_MINUTES
    key_case: KeyCase = "pascal"
    wrapped: bool = False
    keep_alive: float = KEEP_ALIVE_SECONDS
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        parse_amount(self.balance)
        if not is_loopback(self.host):
            raise ValueError("the sandbox listens on loopback addresses only, for example 127.0.0.1")
        if not 0 <= self.port <= 65535:  # noqa: PLR2004 - the largest TCP port, RFC 9293
            raise ValueError("a port must be between 0 and 65535")
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("a client id and a client secret belong together: set both or neither")
        if self.token is None and self.client_id is None:
            raise ValueError("no client could authenticate: set a token, or a client id and secret")
        if isinstance(self.opted_out, str) or not all(map(DESTINATION.fullmatch, self.opted_out)):
            raise ValueError("numbers that have opted out must be digits with country code, such as 27820000001")
        if not all(each >= 0 for each in (self.latency, self.token_minutes, self.keep_alive)):
            raise ValueError("latency, token_minutes and keep_alive must be at least 0")


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from this machine.

    :param host: ``localhost`` or an IP address; False for any other name, which may resolve to another machine.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
