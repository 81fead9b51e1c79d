"""The messages that are still to be claimed: those of the source, less those that a request holds already.

A message that another task or a second copy of this one has claimed is left to that task or copy: here it waits until
the claim has an outcome or has lapsed, and counts as already sent, unknown, or free again. While the process of a
lapsed claim may still record its outcome, the request is counted separately: a later attempt looks again.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED
from airflow_provider_sms.messages.blocks import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.holders import Holder
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.sending.counts import SendCounts

log = logging.getLogger(__name__)

MAX_HELD = 50_000
"""The most messages held by other live processes that are remembered: beyond that, reading waits for their outcome."""
LOOK_UP = 10_000
"""Messages that are looked up at once: enough that a statement costs little, few enough for a steady flow."""


class PendingMessages:
    """Reads blocks of messages, keeps those that are free to be claimed, and counts the others.

    A free row waits in its block, and becomes a message only when it is claimed; messages that another request has held
    wait as messages.

    :param resend: takes the key of an unknown message, and returns whether it is claimed again.
    :param adopts: takes an unknown request of another attempt, and returns whether it may still be closed, so that its
        messages are kept.
    :param planned: takes rows of the table, and returns which of them the plan has: no other message is sent. None
        means that the plan does not bind the send.
    """

    def __init__(
        self,
        blocks: Iterable[Block | Sequence[Outgoing]],
        ledger: CampaignLedger,
        counts: SendCounts,
        *,
        resend: Callable[[bytes], bool],
        adopts: Callable[[int], bool] = lambda _: False,
        planned: Callable[[Sequence[int]], Sequence[bool]] | None = None,
    ) -> None:
        self._blocks: Iterator[Block | Sequence[Outgoing]] = iter(blocks)
        self._ledger = ledger
        self._counts = counts
        self._resend = resend
        self._adopts = adopts
        self._planned = planned
        self._adopted: dict[int, list[Outgoing]] = {}
        self._block = Block.of(())
        self._spans: list[range] = []
        self._free: dict[bytes, Outgoing] = {}
        self._take_over: dict[bytes, int] = {}
        self._held: dict[bytes, tuple[Outgoing, int]] = {}
        """Messages that requests of other processes hold, each with the request."""
        self.exhausted = False

    @property
    def readable(self) -> bool:
        """Whether a block may be read now."""
        return not self.exhausted and len(self._held) < MAX_HELD

    @property
    def ready(self) -> bool:
        """Whether there are messages to claim, or blocks to read in search of them."""
        return bool(self._free or self._spans) or self.readable

    @property
    def empty(self) -> bool:
        """Whether every message has been claimed or counted."""
        return self.exhausted and not (self._free or self._spans or self._held or self._adopted)

    def read(self) -> None:
        """Read one block of the source, once the one before it is used up.

        :raises LedgerError: when the ledger cannot be read.
        :raises Exception: what the source raises.
        """
        try:
            block = next(self._blocks, None)
        except Exception:
            self.exhausted = True
            raise
        if block is None:
            self.exhausted = True
            return
        self._block = block if isinstance(block, Block) else Block.of(block)
        self._counts.unread_unknown = 0
        for start in range(0, len(self._block), LOOK_UP):
            self._look_up(range(start, min(start + LOOK_UP, len(self._block))))
        # Taken from the end.
        self._spans.reverse()

    def _look_up(self, span: range) -> None:
        """Find the free messages of a stretch of the block."""
        block, start = self._block, span.start
        holders = self._ledger.holders(block.keys(span.start, span.stop))
        planned = self._are_planned(block.row_column[span.start : span.stop].tolist())
        if holders or not all(planned):
            messages = block.messages(span.start, span.stop)
            for position, outgoing, is_planned in zip(span, messages, planned, strict=True):
                if not self._is_settled(outgoing, holders.get(outgoing.key), is_planned=is_planned):
                    continue
                if position > start:
                    self._spans.append(range(start, position))
                start = position + 1
        if start < span.stop:
            self._spans.append(range(start, span.stop))

    def _are_planned(self, rows: Sequence[int]) -> Sequence[bool]:
        return [True] * len(rows) if self._planned is None else self._planned(rows)

    def _is_settled(self, outgoing: Outgoing, holder: Holder | None, *, is_planned: bool) -> bool:
        """Return whether a message is not free, and count it if so."""
        if holder is not None:
            self._count(outgoing, holder, is_planned=is_planned)
        elif not is_planned:
            self._counts.add_unplanned()
        else:
            return False
        return True

    def next_chunk(self, size: int) -> tuple[Sequence[Outgoing], dict[bytes, int]]:
        """Return the next messages to claim, and the unknown requests that some of them are taken over from, by key.

        Reads as much of the source as it needs. Returns fewer than ``size`` only at the end.

        :raises LedgerError: when the ledger cannot be read.
        :raises Exception: what the source raises.
        """
        moved = False
        while True:
            if not moved and self._spans and len(self._spans[-1]) >= size:
                return self._taken_from_block(size), {}
            if len(self._free) >= size or not (self._spans or self.readable):
                break
            if self._spans:
                self.put_back(self._taken_from_block(size - len(self._free)))
                moved = True
            else:
                self.read()
        if not self._free:
            self._look_again()
        chunk = list(islice(self._free.values(), size))
        for outgoing in chunk:
            del self._free[outgoing.key]
        return chunk, {m.key: self._take_over.pop(m.key) for m in chunk if m.key in self._take_over}

    def _taken_from_block(self, size: int) -> Sequence[Outgoing]:
        """Return the messages of the first free span, at most ``size`` of them."""
        span = self._spans.pop()
        if len(span) > size:
            self._spans.append(span[size:])
        return self._block.columns(span.start, min(span.stop, span.start + size))

    def reconcile(self, messages: Sequence[Outgoing], *, turned_away: bool = False) -> None:
        """Look messages up again: keep those that are free, count the others.

        :param turned_away: whether this attempt has posted them, and the service did not take them: then its own
            request holds them only because a person has called it accepted, and they are no duplicates.
        :raises LedgerError: when the ledger cannot be read.
        """
        keys = [outgoing.key for outgoing in messages]
        holders = self._ledger.holders(keys)
        if turned_away:
            holders = {key: holder._replace(mine=False) for key, holder in holders.items()}
        planned = self._are_planned([outgoing.row for outgoing in messages])
        for outgoing, is_planned in zip(messages, planned, strict=True):
            if not self._is_settled(outgoing, holders.get(outgoing.key), is_planned=is_planned):
                self._free[outgoing.key] = outgoing

    def _count(self, outgoing: Outgoing, holder: Holder, *, is_planned: bool = True) -> None:
        if holder.mine:
            self._counts.duplicate += 1
        elif holder.state == ACCEPTED:
            self._counts.already_sent += 1
        elif holder.state == CLAIMED:
            self._held[outgoing.key] = (outgoing, holder.request_id)
        elif is_planned and self._resend(outgoing.key) and not holder.awaited:
            self.take_over(outgoing, holder.request_id)
        elif self._adopts(holder.request_id):
            self._adopted.setdefault(holder.request_id, []).append(outgoing)
        else:
            self._count_unknown(holder)

    def _count_unknown(self, holder: Holder) -> None:
        if holder.awaited:
            self._counts.add_unrecorded(holder.request_id, 1)
        else:
            self._counts.add_unknown(holder.request_id, 1)

    def take_adopted(self) -> dict[int, list[Outgoing]]:
        """Return, once each, the messages found in unknown requests that may still be closed."""
        adopted, self._adopted = self._adopted, {}
        return adopted

    def take_over(self, outgoing: Outgoing, request_id: int) -> None:
        """Queue a message that is posted again although an unknown request holds it."""
        self._take_over[outgoing.key] = request_id
        self._free[outgoing.key] = outgoing

    def put_back(self, messages: Sequence[Outgoing]) -> None:
        """Queue messages that could not be looked up, or that fill up a chunk with others."""
        for outgoing in messages:
            self._free[outgoing.key] = outgoing

    def _look_again(self) -> None:
        """Look up the messages that other live processes held: they may have been sent, or given back."""
        if self._held:
            held, self._held = self._held, {}
            try:
                self.reconcile([outgoing for outgoing, _ in held.values()])
            except LedgerError:
                self._held = held
                raise

    def count_remaining(self, may_look: Callable[[], bool]) -> None:
        """Count every message that was not claimed, looking each up as long as allowed; nothing more is claimed.

        Messages that other processes still hold are unknown here, since no outcome of theirs is recorded.

        :param may_look: asked before each look at the ledger.
        :raises LedgerError: when the ledger cannot be read; the messages that were read are counted all the same.
        :raises Exception: what the source raises; likewise.
        """
        try:
            self._look_up_remaining(may_look)
        finally:
            self._drop_free()
            for request_id, messages in self.take_adopted().items():
                self._counts.add_unknown(request_id, len(messages))
            for _, request_id in self._held.values():
                self._counts.add_unrecorded(request_id, 1)
            self._held.clear()

    def _look_up_remaining(self, may_look: Callable[[], bool]) -> None:
        self._look_up_block(may_look)
        while not self.exhausted:
            if not may_look():
                log.warning("Ended before every row was looked up: the rest count as not sent")
                break
            if not self.readable:
                self._look_again()
            self.read()
            self._drop_free()
        if may_look():
            self._look_again()

    def _look_up_block(self, may_look: Callable[[], bool]) -> None:
        """Look up the messages that were free when they were read: others may have claimed and sent them since."""
        while (self._free or self._spans) and may_look():
            if not self._free:
                self.put_back(self._taken_from_block(LOOK_UP))
            self._look_at_free()
            self._drop_queued()
        self._drop_free()

    def _look_at_free(self) -> None:
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

    def count_unsent(self, messages: Iterable[Outgoing], take_over: Mapping[bytes, int]) -> None:
        """Count messages that do not go out; one that was to be taken over stays with its unknown request."""
        for outgoing in messages:
            if outgoing.key in take_over:
                self._counts.add_unknown(take_over[outgoing.key], 1)
            else:
                self._counts.not_sent += 1

    def _drop_free(self) -> None:
        self._drop_queued()
        self._counts.not_sent += sum(map(len, self._spans))
        self._spans.clear()

    def _drop_queued(self) -> None:
        self.count_unsent(self._free.values(), self._take_over)
        self._free.clear()
        self._take_over.clear()
