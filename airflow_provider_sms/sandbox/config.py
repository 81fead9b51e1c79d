"""The settings of one sandbox."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path  # noqa: TC003 - pydantic reads the types of the fields
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from airflow_provider_sms.sandbox.contract import DESTINATION

if TYPE_CHECKING:
    Credits: TypeAlias = Decimal | float | str
else:
    Credits = Annotated[Decimal, Field(ge=0)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", hide_input_in_errors=True))
class SandboxConfig:
    """The settings of one sandbox. Tokens, secrets and numbers are left out of the ``repr``.

    :param token: bearer token to accept, default ``sandbox-token``; None accepts fetched tokens only.
    :param balance: initial balance in credits, at least 0; default 1000.
    :param post_paid: True deducts nothing and reports a balance of 1000000; default False.
    :param latency: seconds, at least 0, by which every response to a send request is delayed; default 0.
    :param log: the witness, a file to which every accepted message is appended; None, the default, writes no file.
    :param groups: names of the known groups, each with five made-up members; default ``customers`` and ``staff``.
    :param opted_out: numbers that have opted out of messages, in digits with country code; default none.
    :param port: TCP port; 0, the default, picks a free one.
    :param client_id: client id that may fetch tokens; None, the default, refuses every client.
    :param client_secret: API secret of ``client_id``.
    :param keep_alive: seconds, more than 0, after which an idle connection is closed; default 5.
    :raises ValueError: a setting is out of range.
    """

    token: str | None = Field(default="sandbox-token", repr=False)
    balance: Credits = Decimal(1000)
    post_paid: bool = False
    latency: float = Field(default=0.0, ge=0)
    log: Path | None = None
    groups: tuple[str, ...] = ("customers", "staff")
    opted_out: frozenset[Annotated[str, Field(pattern=rf"^{DESTINATION.pattern}$")]] = Field(
        default=frozenset(), repr=False
    )
    port: int = Field(default=0, ge=0, le=65535)
    client_id: str | None = Field(default=None, repr=False)
    client_secret: str | None = Field(default=None, repr=False)
    keep_alive: float = Field(default=5.0, gt=0)

    def __post_init__(self) -> None:
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("a client id and a client secret belong together: set both or neither")
        if self.token is None and self.client_id is None:
            raise ValueError("no client could authenticate: set a token, or a client id and secret")
