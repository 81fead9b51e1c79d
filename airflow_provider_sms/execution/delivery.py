"""One send, from the first claim to what its end means for Airflow: of a table, or of one text to groups."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import LedgerError, NotSentError, ServiceError, SmsError
from airflow_provider_sms.execution.failures import Unsettled, failure, log_unforeseen
from airflow_provider_sms.execution.planning import PER_RUN
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.ledger.request_queries import named_requests, unknown_requests
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.sending.attempt_loop import send
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.settle import Settle
from airflow_provider_sms.sending.stop_conditions import CALM_RESPONSES, Caution, StopConditions
from airflow_provider_sms.sending.threads import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.options import SendingTask
    from airflow_provider_sms.execution.progress import Progress
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.planning.changed_texts import Messages
    from airflow_provider_sms.reporting.row_counts import RowCounts
    from airflow_provider_sms.reporting.summary import Sums
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
    :param has_posted: whether anything was posted.
    """

    error: Exception | None = None
    interruption: BaseException | None = None
    stop_reason: StopReason | None = None
    has_posted: bool = False


@dataclass(frozen=True)
class Delivery:
    """The send of one attempt.

    :param reconciliation: reads the account's balance.
    :param wait: gives up the slot until a stopped send may go on; None if no condition stops it.
    :param to_groups: whether it is one text to groups.
    """

    task: SendingTask
    session: LedgerSession
    settings: ClientSettings
    ledger: CampaignLedger
    options: SendingOptions
    progress: Progress
    reconciliation: Reconciliation
    wait: Callable[[StopReason], NoReturn] | None = None
    to_groups: bool = False

    def begin(self) -> None:
        """Record lapsed claims of the campaign as unknown, and say where the campaign is remembered."""
        self.ledger.lapse()
        campaign = self.ledger.campaign_name
        scope = f" ({PER_RUN})" if campaign == default_name(self.session.who) else ""
        log.info("Campaign %s%s, remembered in %s", campaign, scope, self.session.store.description)

    def send(
        self,
        outgoing: Iterable[Outgoing],
        free_outgoing: Callable[[], Iterable[Outgoing]],
        messages: Messages,
        post: Callable[[SmsClient, Sequence[Outgoing]], SendResponse],
        *,
        held_by: Collection[int] = (),
        stop_conditions: StopConditions | None = None,
    ) -> DeliveryEnd:
        """Send, and return once every claim has a recorded outcome.

        :param outgoing: the messages that were free when they were checked.
        :param free_outgoing: reads again which of the messages to send are free by now.
        :param messages: those that are compared with what earlier attempts claimed.
        :param post: posts one request.
        :param held_by: requests without an outcome that held messages when these were checked.
        :param stop_conditions: the conditions that stop the sending though nothing is wrong; None means no condition.
        """
        stop = self.task.stop
        stop_conditions = StopConditions() if stop_conditions is None else stop_conditions
        if self.options.on_unknown == "reconcile":
            stop_conditions.caution = Caution(on=True, calm=CALM_RESPONSES)
        elif self.ledger.has_unknown():
            stop_conditions.caution = Caution(on=True)
        settle = Settle(self.ledger, self.reconciliation, self.options.on_unknown, stop)

        def work() -> None:
            try:
                refuse_changed_texts(messages, self.ledger.earlier(), stop)
            except Exception as error:  # noqa: BLE001  # of the ledger or of a file; nothing is sent
                sender.fail(error)
            else:
                send(sender, settle, outgoing, free_outgoing, self.options.chunk_size)

        with self.settings.client(pool_size=self.options.concurrency) as client:
            sender = Sender(
                self.ledger,
                self.progress.timed(lambda some: post(client, some)),
                post_seconds=client.longest_call,
                options=self.options,
                stop=stop,
                ask=self.reconciliation.observe,
                stop_conditions=stop_conditions,
                holds=settle.holds,
            )
            sender.noted.update(held_by)
            self.progress.sends(sender)
            try:
                interruption = run_uninterrupted(work, on_interrupt=stop.set, heartbeat=self.progress.beat)
            except BaseException:
                # Whatever ended the wait, a sender that still runs must not go on claiming.
                stop.set()
                raise
        log_unforeseen(sender.error)
        if isinstance(sender.error, ServiceError):
            sender.error.place = self.settings.place()
        return DeliveryEnd(sender.error, interruption, stop_conditions.stop_reason, sender.has_posted)

    def conclude(self, end: DeliveryEnd, counts: RowCounts, sums: Sums) -> None:
        """Return if every message was accepted, now or before; otherwise wait or fail, once the end is on record.

        :raises AirflowFailException: the task fails, and a retry could not help.
        :raises AirflowException: the task fails, and a retry could help.
        """
        if end.interruption is not None:
            raise end.interruption
        stopped = self.task.stop.is_set() and bool(counts.not_sent)
        unsettled = self._unsettled(end, counts)
        error = end.error
        if error is None and not stopped and end.stop_reason is not None and self.wait is not None:
            try:
                self.wait(end.stop_reason)
            except SmsError as refused:
                error = refused  # the words below say, too, who may have been texted
        failed = failure(
            self.ledger.campaign_name,
            counts,
            sums,
            unsettled,
            error,
            stopped=stopped,
            on_unknown=self.options.on_unknown,
            ledger_conn_id=self.task.ledger_conn_id,
            to_groups=self.to_groups,
        )
        if failed is not None:
            raise (AirflowFailException if failed.permanent else AirflowException)(failed.words)

    def _unsettled(self, end: DeliveryEnd, counts: RowCounts) -> Unsettled:
        """Return what the ledger tells of the requests without an outcome, and of messages that were texted twice."""
        if isinstance(end.error, LedgerError) or self.task.stop.is_set():
            return Unsettled()
        store, lost = self.session.store, set(counts.unsettled) - counts.awaited
        try:
            # A service that cannot be reached tells no balance.
            if lost and not (self.options.on_unknown == "reconcile" or isinstance(end.error, NotSentError)):
                self.reconciliation.show(lost)
            twice = self.ledger.texted_twice()
            for each in twice:
                log.error("Request %d was accepted after others could claim its messages: %s", each.request_id, each)
            self._say_gone(counts)
            return Unsettled(named_requests(store, lost), named_requests(store, counts.awaited), twice)
        except SmsError as error:
            log.warning("The ledger does not tell more of the requests without an outcome: %s", error)
            return Unsettled()

    def _say_gone(self, counts: RowCounts) -> None:
        """Log the unknown requests of this task instance of which no row is left: they are in no count."""
        mine = unknown_requests(self.session.store, self.ledger.campaign_name, self.session.who)
        if gone := sum(each.messages for each in mine if each.request_id not in counts.unsettled):
            log.warning(
                "%d %s may have been sent earlier by this task, and %s no row to send in the source any more: see "
                "airflow-sms unknown",
                gone,
                by_count(gone, "message", "messages"),
                by_count(gone, "has", "have"),
            )
