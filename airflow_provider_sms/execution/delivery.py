"""One send, from the first claim to what its end means for Airflow."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import LedgerError, NotSentError, ServiceError, SmsError
from airflow_provider_sms.execution.failures import failure, log_unforeseen
from airflow_provider_sms.execution.planning import PER_RUN
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.ledger.request_queries import claimants_of, named_requests, unknown_requests
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution, StopConditions
from airflow_provider_sms.sending.threads import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import SendingTask
    from airflow_provider_sms.execution.progress import Progress
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Claimant
    from airflow_provider_sms.ledger.request_queries import RequestRow
    from airflow_provider_sms.messages.blocks import Block
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.changed_texts import Messages
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.sending.sender import SendingOptions
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.sending.stop_conditions import StopReason
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse

log = logging.getLogger(__name__)


class DeliveryEnd(NamedTuple):
    """How a send ended.

    :param error: the error that ended it early; None where nothing failed.
    :param interruption: an exception that Airflow raised in this thread, for raising it again; None if there is none.
    :param stop_reason: the condition that the rest waits for; None if it waits for none.
    """

    error: Exception | None = None
    interruption: BaseException | None = None
    stop_reason: StopReason | None = None


@dataclass(frozen=True)
class Delivery:
    """The send of one attempt.

    :param total: messages in all.
    :param counts: counts the messages by outcome.
    :param reconciliation: tells by the balance what became of requests whose response was lost.
    :param reconciles: whether the balance closes such requests; otherwise its evidence is only shown.
    :param wait: gives up the slot until a stopped send may go on; None if no condition stops it.
    :param to_groups: whether it is one text to groups.
    """

    task: SendingTask
    session: LedgerSession
    settings: ClientSettings
    ledger: CampaignLedger
    options: SendingOptions
    total: int
    counts: SendCounts
    progress: Progress
    reconciliation: Reconciliation
    reconciles: bool
    wait: Callable[[StopReason], NoReturn] | None = None
    to_groups: bool = False

    def begin(self) -> None:
        """Record lapsed claims of the campaign as unknown, and note that sending begins."""
        self.ledger.lapse()
        campaign = self.ledger.campaign_name
        scope = f" ({PER_RUN})" if campaign == default_name(self.session.who) else ""
        log.info("Campaign %s%s, remembered in %s", campaign, scope, self.session.store.description)
        self.progress.begin(self.counts, self.total)

    def send(
        self,
        blocks: Iterable[Block],
        messages: Messages,
        post: Callable[[SmsClient, Sequence[Outgoing]], SendResponse],
        *,
        planned: Callable[[Sequence[int]], Sequence[bool]] | None = None,
        stop_conditions: StopConditions | None = None,
    ) -> DeliveryEnd:
        """Send, and return once every claim has a recorded outcome.

        :param blocks: the messages.
        :param messages: those that are compared with what earlier attempts claimed.
        :param post: posts one request.
        :param planned: takes rows of the table, and returns which of them the plan has; None means that it does not
            bind the send.
        :param stop_conditions: the conditions that stop the sending though nothing is wrong; None means no condition.
        """
        stop, counts = self.task.stop, self.counts
        stop_conditions = StopConditions() if stop_conditions is None else stop_conditions
        if self.reconciles:
            stop_conditions.caution = Caution(on=True, calm=CALM_RESPONSES)
        elif self.ledger.has_unknown():
            stop_conditions.caution = Caution(on=True)

        def guard() -> None:
            refuse_changed_texts(messages, self.ledger.earlier(), stop)

        with self.settings.client(pool_size=self.options.concurrency) as client:
            sender = Sender(
                self.ledger,
                self.progress.timed(lambda some: post(client, some)),
                post_seconds=client.longest_call,
                ask=self.reconciliation.observe,
                options=self.options,
                stop=stop,
                reconciliation=self.reconciliation if self.reconciles else None,
                counts=counts,
                stop_conditions=stop_conditions,
                planned=planned,
            )
            try:
                interruption = run_uninterrupted(
                    lambda: sender.run(blocks, guard=guard),
                    on_interrupt=stop.set,
                    heartbeat=lambda: self.progress.beat(paused=stop_conditions.paused is not None),
                )
            except BaseException:
                # Whatever ended the wait, a sender that still runs must not go on claiming.
                stop.set()
                raise
        log_unforeseen(sender.error)
        if isinstance(sender.error, ServiceError):
            sender.error.place = self.settings.place()
        return DeliveryEnd(sender.error, interruption, sender.stop_conditions.stop_reason)

    def conclude(self, end: DeliveryEnd) -> None:
        """Return if every message was accepted, now or before; otherwise wait or fail, once the end is on record.

        :raises AirflowFailException: the task fails, and a retry could not help.
        :raises AirflowException: the task fails, and a retry could help.
        """
        if end.interruption is not None:
            raise end.interruption
        counts, total, campaign = self.counts, self.total, self.ledger.campaign_name
        requests = self._unknown_requests(end)
        unsent = counts.settled < total or counts.not_sent > counts.partial + counts.none_taken
        stopped = self.task.stop.is_set() and unsent
        error = end.error
        if error is None and not stopped:
            # A wait would hide that somebody was texted twice: the next leg does not know of it.
            if end.stop_reason is not None and self.wait is not None and not counts.texted_twice:
                try:
                    self.wait(end.stop_reason)
                except SmsError as refused:
                    error = refused  # the words below say, too, who may have been texted
            counts.left = self._left()
        failed = failure(
            campaign,
            counts,
            error,
            stopped=stopped,
            resend_unknown=self.options.resend_unknown,
            reconciles=self.reconciles,
            requests=requests,
            claimants=self._claimants(end),
            ledger_conn_id=self.task.ledger_conn_id,
            to_groups=self.to_groups,
        )
        if failed is not None:
            raise (AirflowFailException if failed.permanent else AirflowException)(failed.words)
        if counts.settled < total:
            raise AirflowFailException(f"The counts do not add up: {counts.settled} of {total}. Please report it")
        if gone := counts.gone:
            were = by_count(gone, "message that was sent is", "messages that were sent are")
            log.warning("%d %s no longer in the source", gone, were)

    def _left(self) -> dict[int, int]:
        """Return the unknown requests of this task instance of which no row was met, each with its messages."""
        found = {*self.counts.unknown_requests, *self.counts.unrecorded}
        unknown = unknown_requests(self.session.store, self.ledger.campaign_name, self.session.who)
        return {request.request_id: request.messages for request in unknown if request.request_id not in found}

    def _unknown_requests(self, end: DeliveryEnd) -> list[RequestRow]:
        """Return the unknown requests with what the balance tells of them; none where they cannot be read."""
        requests = self.counts.unknown_requests
        if not requests or isinstance(end.error, LedgerError) or self.task.stop.is_set():
            return []
        try:
            # A service that cannot be reached tells no balance.
            if not (self.reconciles or isinstance(end.error, NotSentError)):
                self.reconciliation.show(requests)
            return named_requests(self.session.store, requests)
        except SmsError as error:
            log.warning("The evidence of the balance cannot be read from the ledger: %s", error)
            return []

    def _claimants(self, end: DeliveryEnd) -> dict[int, Claimant]:
        """Return the attempts that made the requests without a recorded outcome, by request id."""
        requests = self.counts.unrecorded
        if not requests or isinstance(end.error, LedgerError) or self.task.stop.is_set():
            return {}
        try:
            return claimants_of(self.session.store, requests)
        except LedgerError as error:
            log.warning("The ledger does not tell who made the requests: %s", error)
            return {}
