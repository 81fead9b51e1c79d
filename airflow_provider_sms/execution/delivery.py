"""One sending, from the first claim to what its end means to Airflow."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.failures import failure
from airflow_provider_sms.execution.human_input import wait_for_answer
from airflow_provider_sms.execution.liveness import Liveness
from airflow_provider_sms.execution.tracing import span
from airflow_provider_sms.ledger.decisions import ask
from airflow_provider_sms.operators.links import SmsSandboxLink, sandbox_url
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.reporting.summary import Progress
from airflow_provider_sms.sending.sender import Sender
from airflow_provider_sms.sending.stop_conditions import Brakes, Caution
from airflow_provider_sms.sending.threads import run_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.execution.ledger_session import LedgerSession
    from airflow_provider_sms.execution.telemetry import Telemetry
    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
    from airflow_provider_sms.messages.outgoing import Block, Outgoing
    from airflow_provider_sms.operators.base import SmsOperatorBase
    from airflow_provider_sms.planning.changed_texts import TableKeys
    from airflow_provider_sms.sending.counts import SendCounts
    from airflow_provider_sms.sending.sender import SendingOptions
    from airflow_provider_sms.sending.stop_conditions import StopReason
    from airflow_provider_sms.service.client import SmsClient
    from airflow_provider_sms.service.responses import SendResponse


@dataclass(frozen=True)
class Delivery:
    """What is to be sent, and who is told of it.

    :param settings: of the client.
    :param blocks: reads the messages; None: every one is settled already.
    :param post: posts one request.
    :param total: messages in all.
    :param kind: ``bulk`` or ``group``.
    :param tally: counts what becomes of them.
    :param watch: tells others how it goes.
    :param finish: called with the ledger, and what ended the sending early, when it has ended, however it did, before
        anything is raised.
    :param keys: of all messages, where they are known already.
    :param cap: how often a person may be texted; None: as often as the blocks say.
    :param brakes: what may end the sending early though nothing is wrong; None: nothing.
    :param park: gives up the slot until what the brakes halted for is there; None: they never halt.
    """

    task: SmsOperatorBase
    context: Context
    entry: LedgerSession
    settings: ClientSettings
    blocks: Callable[[], Iterable[Block]] | None
    post: Callable[[SmsClient, Sequence[Outgoing]], SendResponse]
    total: int
    options: SendingOptions
    kind: str
    tally: SendCounts
    watch: Telemetry
    finish: Callable[[CampaignLedger, Exception | None], None]
    keys: TableKeys | None = None
    cap: FrequencyCap | None = None
    brakes: Brakes | None = None
    park: Callable[[StopReason], NoReturn] | None = None

    def run(self) -> None:
        """Send, and raise unless every message was accepted now or before.

        :raises AirflowFailException: where a retry could not help.
        :raises AirflowException: where it could.
        """
        task, entry = self.task, self.entry
        ledger = entry.campaign(task.campaign_name(self.context), self.kind, self.cap)
        ledger.lapse()
        brakes = Brakes() if self.brakes is None else self.brakes
        if ledger.has_unknown():
            brakes.caution = Caution(on=True)
        task.log.info("Campaign %s, remembered in %s", ledger.campaign_name, entry.store.description)
        self.watch.note_sending(self.tally, self.total)
        if link := sandbox_url(self.settings.base_url):
            task.push(self.context, SmsSandboxLink.xcom_key, link)
        if self.blocks is None:
            self.finish(ledger, None)
            return
        sender, interruption = self._send(ledger, self.blocks, brakes)
        task.log_unforeseen(sender.error)
        self.finish(ledger, sender.error)
        if interruption is not None:
            raise interruption
        self._conclude(ledger.campaign_name, sender)

    def _send(
        self, ledger: CampaignLedger, blocks: Callable[[], Iterable[Block]], brakes: Brakes
    ) -> tuple[Sender, BaseException | None]:
        """Send, and give how it went, and what interrupted this thread meanwhile."""
        stop, tally = self.task.stop_signal, self.tally
        progress = Progress(self.total, time.monotonic, done=tally.settled)
        alive = Liveness(self.context, stop)

        def guard() -> None:
            refuse_changed_texts(blocks, ledger.earlier(), stop, self.keys)

        def heartbeat() -> None:
            alive.beat()
            self.watch.beat(tally)
            self.entry.mark.beat()
            paused = sender.brakes.paused is not None
            if line := progress.line(tally.settled, paused=paused):
                self.task.log.info("%s", line)
                self.watch.note_sending(tally, self.total, paused=paused)

        with self.settings.client(pool_size=self.options.concurrency) as client, span("sms.send") as figures:
            sender = Sender(
                ledger,
                self.watch.timed(lambda messages: self.post(client, messages)),
                post_seconds=client.longest_call,
                ask=client.get_balance,
                options=self.options,
                stop=stop,
                tally=tally,
                brakes=brakes,
            )
            try:
                shielded = run_uninterrupted(
                    lambda: sender.run(blocks(), guard=guard),
                    on_interrupt=stop.set,
                    heartbeat=heartbeat,
                )
            except BaseException:
                # Whatever ended the wait, a sender that still runs must not go on claiming.
                stop.set()
                raise
            finally:
                figures.update(
                    messages=self.total, requests=tally.requests, accepted=tally.accepted, unknown=tally.unknown
                )
                figures.update({"error": type(sender.error).__name__} if sender.error else {})
        return sender, shielded.interruption

    def _conclude(self, campaign: str, sender: Sender) -> None:
        """Tell Airflow what the end means: that the task waits, fails, or is done."""
        tally, total = self.tally, self.total
        unsent = tally.settled < total or tally.not_sent > tally.partial + tally.none_taken
        stopped = self.task.stop_signal.is_set() and unsent
        if sender.error is None and not stopped:
            if sender.brakes.halt is not None and self.park is not None:
                self.park(sender.brakes.halt)
            if self.task.on_unknown == "ask" and tally.unknown_requests:
                self._ask(campaign)
        failed = failure(campaign, tally, sender.error, stopped=stopped, resend_unknown=self.options.resend_unknown)
        if failed is not None:
            raise (AirflowFailException if failed.permanent else AirflowException)(failed.words)
        if tally.settled < total:
            raise AirflowFailException(f"The counts do not add up: {tally.settled} of {total}. Please report it")
        if tally.settled > total:
            self.task.log.warning("%d messages that were sent are no longer in the source", tally.settled - total)

    def _ask(self, campaign: str) -> NoReturn:
        tally, entry = self.tally, self.entry
        try:
            asked = ask(entry.store, campaign, entry.who, entry.claimant_id, tally.unknown_requests)
        except InputError as error:
            failed = failure(campaign, tally, None, stopped=False, resend_unknown=False)
            raise AirflowFailException(f"{error}. {failed.words if failed else ''}") from error
        if not asked:
            raise AirflowException("What was unknown has an outcome since: the next try finds it")
        self.task.log.warning(
            "%d messages may have been sent: waiting for a person, in Airflow's required actions", tally.unknown
        )
        self.watch.note("waiting for an answer", {"unknown": tally.unknown})
        wait_for_answer(self.task, self.context, campaign, tally.unknown, asked)
