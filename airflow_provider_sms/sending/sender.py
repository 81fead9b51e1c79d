"""The sender: claims messages in the ledger, posts those that it claimed, and records the outcomes.

One thread owns the ledger and decides. The requests in flight, those that wait and the outcomes that are not recorded
yet belong to it alone; the other threads do nothing but post. Outcomes and the next claims share one commit, and a slot
is free again only once its outcome is recorded: so after a crash at any instant at most ``concurrency`` requests are
unknown.

It works in passes, and never looks back within one: lost requests, and claims of others that hold its messages, are
only noted. :mod:`~airflow_provider_sms.sending.attempt_loop` settles them between two passes.
"""

from __future__ import annotations

import logging
import queue
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    LedgerBusyError,
    LedgerError,
    LedgerLostError,
    NotSentError,
    RefusedError,
    ServiceError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.model import ACCEPTED, UNKNOWN
from airflow_provider_sms.sending.outcomes import Backoff, Outcomes, failed, outcome_of, refuse_contradiction
from airflow_provider_sms.sending.request_batch import Chunks, InFlightRequest, RequestBatch
from airflow_provider_sms.sending.schedule import DEFER_SECONDS, Schedule
from airflow_provider_sms.sending.stop_conditions import StopConditions
from airflow_provider_sms.sending.workers import WorkerPool
from airflow_provider_sms.service.elapsed import ending_by
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

MARGIN_SECONDS = 10.0
"""Seconds that a claim's deadline allows beyond the request's own timeouts: for a busy machine and the commit."""
POLL_SECONDS = 0.2
"""Seconds between two looks at the stop signal."""
SILENT_SECONDS = 5.0
"""Seconds without a response after which a send that reconciles claims nothing beside the request."""
STOPPED_SECONDS = 3.0
"""Seconds after which no attempt begins once the send was told to stop: Airflow kills it five seconds later."""
MAX_BUSY = 5
"""How often a commit that other processes have kept waiting is tried again; each try waits up to a minute."""
_REPEATED_EVENT = "the response has the event id of an earlier one of the campaign, so it belongs to another request"


