"""A message as the engine sends it: in a module of its own, since its name is not public."""

from __future__ import annotations

from typing import NamedTuple


class Outgoing(NamedTuple):
    """A message that is ready to be claimed. Its repr shows neither text nor number.

    :param key: identifies the message within its campaign, 16 bytes.
    :param destination: digits with country code; None for a group.
    :param row: index in the source, from 0.
    :param parts: SMS parts; None for a message to a group, since nobody knows how many people are in it.
    """

    key: bytes
    destination: str | None
    content: str
    row: int = 0
    parts: int | None = None

    def __repr__(self) -> str:
        return f"Outgoing(row={self.row})"
