"""The settings of one sandbox."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.sandbox.contract import DESTINATION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path


def named_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return groups of five made-up numbers each, always the same ones for a name."""
    starts = {name: zlib.crc32(name.encode()) % 1000 for name in names}
    return {name: tuple(f"2782{start:03}{member:04}" for member in range(1, 6)) for name, start in starts.items()}


def parse_amount(value: Decimal | float | str) -> Decimal:
    """Return an amount of credits exactly as it was written.

    :raises ValueError: the value is not a finite number of at least 0.
    """
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ValueError("a balance must be a finite number of at least 0")
    return amount


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """The settings of one sandbox. Tokens, secrets and numbers are left out of the ``repr``.

    :param token: bearer token to accept, default ``sandbox-token``; None accepts fetched tokens only.
    :param balance: initial balance in credits, at least 0; default 1000.
    :param post_paid: True deducts nothing and reports a balance of 1000000; default False.
    :param latency: seconds, at least 0, by which every response to a send request is delayed; default 0.
    :param log: the witness, a file to which every accepted message is appended; None, the default, writes no file.
    :param groups: the numbers of each known group; default ``customers`` and ``staff``, five made-up numbers each.
    :param opted_out: numbers that have opted out of messages, in digits with country code; default none.
    :param port: TCP port; 0, the default, picks a free one.
    :param client_id: client id that may fetch tokens; None, the default, refuses every client.
    :param client_secret: API secret of ``client_id``.
    :param keep_alive: seconds, more than 0, after which an idle connection is closed; default 5.
    :param clock: function that returns seconds and never goes back, by which late charges fall due and fetched tokens
        expire; default ``time.monotonic``.
    :raises ValueError: a setting is out of range.
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
    port: int = 0
    client_id: str | None = field(default=None, repr=False)
    client_secret: str | None = field(default=None, repr=False)
    keep_alive: float = 5
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        parse_amount(self.balance)
        if not 0 <= self.port <= 65535:  # noqa: PLR2004 - the largest TCP port, RFC 9293
            raise ValueError("a port must be between 0 and 65535")
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("a client id and a client secret belong together: set both or neither")
        if self.token is None and self.client_id is None:
            raise ValueError("no client could authenticate: set a token, or a client id and secret")
        if isinstance(self.opted_out, str) or not all(map(DESTINATION.fullmatch, self.opted_out)):
            raise ValueError("numbers that have opted out must be digits with country code, such as 27820000001")
        if not (self.latency >= 0 and self.keep_alive > 0):
            raise ValueError("latency must be at least 0, and keep_alive more than 0")
