"""What is still to be claimed: the source's messages, less those that are held already."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.sending.claims import ACCEPTED, CLAIMED, Holder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sms.sending.ledger import CampaignLedger
    from airflow_provider_sms.sending.tally import Tally

log = logging.getLogger(__name__)

MAX_HELD = 50_000
"""Messages in the hands of other live processes that are remembered before reading on waits for their outcome."""


class Outgoing(NamedTuple):
    """A message that is ready to be claimed.

    :param key: identifies it within its campaign, 16 bytes.
    :param destination: digits with country code; None for a group.
    :param row: index in the source, from 0.
    """

    key: bytes
    destination: str | None
    content: str
    row: int = 0


class Backlog:
    """Reads blocks of messages, keeps what is free to be claimed, and counts the rest.

    :param resend: says of an unknown request whether what it holds is to be claimed again.
    """

    def __init__(
        self,
        blocks: Iterable[Sequence[Outgoing]],
        ledger: CampaignLedger,
        tally: Tally,
        *,
        resend: Callable[[int], bool],
    ) -> None:
        self._blocks: Iterator[Sequence[Outgoing]] = iter(blocks)
        self._ledger = ledger
        self._tally = tally
        self._resend = resend
        self._free: dict[bytes, Outgoing] = {}
        self._take_over: dict[bytes, int] = {}
        self._held: dict[bytes, Outgoing] = {}
        self.exhausted = False

    @property
    def readable(self) -> bool:
        """Whether a block may be read now."""
        return not self.exhausted and len(self._held) < MAX_HELD

    @property
    def ready(self) -> bool:
        """Whether there is anything to claim, or to read in search of it."""
        return bool(self._free) or self.readable

    @property
    def empty(self) -> bool:
        """Whether every message was claimed or counted."""
        return self.exhausted and not self._free and not self._held

    def read(self) -> None:
        """Take in one block of the source.

        :raises LedgerError: when the ledger cannot say what is held.
        :raises Exception: what the source raises.
        """
        try:
            block = next(self._blocks, None)
        except Exception:
            self.exhausted = True
            raise
        if block is None:
            self.exhausted = True
        else:
            self.sort(block)
            if block:
                self._tally.seen.until = block[-1].row + 1

    def take(self, size: int) -> tuple[list[Outgoing], dict[bytes, int]]:
        """Give the next messages to claim, and which of them are to be taken over from which unknown request.

        Reads as much of the source as it needs. Fewer than ``size`` come only at the end.
        """
        while len(self._free) < size and self.readable:
            self.read()
        if not self._free:
            self.look_again()
        chunk = list(islice(self._free.values(), size))
        for outgoing in chunk:
            del self._free[outgoing.key]
        return chunk, {m.key: self._take_over.pop(m.key) for m in chunk if m.key in self._take_over}

    def sort(self, messages: Sequence[Outgoing]) -> None:
        """Keep what is free, count what is not."""
        holders = self._ledger.holders([outgoing.key for outgoing in messages])
        for outgoing in messages:
            key = outgoing.key
            if key in self._free or key in self._held:
                self._tally.add_duplicate(outgoing.row)
            elif (holder := holders.get(key)) is not None:
                self._count(outgoing, holder)
            else:
                self._free[key] = outgoing

    def _count(self, outgoing: Outgoing, holder: Holder) -> None:
        if holder.mine:
            self._tally.add_duplicate(outgoing.row)
        elif holder.state == ACCEPTED:
            self._tally.already_sent += 1
        elif holder.state == CLAIMED:
            self._held[outgoing.key] = outgoing
        elif self._resend(holder.request_id):
            self.take_over(outgoing, holder.request_id)
        else:
            self._tally.unknown += 1
            self._tally.unknown_requests.add(holder.request_id)

    def take_over(self, outgoing: Outgoing, request_id: int) -> None:
        """Queue a message that is to be posted again, though an unknown request holds it."""
        self._take_over[outgoing.key] = request_id
        self._queue(outgoing)

    def put_back(self, messages: Sequence[Outgoing]) -> None:
        """Queue messages again that could not be sorted."""
        for outgoing in messages:
            self._queue(outgoing)

    def _queue(self, outgoing: Outgoing) -> None:
        repeat = self._free.get(outgoing.key)
        if repeat is not None:
            # A repeat of it was read meanwhile, and waits here already.
            self._tally.add_duplicate(repeat.row)
        self._free[outgoing.key] = outgoing

    def look_again(self) -> None:
        """Sort anew what other live processes had claimed: they may have sent it, or given it back."""
        if self._held:
            held, self._held = self._held, {}
            try:
                self.sort(list(held.values()))
            except LedgerError:
                self._held = held
                raise

    def settle(self, may_look: Callable[[], bool]) -> None:
        """Count what was not reached, by looking it up as long as that is allowed; nothing more is claimed.

        :param may_look: asked before each block.
        :raises LedgerError: when the ledger cannot say what is held.
        :raises Exception: what the source raises.
        """
        if may_look():
            self._look_at_free()
        self._drop_free()
        while not self.exhausted:
            if not may_look():
                log.warning("Ended before every row was looked up: the others count as not sent")
                break
            if not self.readable:
                self.look_again()
            self.read()
            self._drop_free()
        if may_look():
            self.look_again()

    def _look_at_free(self) -> None:
        """Look again at what was free when it was read: since then a repeat of it may have been claimed, and sent."""
        holders = self._ledger.holders(list(self._free))
        free, self._free = self._free, {}
        for key, outgoing in free.items():
            holder = holders.get(key)
            if holder is not None and holder.request_id == self._take_over.get(key):
                self._free[key] = outgoing
                continue
            self._take_over.pop(key, None)
            if holder is None:
                self._free[key] = outgoing
            else:
                self._count(outgoing, holder)

    def drop(self) -> None:
        """Count all that is left; what others hold is unknown here, since they have not recorded an outcome."""
        self._drop_free()
        self._tally.unknown += len(self._held)
        self._held.clear()

    def count_unsent(self, messages: Iterable[Outgoing], take_over: Mapping[bytes, int]) -> None:
        """Count messages that do not go out; what was to be taken over from an unknown request is its again."""
        for outgoing in messages:
            if outgoing.key in take_over:
                self._tally.unknown += 1
                self._tally.unknown_requests.add(take_over[outgoing.key])
            else:
                self._tally.not_sent += 1

    def _drop_free(self) -> None:
        self.count_unsent(self._free.values(), self._take_over)
        self._free.clear()
        self._take_over.clear()
