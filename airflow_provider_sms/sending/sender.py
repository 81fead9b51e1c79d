"""The sender: claims messages in the ledger, posts those that it claimed, and records the outcomes.

One thread reads the messages, owns the ledger and decides. The requests in flight, those that wait and the outcomes
that are not recorded yet belong to it alone; the other threads do nothing but post. Outcomes and the next claims share
one commit, and a slot is free again only once its outcome is recorded: so after a crash at any instant at most
``concurrency`` requests are unknown.
"""

from __future__ import annotations

import logging
import math
import queue
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    HeldBackError,
    LedgerBusyError,
    LedgerError,
    LedgerLostError,
    NotSentError,
    OutageError,
    RefusedError,
    ServiceError,
    UnknownOutcomeError,
    UnplannedError,
)
from airflow_provider_sms.formatting import counted
from airflow_provider_sms.ledger.model import UNKNOWN
from airflow_provider_sms.ledger.transitions import REPEATED_EVENT, repeated_events
from airflow_provider_sms.sending.backoff import Backoff
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.flush import flush
from airflow_provider_sms.sending.pending import PendingMessages
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.response_handler import ResponseHandler, failed, outcome_of, refuse_contradiction
from airflow_provider_sms.sending.scheduler import DEFER_SECONDS, RequestScheduler
from airflow_provider_sms.sending.settle import LostRequests
from airflow_provider_sms.sending.stop_conditions import StopConditions
from airflow_provider_sms.sending.threads import WorkerPool
from airflow_provider_sms.service.elapsed import ending_by
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.messages.blocks import Block
    from airflow_provider_sms.messages.outgoing import Outgoing
    from airflow_provider_sms.sending.settle import Reconciliation
    from airflow_provider_sms.stop_flag import StopFlag


log = logging.getLogger(__name__)

MARGIN_SECONDS = 10.0
"""Seconds that a claim's deadline allows beyond the request's own timeouts: for a busy machine and the commit."""
POLL_SECONDS = 0.2
"""Seconds between two looks at the stop signal, and at the claims of other live processes."""
MAX_BUSY = 5
"""How often a commit that other processes have kept waiting is tried again; each try waits up to a minute."""
STOP_SECONDS = 2.0
"""Seconds for which a send that was told to stop looks up the rows that it did not reach, for the counts: Airflow kills
it five seconds after telling it to stop."""


