"""The counts of a send, kept as it goes on, in memory that does not grow with the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_provider_sms.masking import mask_numbers_in
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.service.redaction import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sms.ledger.model import TextedTwice
    from airflow_provider_sms.service.responses import ErrorReport, SendResponse


@dataclass(slots=True)
class SendCounts:
    """Messages counted by their outcome, and sums over the service's responses.

    :param accepted: messages that the service took.
    :param unknown: messages that this or an earlier attempt posted, and of which nobody knows whether they were taken.
    :param not_sent: messages not posted, or posted and surely not taken.
    :param duplicate: rows that repeat the message of an earlier row.
    :param already_sent: messages of requests that were accepted before this attempt met them.
    :param reconciled: messages of requests that the balance closed, charged or not; those of this table are in another
        count, too.
    :param suppressed: rows whose number is on a suppression list.
    :param replayed: messages of requests that earlier legs of this attempt sent and the service accepted.
    :param replayed_accepted: those of them that the service took.
    :param listed: those of them that still have a row in the table; None where the table was not compared with the
        ledger.
    :param lost: messages of earlier legs of this attempt that are unknown.
    :param lost_requests: their requests.
    :param unread_unknown: rows that were unknown when they were checked, until the first row is looked up again.
    :param unplanned: messages that were free to be sent, and not in the plan that binds the send; they are in
        ``not_sent``, too.
    :param requests: requests of this attempt that were accepted or are unknown.
    :param priced: those of them whose cost is known.
    :param partial: messages that the service left out of requests that it accepted.
    :param none_taken: messages of requests of which the service took none.
    :param texted_twice: messages that two requests have.
    :param unknown_requests: the requests that hold the unknown messages, except those in ``unrecorded``.
    :param unrecorded: the requests of other processes that have recorded no outcome in time, each with the number of
        its messages; these are in ``unknown``, too.
    :param left: unknown requests of this task instance of which no row was met, each with its messages; these are not
        in ``unknown``.
    """

    accepted: int = 0
    unknown: int = 0
    not_sent: int = 0
    duplicate: int = 0
    already_sent: int = 0
    reconciled: int = 0
    suppressed: int = 0
    replayed: int = 0
    replayed_accepted: int = 0
    listed: int | None = None
    lost: int = 0
    lost_requests: set[int] = field(default_factory=set)
    unread_unknown: int = 0
    unplanned: int = 0
    requests: int = 0
    priced: int = 0
    partial: int = 0
    none_taken: int = 0
    texted_twice: list[TextedTwice] = field(default_factory=list)
    parts: int = 0
    cost: Decimal = Decimal(0)
    remaining_balance: Decimal | None = None
    cost_breakdown: dict[str, tuple[Decimal, int]] = field(default_factory=dict)
    error_report: dict[str, int] = field(
        default_factory=lambda: {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": 0}
    )
    unknown_requests: set[int] = field(default_factory=set)
    unrecorded: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)

    @property
    def gone(self) -> int:
        """The messages that earlier legs of this attempt sent, and that no longer have a row in the table."""
        return 0 if self.listed is None else max(0, self.replayed - self.listed)

    @property
    def accepted_rows(self) -> int:
        """The rows whose message the service took from this attempt."""
        return self.accepted - min(self.gone, self.replayed_accepted)

    @property
    def unsent_rows(self) -> int:
        """The rows whose message was not posted, or surely not taken."""
        return self.not_sent - max(0, self.gone - self.replayed_accepted)

    @property
    def has_posted(self) -> bool:
        """Whether this attempt has sent something, or may have."""
        return bool(self.accepted or self.lost)

    @property
    def settled(self) -> int:
        """The rows that need nothing more of this leg of the attempt; those that it leaves for later are among them."""
        posted = self.accepted_rows + self.unknown + self.already_sent
        return posted + self.unsent_rows + self.duplicate + self.suppressed

    @property
    def done(self) -> int:
        """The rows that need nothing more of any leg or attempt: all that are settled, but for those not sent."""
        return self.settled - (self.not_sent - self.partial)

    def add_checked(self, rows: Mapping[Status, int]) -> None:
        """Count the rows of a table that need nothing more, and keep how many are unknown as long as nothing is sent.

        :param rows: how many have each status.
        """
        self.duplicate = rows[Status.DUPLICATE]
        self.suppressed = rows[Status.SUPPRESSED]
        self.unread_unknown = rows[Status.UNKNOWN] + rows[Status.AGAIN]
        # A lost request may have been closed as accepted since the replayed messages were counted.
        self.listed = min(rows[Status.ACCEPTED], self.replayed)
        self.already_sent = rows[Status.ALREADY_SENT] + rows[Status.ACCEPTED] - self.listed

    def add_unplanned(self) -> None:
        """Count a message that may be sent, but that the plan does not have."""
        self.not_sent += 1
        self.unplanned += 1

    def replay(
        self,
        submitted: int,
        response: SendResponse | None,
        *,
        parts: int | None = None,
        cost: Decimal | None = None,
    ) -> None:
        """Count a request that an earlier leg of this attempt sent.

        :param response: None where a person or the balance decided that it was sent.
        :param parts: SMS parts of its messages, where there is no response; None where that is not known.
        :param cost: credits, where there is no response; None where that is not known.
        """
        before = self.accepted
        self.replayed += submitted
        if response is None:
            self.requests += 1
            self.add_charged(submitted, parts, cost, is_mine=True)
        else:
            self.add_accepted(submitted, response)
        self.replayed_accepted += self.accepted - before

    def replay_lost(self, request_id: int, submitted: int) -> None:
        """Count a request of an earlier leg of this attempt whose outcome is unknown."""
        self.lost += submitted
        self.lost_requests.add(request_id)
        self.requests += 1

    def add_accepted(self, submitted: int, response: SendResponse) -> None:
        """Count a request that the service took; it may have taken fewer messages than were submitted."""
        taken = min(submitted, response.messages)
        self.accepted += taken
        self.not_sent += submitted - taken
        self.partial += submitted - taken
        self.requests += 1
        self.priced += 1
        self.parts += response.parts
        self.cost += response.cost
        self.remaining_balance = response.remaining_balance
        for line in response.cost_breakdown:
            network = _shown(line.network)
            cost, quantity = self.cost_breakdown.get(network, (Decimal(0), 0))
            self.cost_breakdown[network] = (cost + line.cost, quantity + line.quantity)
        self._add_report(response.error_report)

    def add_none_taken(self, submitted: int, response: SendResponse) -> None:
        """Count a request of which the service took no message."""
        self.not_sent += submitted
        self.none_taken += submitted
        self.remaining_balance = response.remaining_balance
        self._add_report(response.error_report)

    def add_unknown(self, request_id: int, messages: int) -> None:
        """Count messages whose outcome is unknown.

        :param request_id: the request that holds them.
        """
        self.unknown += messages
        self.unknown_requests.add(request_id)

    def add_unrecorded(self, request_id: int, messages: int) -> None:
        """Count messages of another process's request that has no outcome recorded and may still get one."""
        self.unknown += messages
        self.unrecorded[request_id] = self.unrecorded.get(request_id, 0) + messages

    def remove_unknown(self, request_id: int, messages: int, *, is_charged: bool) -> None:
        """Take back the count of an unknown request of this attempt that has an outcome now.

        :param is_charged: whether the service took it, or a person says so; else it no longer counts as a request.
        """
        self.unknown -= messages
        self.unknown_requests.discard(request_id)
        self.requests -= not is_charged

    def add_charged(self, messages: int, parts: int | None, cost: Decimal | None, *, is_mine: bool) -> None:
        """Count a request whose response was lost and that the balance shows was taken.

        :param parts: SMS parts of its messages; None where that is not known.
        :param cost: credits; None where the balance does not tell them by request.
        :param is_mine: whether this send made it; else it was sent before.
        """
        if not is_mine:
            self.already_sent += messages
            return
        self.accepted += messages
        self.parts += parts or 0
        self.cost += cost or 0
        self.priced += cost is not None

    def _add_report(self, report: ErrorReport) -> None:
        for name, count in reported(report).items():
            self.error_report[name] = self.error_report.get(name, 0) + count


def reported(report: ErrorReport) -> dict[str, int]:
    """Return an error report as counts only, since its faults hold numbers; further names are the service's words."""
    counts = {
        "NoNetwork": report.no_network,
        "Duplicates": report.duplicates,
        "OptedOuts": report.opted_outs,
        "Faults": len(report.faults),
    }
    for name, count in report.other.items():
        shown = _shown(name)
        counts[shown] = counts.get(shown, 0) + count
    return counts


def _shown(name: str) -> str:
    """Return a name that the service chose as summaries and logs show it."""
    return mask_numbers_in(storable(name))[:30]
