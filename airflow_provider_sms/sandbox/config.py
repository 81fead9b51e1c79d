"""How one sandbox is set up: account, groups, faults of timing and the shape of its answers."""

from __future__ import annotations

import ipaddress
import zlib
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

KeyCase = Literal["pascal", "camel"]

TOKEN_MINUTES = 1440
KEEP_ALIVE_SECONDS = 5


def made_up_members(name: str) -> tuple[str, ...]:
    """Give five numbers for a group that was named without members.

    :param name: the group's name; the same name gives the same numbers.
    """
    start = zlib.crc32(name.encode()) % 1000
    return tuple(f"2782{start:03}{member:04}" for member in range(1, 6))


def named_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Give groups of made-up members by name.

    :param names: the groups' names.
    """
    return {name: made_up_members(name) for name in names}


def as_money(value: Decimal | float | str) -> Decimal:
    """Read an amount exactly as it was written.

    :param value: an amount of at least 0.
    :raises ValueError: when it is not a finite number of at least 0.
    """
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        raise ValueError("a balance must be a number") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError("a balance must be a finite number of at least 0")
    return amount


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """One sandbox's settings. Tokens, secrets and numbers are left out of its ``repr``.

    :param token: bearer token that is accepted, default ``sandbox-token``; None accepts fetched ones only.
    :param balance: credit at the start, at least 0; default 1000.
    :param post_paid: True deducts nothing and reports a balance of 1000000; default False.
    :param latency: seconds, at least 0, that every answer to a send request waits; default 0.
    :param log: file to which every accepted message is appended; None, the default, keeps no file.
    :param groups: the numbers of each known group; default ``customers`` and ``staff``.
    :param opted_out: numbers that no longer want messages; default none.
    :param host: loopback address to listen on; default ``127.0.0.1``.
    :param port: TCP port; 0, the default, takes a free one.
    :param client_id: client id for ``Authentication``; None, the default, refuses every client.
    :param client_secret: API secret that belongs to ``client_id``.
    :param token_minutes: minutes, at least 0, that a fetched token lives; default 1440.
    :param key_case: ``pascal`` (default) or ``camel`` keys in answers.
    :param wrapped: True wraps send responses as ``{"statusCode", "sendResponse", "errors"}``; default False.
    :param keep_alive: seconds after which an idle connection is closed; default 5.
    :raises ValueError: when a setting is out of its range.
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

    def __post_init__(self) -> None:
        as_money(self.balance)
        if not is_loopback(self.host):
            raise ValueError("the sandbox listens on loopback addresses only, for example 127.0.0.1")
        if not 0 <= self.port <= 65535:  # noqa: PLR2004 - the largest TCP port, RFC 9293
            raise ValueError("a port must be between 0 and 65535")
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("a client id and a client secret belong together: give both or neither")
        if self.token is None and self.client_id is None:
            raise ValueError("no client could ever get in: give a token, or a client id and secret")
        if min(self.latency, self.token_minutes, self.keep_alive) < 0:
            raise ValueError("a time must be at least 0")


def is_loopback(host: str) -> bool:
    """Tell whether a host reaches this machine only.

    :param host: ``localhost`` or an IP address; any other name is refused, since it may resolve elsewhere.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
