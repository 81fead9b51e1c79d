"""What a send came to, counted as it happens, in memory that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_sms.service.responses import ErrorReport, SendResponse


class SeenRows:
    """Which rows of the source were looked up, and which of those repeat another: one bit a row."""

    def __init__(self) -> None:
        self.until = 0
        """Rows before this one were looked up."""
        self._repeats = bytearray()

    def add_repeat(self, row: int) -> None:
        """Note that a row is the message of another one."""
        byte = row >> 3
        if byte >= len(self._repeats):
            self._repeats.extend(bytes(byte + 1 - len(self._repeats)))
        self._repeats[byte] |= 1 << (row & 7)

    def repeats(self, first: int, count: int) -> set[int]:
        """Give the rows that repeat another, of ``count`` rows from ``first`` on."""
        if not any(self._repeats[first >> 3 : (first + count + 7) >> 3]):
            return set()
        last = min(first + count, len(self._repeats) << 3)
        return {row for row in range(first, last) if self._repeats[row >> 3] >> (row & 7) & 1}


@dataclass(slots=True)
class Tally:
    """Counts of messages by what became of them, and sums over the service's answers.

    :param accepted: the service said that it took them.
    :param unknown: posted by this or an earlier try, and whether the service took them is not known.
    :param not_sent: not posted, or posted and surely not taken.
    :param duplicate: repeats of a message of this try.
    :param already_sent: held by a request that was accepted before this try met them.
    :param requests: posted by this try and accepted or unknown.
    :param partial: messages that the service left out of requests that it accepted.
    :param event_ids: by request.
    :param unknown_requests: those of the ledger that hold what is unknown.
    :param max_event_ids: how many event ids are kept.
    :param seen: the rows that were looked up, and those counted as duplicate.
    """

    accepted: int = 0
    unknown: int = 0
    not_sent: int = 0
    duplicate: int = 0
    already_sent: int = 0
    requests: int = 0
    partial: int = 0
    parts: int = 0
    cost: Decimal = Decimal(0)
    remaining_balance: Decimal | None = None
    event_ids: dict[int, int] = field(default_factory=dict)
    cost_breakdown: dict[str, tuple[Decimal, int]] = field(default_factory=dict)
    error_report: dict[str, int] = field(
        default_factory=lambda: {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": 0}
    )
    unknown_requests: set[int] = field(default_factory=set)
    max_event_ids: int = 1000
    seen: SeenRows = field(default_factory=SeenRows)

    @property
    def settled(self) -> int:
        """The messages that this try is done with."""
        return self.accepted + self.unknown + self.not_sent + self.duplicate + self.already_sent

    def add_duplicate(self, row: int) -> None:
        """Count a row whose message another row of this try is."""
        self.duplicate += 1
        self.seen.add_repeat(row)

    def add_accepted(self, request_id: int, submitted: int, response: SendResponse) -> None:
        """Count a request that the service answered; it may have taken fewer messages than were submitted."""
        taken = min(submitted, response.messages)
        self.accepted += taken
        self.not_sent += submitted - taken
        self.partial += submitted - taken
        self.requests += 1
        self.parts += response.parts
        self.cost += response.cost
        self.remaining_balance = response.remaining_balance
        if self.requests <= self.max_event_ids:
            self.event_ids[request_id] = response.event_id
        for line in response.cost_breakdown:
            cost, quantity = self.cost_breakdown.get(line.network, (Decimal(0), 0))
            self.cost_breakdown[line.network] = (cost + line.cost, quantity + line.quantity)
        for name, count in reported(response.error_report).items():
            self.error_report[name] = self.error_report.get(name, 0) + count


def reported(report: ErrorReport) -> dict[str, int]:
    """Give an error report as counts only: its faults hold numbers."""
    return {
        "NoNetwork": report.no_network,
        "Duplicates": report.duplicates,
        "OptedOuts": report.opted_outs,
        "Faults": len(report.faults),
        **report.other,
    }
