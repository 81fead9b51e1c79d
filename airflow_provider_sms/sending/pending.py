"""What is still to be claimed: the source's messages, less those that are held already."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, Holder
from airflow_provider_sms.messages.outgoing import Block, Outgoing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.sending.counts import SendCounts

log = logging.getLogger(__name__)

MAX_HELD = 50_000
"""Messages in the hands of other live processes that are remembered before reading on waits for their outcome."""
LOOK_UP = 10_000
"""Messages that are looked up at once."""


class PendingMessages:
    """Reads blocks of messages, keeps what is free to be claimed, and counts the rest.

    What is free waits in its block, and is made into messages only when it is taken; what has been in other hands waits
    as messages.

    :param resend: says of an unknown request whether what it holds is to be claimed again.
    """

    def __init__(
        self,
        blocks: Iterable[Block | Sequence[Outgoing]],
        ledger: CampaignLedger,
        tally: SendCounts,
        *,
        resend: Callable[[int], bool],
    ) -> None:
        self._blocks: Iterator[Block | Sequence[Outgoing]] = iter(blocks)
        self._ledger = ledger
        self._tally = tally
        self._resend = resend
        self._block = Block.of(())
        self._spans: list[range] = []
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
        return bool(self._free or self._spans) or self.readable

    @property
    def empty(self) -> bool:
        """Whether every message was claimed or counted."""
        return self.exhausted and not (self._free or self._spans or self._held)

    def read(self) -> None:
        """Take in one block of the source, once the one before it is used up.

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
            return
        self._block = block if isinstance(block, Block) else Block.of(block)
        self._tally.suppressed += self._block.suppressed
        for start in range(0, len(self._block), LOOK_UP):
            self._look_up(range(start, min(start + LOOK_UP, len(self._block))))
        self._tally.seen.until = max(self._tally.seen.until, self._block.until)
        # Taken from the end.
        self._spans.reverse()

    def _look_up(self, span: range) -> None:
        """Find what of a part of the block is free."""
        block = self._block
        keys = block.keys(span.start, span.stop)
        holders = self._ledger.holders(keys)
        repeats = block.repeats(span.start, span.stop)
        start = span.start
        known = not (self._free.keys().isdisjoint(keys) and self._held.keys().isdisjoint(keys))
        if not known and len(holders) == len(keys) and all(map(_is_sent, holders.values())):
            # A campaign that is sent already, as it is on most reruns.
            self._tally.already_sent += len(keys)
            return
        if holders or repeats or known:
            messages, repeated = block.messages(span.start, span.stop), set(repeats)
            for position, outgoing in zip(span, messages, strict=True):
                if not self._is_settled(outgoing, holders.get(outgoing.key), repeats=position in repeated):
                    continue
                if position > start:
                    self._spans.append(range(start, position))
                start = position + 1
        if start < span.stop:
            self._spans.append(range(start, span.stop))

    def _is_settled(self, outgoing: Outgoing, holder: Holder | None, *, repeats: bool) -> bool:
        """Count a message that is not free, and say whether it is one."""
        if outgoing.key in self._free or outgoing.key in self._held or (repeats and (holder is None or holder.parked)):
            self._tally.add_duplicate(outgoing.row)
        elif holder is not None:
            self._count(outgoing, holder)
        else:
            return False
        return True

    def take(self, size: int) -> tuple[list[Outgoing], dict[bytes, int]]:
        """Give the next messages to claim, and which of them are to be taken over from which unknown request.

        Reads as much of the source as it needs. Fewer than ``size`` come only at the end.

        :raises LedgerError: when the ledger cannot say what is held.
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
            self.look_again()
        chunk = list(islice(self._free.values(), size))
        for outgoing in chunk:
            del self._free[outgoing.key]
        return chunk, {m.key: self._take_over.pop(m.key) for m in chunk if m.key in self._take_over}

    def _taken_from_block(self, size: int) -> list[Outgoing]:
        """Take messages from the first span that is free, as many as it has and at most so many."""
        span = self._spans.pop()
        if len(span) > size:
            self._spans.append(span[size:])
        return self._block.messages(span.start, min(span.stop, span.start + size))

    def sort(self, messages: Sequence[Outgoing], *, turned_away: bool = False) -> None:
        """Keep what is free, count what is not.

        :param turned_away: whether this try has posted them, and the service did not take them: then they are held by
            its own request only because a person has called that accepted, and repeat nothing.
        :raises LedgerError: when the ledger cannot say what is held.
        """
        holders = self._ledger.holders([outgoing.key for outgoing in messages])
        if turned_away:
            holders = {key: holder._replace(mine=False) for key, holder in holders.items()}
        for outgoing in messages:
            if not self._is_settled(outgoing, holders.get(outgoing.key), repeats=False):
                self._free[outgoing.key] = outgoing

    def _count(self, outgoing: Outgoing, holder: Holder) -> None:
        if holder.mine:
            self._tally.add_duplicate(outgoing.row)
        elif holder.state == ACCEPTED and holder.request_id in self._tally.replayed_requests:
            self._tally.met += 1
        elif holder.state == ACCEPTED:
            self._tally.already_sent += 1
        elif holder.state == CLAIMED:
            self._held[outgoing.key] = outgoing
        elif self._resend(holder.request_id):
            self.take_over(outgoing, holder.request_id)
        else:
            self._tally.unknown += 1
            self._tally.met_lost += holder.request_id in self._tally.lost_requests
            self._tally.unknown_requests.add(holder.request_id)

    def take_over(self, outgoing: Outgoing, request_id: int) -> None:
        """Queue a message that is to be posted again, though an unknown request holds it."""
        self._take_over[outgoing.key] = request_id
        self._queue(outgoing)

    def put_back(self, messages: Sequence[Outgoing]) -> None:
        """Queue messages that could not be sorted, or are to go out with others."""
        for outgoing in messages:
            self._queue(outgoing)

    def _queue(self, outgoing: Outgoing) -> None:
        repeat = self._free.get(outgoing.key)
        if repeat is not None:
            # A repeat of it was read meanwhile, and waits here already.
            self._tally.add_duplicate(repeat.row)
        self._free[outgoing.key] = outgoing

    def look_again(self) -> None:
        """Sort anew what other live processes had claimed: they may have sent it, or given it back.

        :raises LedgerError: when the ledger cannot say what is held.
        """
        if self._held:
            held, self._held = self._held, {}
            try:
                self.sort(list(held.values()))
            except LedgerError:
                self._held = held
                raise

    def settle(self, may_look: Callable[[], bool]) -> None:
        """Count what was not reached, by looking it up as long as that is allowed; nothing more is claimed.

        :param may_look: asked before each look.
        :raises LedgerError: when the ledger cannot say what is held.
        :raises Exception: what the source raises.
        """
        self._settle_block(may_look)
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

    def _settle_block(self, may_look: Callable[[], bool]) -> None:
        """Look again at what was free when it was read: since then a repeat of it may have been claimed, and sent."""
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
            if key in self._held:
                self._tally.add_duplicate(outgoing.row)
            elif holder is None:
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
        self._drop_queued()
        self._tally.not_sent += sum(map(len, self._spans))
        self._spans.clear()

    def _drop_queued(self) -> None:
        self.count_unsent(self._free.values(), self._take_over)
        self._free.clear()
        self._take_over.clear()


def _is_sent(holder: Holder) -> bool:
    return holder.state == ACCEPTED and not (holder.mine or holder.parked)
