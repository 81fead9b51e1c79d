"""Some of the messages of a table, in few bytes: the messages that a person approves, as the ledger keeps them.

A plan's id says which table it is of. It does not say which of the table's messages go out, since people may be
suppressed, or have been texted before. As these change, a later plan of the same table may have other messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from airflow_provider_sms.messages.integer_set import are_in

if TYPE_CHECKING:
    import numpy.typing as npt

_CHOSEN, _OTHERS = b"\x00", b"\x01"
_HALVES = np.dtype("<u8")


class MessageSubset(NamedTuple):
    """Some of the messages of a table: half of each key, of these messages or of all others, whichever are fewer.

    :param halves: in ascending order, each once.
    :param are_others: whether they are those of the other messages.
    """

    halves: npt.NDArray[np.uint64]
    are_others: bool

    @classmethod
    def of(cls, chosen: npt.NDArray[np.uint64], others: npt.NDArray[np.uint64]) -> MessageSubset:
        """Return the subset of the chosen messages of a table.

        :param others: the halves of the keys of all other messages of the table.
        """
        are_others = len(others) < len(chosen)
        return cls(np.unique(others if are_others else chosen), are_others)

    @classmethod
    def from_bytes(cls, written: bytes) -> MessageSubset:
        """Return the subset that :meth:`to_bytes` wrote."""
        return cls(np.frombuffer(written, _HALVES, offset=1), written[:1] == _OTHERS)

    def to_bytes(self) -> bytes:
        """Return the subset as the ledger keeps it: a byte that says which, and 8 bytes for each message."""
        return (_OTHERS if self.are_others else _CHOSEN) + self.halves.astype(_HALVES).tobytes()

    def includes(self, other: MessageSubset) -> bool:
        """Return whether every message of another subset of the same table is one of this subset."""
        if self.are_others and other.are_others:
            return bool(are_in(other.halves, self.halves).all())
        if self.are_others:
            return not are_in(self.halves, other.halves).any()
        # Where this one names its messages, they are at most half of the table, and the other one has more.
        return not other.are_others and bool(are_in(self.halves, other.halves).all())