class Sender:
    """Sends a stream of messages, each at most once within its campaign.

    :param ledger: the campaign as this attempt sees it.
    :param post: posts one request; raises :class:`ServiceError`. Called in other threads.
    :param post_seconds: the most seconds that ``post`` may take, and ``ask``.
    :param ask: asks the service a free question, before a request that goes alone because responses were lost; raises
        :class:`ServiceError`. Called in other threads. None means that nothing is asked.
    :param stop: when set, nothing more is claimed; requests in flight are awaited and recorded.
    :param reconciliation: closes requests whose response was lost by what the balance proves, before anything else is
        claimed; None leaves them unknown.
    :param counts: where messages are counted.
    :param stop_conditions: what may end the send early though nothing is wrong; None means nothing.
    :param monotonic: seconds from any start: for waits, which must not grow when a clock is set.
    :param sleep: waits for that many seconds.
    """

    def __init__(
        self,
        ledger: CampaignLedger,
        post: Callable[[Sequence[Outgoing]], SendResponse],
        *,
        post_seconds: float,
        ask: Callable[[], object] | None = None,
        options: SendingOptions,
        stop: StopFlag,
        reconciliation: Reconciliation | None = None,
        counts: SendCounts | None = None,
        stop_conditions: StopConditions | None = None,
        planned: Callable[[Sequence[int]], Sequence[bool]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.counts = SendCounts() if counts is None else counts
        self.error: Exception | None = None
        self.stop_conditions = StopConditions() if stop_conditions is None else stop_conditions
        self._ledger = ledger
        self._post = post
        self._post_seconds = post_seconds
        self._ask = ask
        self._options = options
        self._stop = stop
        self._planned = planned
        self._monotonic = monotonic
        self._sleep = sleep
        self._scheduler = RequestScheduler(
            self.stop_conditions,
            chunk_size=options.chunk_size,
            concurrency=options.concurrency,
            max_per_second=options.max_requests_per_second,
        )
        self._results = ResponseHandler(
            self.counts,
            self.stop_conditions,
            options.backoff,
            claiming=lambda: self._claiming,
            resend_unknown=options.resend_unknown,
            reconciles=reconciliation is not None,
            monotonic=monotonic,
        )
        self._lost = LostRequests(reconciliation, self.counts, self.stop_conditions.caution)
        # Not a SimpleQueue: if its timeout passes before it begins to wait, on a busy machine, it waits for ever.
        self._ended: queue.Queue[tuple[InFlightRequest, SendResponse | BaseException]] = queue.Queue()
        self._in_flight = 0
        self._unrecorded: list[Outcome] = []
        self._ledger_failed = False
        self._busy = 0
        """How often in a row a commit was kept waiting by other processes."""

    def run(self, blocks: Iterable[Block | Sequence[Outgoing]], *, guard: Callable[[], None] | None = None) -> None:
        """Send every message, and return when every request has an outcome that is recorded.

        Afterwards, what went wrong is in ``error``, and the counts are in ``counts``: both are needed when sending ends
        early. If it was stopped, or the ledger failed, blocks may be left unread, and are then not counted.

        :param blocks: the messages; read only as fast as they go out.
        :param guard: called before anything is claimed; when it raises, nothing is.
        """
        pending = PendingMessages(
            blocks,
            self._ledger,
            self.counts,
            resend=self._options.resends,
            adopts=self._lost.adopts,
            planned=self._planned,
        )
        try:
            if guard is not None:
                guard()
            with WorkerPool(self._options.concurrency, self._post_one) as workers:
                while self._in_flight or (self._claiming and self._has_more(pending)):
                    self._step(pending, workers)
            if self._claiming:
                self.stop_conditions.all_read()
        except Exception as error:  # noqa: BLE001  # whatever it is, the rest is counted
            self._fail(error)
        self._flush()
        self._settle_last(pending)
        self._count_remaining(pending)
        if self._claiming and self.counts.unplanned:
            self._fail(
                UnplannedError(
                    f"{counted(self.counts.unplanned, 'message')} may be sent now, and could not when the plan was "
                    "made. They count as not sent: the next attempt plans them"
                )
            )

    def _has_more(self, pending: PendingMessages) -> bool:
        return bool(self._scheduler.waiting) or not pending.empty or self._lost.any

    def _step(self, pending: PendingMessages, workers: WorkerPool[InFlightRequest]) -> None:
        try:
            self._collect(pending)
            self._commit(pending, self._due_batches(pending), workers)
            if self._claiming and not (self._in_flight or self._unrecorded):
                self._settle(pending)
        except Exception as error:  # noqa: BLE001  # nothing may keep the requests in flight from being recorded
            self._fail(error)

    @property
    def _claiming(self) -> bool:
        return self.error is None and not self._stop.is_set() and self.stop_conditions.stop_reason is None

    def _settle(self, pending: PendingMessages) -> None:
        """Close requests whose response was lost by what the balance proves, while nothing is in flight."""
        for request_id, messages in pending.take_adopted().items():
            self._lost.adopt(request_id, messages)
        self._lost.settle(pending)
        if not self._lost.any and (outage := self.stop_conditions.caution.outage) is not None:
            self._fail(outage)

    def _settle_last(self, pending: PendingMessages) -> None:
        """Close what the balance proves at the end of a send that ends early: the next attempt need not wait for it."""
        try:
            while self._lost.any and not (self._stop.is_set() or self._ledger_failed):
                if isinstance(self.error, (NotSentError, OutageError)):
                    break  # a service that cannot be reached tells no balance
                self._lost.settle(pending)
                if self._lost.any:
                    self._sleep(POLL_SECONDS)
        except Exception as error:  # noqa: BLE001  # the counts are needed, whatever it is
            self._fail(error)
        self._lost.give_up()

    def _fail(self, error: Exception) -> None:
        """Claim nothing more, because of the first error that calls for that; a ledger that has gone back is graver.

        A failover ends the connection first. That error alone would make Airflow try again, with a ledger that has
        forgotten people.
        """
        if self.error is None or isinstance(error, LedgerLostError):
            self.error = error
        self._ledger_failed = self._ledger_failed or isinstance(error, LedgerError)

    def _collect(self, pending: PendingMessages) -> None:
        """Wait until there is something to do, and handle every POST that has ended."""
        ended: list[tuple[InFlightRequest, SendResponse | BaseException]] = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=self._patience(pending)))
            while True:
                ended.append(self._ended.get_nowait())
        repeated = self._repeated_events(ended)
        for request, result in ended:
            try:
                # A connection can carry a response twice.
                is_repeated = request.request_id in repeated
                self._handle(request, UnknownOutcomeError(REPEATED_EVENT) if is_repeated else result, pending)
            except Exception as error:  # noqa: BLE001  # the others must be recorded
                self._fail(error)

    def _patience(self, pending: PendingMessages) -> float:
        if not self._claiming or self._lost.hold():
            return POLL_SECONDS
        wakeup = self._scheduler.next_wakeup(self._monotonic(), self._in_flight, more=pending.ready)
        return min(POLL_SECONDS, wakeup)

    def _handle(
        self,
        request: InFlightRequest,
        result: SendResponse | BaseException,
        pending: PendingMessages,
    ) -> None:
        """Queue the outcome of a POST for the next commit, and apply the next step."""
        self._in_flight -= 1
        try:
            result = refuse_contradiction(result)
            outcome = outcome_of(request, result)
        except Exception as error:  # noqa: BLE001  # one of this code: the request was posted
            result, outcome = error, failed(request.request_id, UNKNOWN, error)
        # First of all: no error in what follows may cost the record of a request.
        self._unrecorded.append(outcome)
        step = self._results.handle(request, result, outcome)
        if step.retry_at is not None:
            self._scheduler.retry(request.batch, step.retry_at)
        for outgoing in step.resend:
            pending.take_over(outgoing, request.request_id)
        if step.error is not None:
            self._fail(step.error)
        if outcome.state == UNKNOWN:
            self._lost.add(request)

    def _repeated_events(self, ended: Iterable[tuple[InFlightRequest, SendResponse | BaseException]]) -> set[int]:
        """Return the requests that have ended with the event id of another request: one statement asks for all."""
        events = {request.request_id: result.event_id for request, result in ended if isinstance(result, SendResponse)}
        if not events:
            return set()
        repeated = repeated_events({**{each.request_id: each.event_id for each in self._unrecorded}, **events})
        try:
            repeated |= self._ledger.known_events(events)
        except Exception as error:  # noqa: BLE001  # the responses must be recorded
            self._fail(error)
        return repeated

    def _due_batches(self, pending: PendingMessages) -> list[RequestBatch]:
        batches: list[RequestBatch] = []
        if self._lost.hold():
            return batches
        try:
            batches.extend(self._scheduler.due(pending, self._monotonic(), self._in_flight, lambda: self._claiming))
        except Exception as error:  # noqa: BLE001  # a source can fail in any way; outcomes must be recorded
            self._fail(error)
        return batches

    def _commit(
        self, pending: PendingMessages, batches: list[RequestBatch], workers: WorkerPool[InFlightRequest]
    ) -> None:
        """Record and claim in one commit, and post what was claimed."""
        if self._ledger_failed or not (self._unrecorded or batches):
            self._defer(batches)
            return
        alone, asks = self.stop_conditions.caution.on, self.stop_conditions.caution.asks
        seconds = self._post_seconds * (2 if asks else 1) + MARGIN_SECONDS
        try:
            chunks = [batch.chunk for batch in batches]
            claims = self._ledger.commit(outcomes=self._unrecorded, chunks=chunks, claim_seconds=seconds)
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing of the commit may be relied on
            if not self._tries_again(error):
                self._fail(error)
                self._ledger_failed = True
            self._defer(batches)
            return
        self._unrecorded, self._busy = [], 0
        self._report_texted_twice()
        if batches and self.stop_conditions.note_pause(self._ledger.paused):
            self._defer(batches)
            return
        lost = [batch.keep(claim.won) for batch, claim in zip(batches, claims, strict=True)]
        for batch, claim in zip(batches, claims, strict=True):
            if claim.request_id is not None:
                lapses_at = self._ledger.lapses_at
                request = InFlightRequest(claim.request_id, batch, claim.deadline, lapses_at, alone, asks)
                batch.attempt += 1
                self._in_flight += 1
                workers.submit(request)
        # Not before: an error must not leave claims unposted.
        for batch, messages in zip(batches, lost, strict=True):
            self.stop_conditions.claimed(batch)
            if messages:
                self._reconcile(pending, messages, turned_away=batch.turned_away > 0)

    def _tries_again(self, error: Exception) -> bool:
        """Return whether a commit that failed is tried again, because other processes have kept it waiting."""
        self._busy += 1
        if not isinstance(error, LedgerBusyError) or self._busy > MAX_BUSY:
            return False
        log.warning("%s. Trying again, %d of %d times", error, self._busy, MAX_BUSY)
        return True

    def _defer(self, batches: Iterable[RequestBatch]) -> None:
        """Keep requests that were not claimed: they are tried again soon, if anything is."""
        for batch in batches:
            self._scheduler.retry(batch, self._monotonic() + DEFER_SECONDS)

    def _reconcile(self, pending: PendingMessages, lost: list[Outgoing], *, turned_away: bool) -> None:
        """Find out what became of messages that another process claimed first."""
        try:
            pending.reconcile(lost, turned_away=turned_away)
        except LedgerError as error:
            self._fail(error)
            pending.put_back(lost)

    def _post_one(self, request: InFlightRequest) -> None:
        """Post, in one of the other threads, and hand back the result, whatever it is."""
        result: SendResponse | BaseException
        try:
            if request.asks:
                self._require_answer()
            if self._stop.is_set():
                raise HeldBackError("not posted, since the task was told to stop")  # noqa: TRY301  # one path
            # The commit of the claim may have waited for a busy ledger since the hours were looked at.
            if self.stop_conditions.have_ended(request.batch.messages):
                raise HeldBackError("not posted, since its sending hours have ended")  # noqa: TRY301  # one path
            # A process that slept between claim and POST must not post under a claim that others may call unknown. The
            # limit is by a clock that nobody sets, too: the ledger's may have been set meanwhile, and may be again
            # before the first byte is written.
            began = self._ledger.elapsed()
            left = min(request.deadline - self._ledger.clock(), request.lapses_at - began)
            if left < self._post_seconds:
                raise HeldBackError("not posted, since too little time was left of its claim")  # noqa: TRY301  # one path
            with ending_by(began + min(left, self._post_seconds + MARGIN_SECONDS)):
                result = self._post(request.batch.messages)
        except BaseException as error:  # noqa: BLE001  # every end of a post is an outcome
            result = error
        self._ended.put((request, result))

    def _require_answer(self) -> None:
        """Ask the service a free question, and raise where it does not answer: nothing is posted then.

        :raises NotSentError: no response came.
        :raises AuthenticationError: the token is not valid.
        """
        if self._ask is None:
            return
        try:
            self._ask()
        except AuthenticationError:
            raise
        except RefusedError:
            pass  # a response, though not a balance
        except ServiceError as error:
            raise NotSentError(
                f"not posted, since responses were lost and the balance could not be read: {error}",
                status=error.status,
                code=error.code,
                retry_after=error.retry_after,
            ) from error

    def _flush(self) -> None:
        """Record the outcomes that are known and not recorded, within a bound; failing that, the log holds them."""
        if not (self._unrecorded or self._ledger_failed):
            return
        if (error := flush(self._ledger, self._unrecorded, self._stop, self._sleep, self._monotonic)) is not None:
            self._fail(error)
        self._report_texted_twice()

    def _report_texted_twice(self) -> None:
        """Log and count messages that two requests have, once each."""
        for twice in self._ledger.texted_twice[len(self.counts.texted_twice) :]:
            self.counts.texted_twice.append(twice)
            log.error("Request %d was accepted after others could claim its messages: %s", twice.request_id, twice)

    def _count_remaining(self, pending: PendingMessages) -> None:
        """Count every message that was not sent, each looked up first; a stopped send has only seconds for that."""
        until = math.inf

        def may_look_up() -> bool:
            nonlocal until
            if self._stop.is_set():
                until = min(until, self._monotonic() + STOP_SECONDS)
            return self._monotonic() < until and not self._ledger_failed

        for batch in self._scheduler.waiting:
            pending.count_unsent(batch.messages, batch.take_over)
        try:
            pending.count_remaining(may_look_up)
        except Exception as error:  # noqa: BLE001  # the counts are then of the messages that were read
            self._fail(error)


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """How to send.

    :param chunk_size: messages per request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: None means no limit.
    :param resend_unknown: post messages whose outcome is unknown again: at least once instead of at most once.
    :param resent: the unknown messages that this attempt has posted again: once in an attempt is enough.
    :param backoff: waits between the POSTs of a request that was surely not processed.
    """

    chunk_size: int = 100
    concurrency: int = 4
    max_requests_per_second: float | None = None
    resend_unknown: bool = False
    resent: frozenset[bytes] = frozenset()
    backoff: Backoff = field(default_factory=Backoff)

    def resends(self, key: bytes) -> bool:
        """Return whether an unknown message is posted again."""
        return self.resend_unknown and key not in self.resent