class Sender:
    """Sends messages, each at most once within its campaign.

    :param post: posts one request; raises :class:`ServiceError`. Called in other threads.
    :param post_seconds: the most seconds that ``post`` may take, and ``ask``.
    :param ask: asks the service a free question, before a request that goes alone because responses were lost. Called
        in other threads. None means that nothing is asked.
    :param stop: when set, nothing more is claimed; requests in flight are awaited and recorded.
    :param reconciles: whether the balance tells what became of a request whose outcome is unknown.
    :param holds: whether a request of the account is lost whose outcome the balance may still tell: nothing is claimed
        then. Called before each claim of a send that reconciles.
    :param monotonic: seconds from any start: for waits, which must not grow when a clock is set.
    """

    def __init__(
        self,
        ledger: CampaignLedger,
        post: Callable[[Outgoing], SendResponse],
        *,
        post_seconds: float,
        stop: StopFlag,
        concurrency: int = 4,
        max_requests_per_second: float | None = None,
        reconciles: bool = False,
        backoff: Backoff | None = None,
        ask: Callable[[], object] | None = None,
        stop_conditions: StopConditions | None = None,
        holds: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.error: Exception | None = None
        """The first error that ended the send."""
        self.ledger_failed = False
        self.lost: set[int] = set()
        """Requests whose outcome is unknown, until somebody takes them."""
        self.noted: set[int] = set()
        """Claims of other live processes that hold messages of this send; likewise."""
        self.stop_conditions = StopConditions() if stop_conditions is None else stop_conditions
        self._ledger = ledger
        self._post = post
        self._post_seconds = post_seconds
        self._ask = ask
        self._concurrency = concurrency
        self._reconciles = reconciles
        self._stop = stop
        self._holds = holds
        self._monotonic = monotonic
        self._schedule = Schedule(self.stop_conditions, concurrency=concurrency, max_per_second=max_requests_per_second)
        self._outcomes = Outcomes(self.stop_conditions, backoff or Backoff(), reconciles, monotonic)
        # Not a SimpleQueue: if its timeout passes before it begins to wait, on a busy machine, it waits for ever.
        self._ended: queue.Queue[tuple[InFlightRequest, SendResponse | BaseException]] = queue.Queue()
        self._in_flight: dict[int, InFlightRequest] = {}
        self._unrecorded: list[Outcome] = []
        self._busy = 0
        """How often in a row a commit was kept waiting by other processes."""

    @property
    def taken(self) -> int:
        """Messages that the service has taken."""
        return self._outcomes.taken

    @property
    def goes_on(self) -> bool:
        """Whether the send may claim more."""
        return self.error is None and not self._stop.is_set() and self.stop_conditions.stop_reason is None

    def run(self, chunks: Chunks) -> bool:
        """Make one pass; return whether its messages are used up. At its end every outcome is recorded.

        It ends early if it may not go on, and with ``reconcile`` if an outcome is unknown. What went wrong is in
        ``error``.
        """
        try:
            workers = WorkerPool(self._concurrency, self._post_one)
        except RuntimeError as error:
            self.fail(error)
            return False
        with workers:
            while self._in_flight or (self._claiming and self._has_more(chunks)):
                self._step(chunks, workers)
        self._flush()
        is_over = self._claiming and not self._has_more(chunks)
        if is_over:
            self.stop_conditions.all_read()
        return is_over

    def fail(self, error: Exception) -> None:
        """Claim nothing more, because of the first error that calls for that; a ledger that has gone back is graver.

        A failover ends the connection first. That error alone would make Airflow try again, with a ledger that has
        forgotten people.
        """
        if self.error is None or isinstance(error, LedgerLostError):
            self.error = error
        self.ledger_failed = self.ledger_failed or isinstance(error, LedgerError)

    @property
    def _claiming(self) -> bool:
        if not self.goes_on or not self._reconciles:
            return self.goes_on
        try:
            return not (self.lost or self._holds())
        except Exception as error:  # noqa: BLE001  # of the ledger
            self.fail(error)
            return False

    def _has_more(self, chunks: Chunks) -> bool:
        try:
            return bool(self._schedule.waiting) or chunks.any
        except Exception as error:  # noqa: BLE001  # of the file, or of the ledger
            self.fail(error)
            return False

    def _step(self, chunks: Chunks, workers: WorkerPool) -> None:
        try:
            self._collect(chunks)
            self._commit(self._due_batches(chunks), workers)
        except Exception as error:  # noqa: BLE001  # nothing may keep the requests in flight from being recorded
            self.fail(error)

    def _collect(self, chunks: Chunks) -> None:
        """Wait until there is something to do, and handle every POST that has ended."""
        ended: list[tuple[InFlightRequest, SendResponse | BaseException]] = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=self._patience(chunks)))
            while True:
                ended.append(self._ended.get_nowait())
        repeated = self._repeated_events(ended)
        for request, result in ended:
            try:
                # A connection can carry a response twice.
                is_repeated = request.request_id in repeated
                self._handle(request, UnknownOutcomeError(_REPEATED_EVENT) if is_repeated else result)
            except Exception as error:  # noqa: BLE001  # the others must be recorded
                self.fail(error)

    def _patience(self, chunks: Chunks) -> float:
        if not self._claiming or self._waits_for_silent():
            return POLL_SECONDS
        wakeup = self._schedule.next_wakeup(self._monotonic(), len(self._in_flight), more=chunks.any)
        return min(POLL_SECONDS, wakeup)

    def _waits_for_silent(self) -> bool:
        """Return whether a request has had no response for long: beside it, no charge could be told from its own."""
        now = self._monotonic()
        return self._reconciles and any(now - each.since >= SILENT_SECONDS for each in self._in_flight.values())

    def _handle(self, request: InFlightRequest, result: SendResponse | BaseException) -> None:
        """Queue the outcome of a POST for the next commit, and apply the next step."""
        del self._in_flight[request.request_id]
        try:
            result = refuse_contradiction(result)
            outcome = outcome_of(request, result)
        except Exception as error:  # noqa: BLE001  # one of this code: the request was posted
            result, outcome = error, failed(request.request_id, UNKNOWN, error)
        # First of all: no error in what follows may cost the record of a request.
        self._unrecorded.append(outcome)
        if outcome.state == UNKNOWN:
            self.lost.add(request.request_id)
        step = self._outcomes.next_step(request, result, claiming=self.goes_on)
        if step.retry_at is not None:
            self._schedule.retry(request.batch, step.retry_at)
        if step.error is not None:
            self.fail(step.error)

    def _repeated_events(self, ended: Iterable[tuple[InFlightRequest, SendResponse | BaseException]]) -> set[int]:
        """Return the requests that have ended with the event id of another request: one statement asks for all."""
        events = {request.request_id: result.event_id for request, result in ended if isinstance(result, SendResponse)}
        if not events:
            return set()
        known = {**{each.request_id: each.event_id for each in self._unrecorded}, **events}
        first: dict[int | None, int] = {}
        repeated = {each for each, its in known.items() if its is not None and first.setdefault(its, each) != each}
        try:
            repeated |= self._ledger.known_events(events)
        except Exception as error:  # noqa: BLE001  # the responses must be recorded
            self.fail(error)
        return repeated

    def _due_batches(self, chunks: Chunks) -> list[RequestBatch]:
        batches: list[RequestBatch] = []
        if self._waits_for_silent():
            return batches
        try:
            batches.extend(self._schedule.due(chunks, self._monotonic(), len(self._in_flight), lambda: self._claiming))
        except Exception as error:  # noqa: BLE001  # of the file, or of the ledger; outcomes must be recorded
            self.fail(error)
        return batches

    def _commit(self, batches: list[RequestBatch], workers: WorkerPool) -> None:
        """Record and claim in one commit, and post what was claimed."""
        if self.ledger_failed or not (self._unrecorded or batches):
            self._defer(batches)
            return
        alone, asks = self.stop_conditions.caution.on, self.stop_conditions.caution.asks
        seconds = self._post_seconds * (2 if asks else 1) + MARGIN_SECONDS
        try:
            chunks = [batch.messages for batch in batches]
            claims = self._ledger.commit(outcomes=self._unrecorded, chunks=chunks, claim_seconds=seconds)
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing of the commit may be relied on
            if not self._tries_again(error):
                self.fail(error)
                self.ledger_failed = True
            self._defer(batches)
            return
        self._unrecorded, self._busy = [], 0
        if batches and self.stop_conditions.note_pause(self._ledger.paused):
            self._defer(batches)
            return
        held = [key for batch, claim in zip(batches, claims, strict=True) for key in batch.keep(claim.won)]
        now = self._monotonic()
        for batch, claim in zip(batches, claims, strict=True):
            if claim.request_id is not None:
                request = InFlightRequest(
                    claim.request_id, batch, claim.deadline, self._ledger.lapses_at, now, alone, asks
                )
                batch.attempt += 1
                self._in_flight[claim.request_id] = request
                workers.submit(request)
        if held:
            holders = self._ledger.holders(held).values()
            self.noted.update(each.request_id for each in holders if each.state != ACCEPTED)

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
            self._schedule.retry(batch, self._monotonic() + DEFER_SECONDS)

    def _post_one(self, request: InFlightRequest) -> None:
        """Post, in one of the other threads, and hand back the result, whatever it is."""
        result: SendResponse | BaseException
        try:
            if request.asks:
                self._require_answer()
            if self._stop.is_set():
                raise NotSentError("not posted, since the task was told to stop")  # noqa: TRY301  # one path
            # The commit of the claim may have waited for a busy ledger since the hours were looked at.
            if self.stop_conditions.have_ended(request.batch.messages):
                raise NotSentError("not posted, since its sending hours have ended")  # noqa: TRY301  # one path
            # A process that slept between claim and POST must not post under a claim that others may call unknown. The
            # limit is by a clock that nobody sets, too: the ledger's may have been set meanwhile, and may be again
            # before the first byte is written.
            began = self._ledger.elapsed()
            left = min(request.deadline - self._ledger.clock(), request.lapses_at - began)
            if left < self._post_seconds:
                raise NotSentError("not posted, since too little time was left of its claim")  # noqa: TRY301  # one path
            with ending_by(began + min(left, self._post_seconds + MARGIN_SECONDS)):
                result = self._post(request.batch.messages)
        except BaseException as error:  # noqa: BLE001  # every end of a post is an outcome
            result = error
        self._ended.put((request, result))

    def _require_answer(self) -> None:
        """Ask the service a free question, and raise where it does not answer: nothing is posted then."""
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
        if not (self._unrecorded or self.ledger_failed):
            return
        if (error := flush(self._ledger, self._unrecorded)) is not None:
            self.fail(error)
        else:
            self._unrecorded = []


def flush(ledger: CampaignLedger, outcomes: Sequence[Outcome]) -> Exception | None:
    """Record outcomes, and give back claims whose commit raised; only while no POST is in flight.

    It is tried as long as the ledger's patience lasts; the log then names each request, for ``airflow-sms resolve``.

    :returns: the last error; None when everything is recorded.
    """
    try:
        # Whatever the error is: what was received must not be lost.
        ledger.patience.again(lambda: ledger.finish(outcomes), Exception, stopped_seconds=STOPPED_SECONDS)
    except Exception as error:  # noqa: BLE001  # likewise
        failed = error
    else:
        return None
    for outcome in outcomes:
        log.error(
            "Not recorded in the ledger: request %d is %s, event id %s",
            outcome.request_id,
            outcome.state,
            outcome.event_id,
        )
    return failed
