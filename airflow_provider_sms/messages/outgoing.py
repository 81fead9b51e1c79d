"""Outgoing messages, one by one or as columns: a text, its destination, and the key that is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Outgoing(NamedTuple):
    """A message that is ready to be claimed.

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MessageColumns(Sequence[Outgoing]):
    """Messages as columns of one length: a message becomes an object only when it is asked for.

    One object for each message in flight would be thousands, which Python's garbage collector would visit repeatedly.
    """

    keys: list[bytes]
    destinations: list[str | None]
    contents: list[str]
    rows: list[int]
    parts: list[int | None]

    @classmethod
    def of(cls, messages: Sequence[Outgoing]) -> MessageColumns:
        """Return messages as columns, in their order."""
        if isinstance(messages, cls):
            return messages
        return cls(
            [message.key for message in messages],
            [message.destination for message in messages],
            [message.content for message in messages],
            [message.row for message in messages],
            [message.parts for message in messages],
        )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Outgoing]:
        columns = zip(self.keys, self.destinations, self.contents, self.rows, self.parts, strict=True)
        # The same as Outgoing(…) for each, without calling a Python function.
        make = cast("Callable[[type[Outgoing], tuple[Any, ...]], Outgoing]", tuple.__new__)
        return map(make, repeat(Outgoing), columns)

    @overload
    def __getitem__(self, place: int) -> Outgoing: ...

    @overload
    def __getitem__(self, place: slice) -> list[Outgoing]: ...

    def __getitem__(self, place: int | slice) -> Outgoing | list[Outgoing]:
        if isinstance(place, slice):
            return list(self)[place]
        return Outgoing(
            self.keys[place], self.destinations[place], self.contents[place], self.rows[place], self.parts[place]
        )
