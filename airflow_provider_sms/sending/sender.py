"""The sender: claims messages in the ledger, posts what it claimed, records what became of it.

One thread reads the source, owns the ledger and decides; the others do nothing but post. Outcomes and the next claims
share one commit, and a slot is free again only once its outcome is recorded: so after a crash at any instant at most
``concurrency`` requests are unknown.
"""

from __future__ import annotations

import logging
import queue
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_sms.exceptions import (
    AuthenticationError,
    LedgerError,
    LedgerLostError,
    NotSentError,
    RefusedError,
    ServiceError,
    UnknownOutcomeError,
)
from airflow_provider_sms.ledger.model import NOT_SENT, UNKNOWN
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.pending import PendingMessages
from airflow_provider_sms.sending.request_batch import InFlightRequest, RequestBatch
from airflow_provider_sms.sending.results import ResultHandler, failed
from airflow_provider_sms.sending.retry import Backoff
from airflow_provider_sms.sending.scheduler import HOLD_SECONDS, RequestScheduler
from airflow_provider_sms.sending.stop_conditions import Brakes
from airflow_provider_sms.sending.threads import Prefetcher, WorkerPool
from airflow_provider_sms.service.elapsed import elapsed, ending_by
from airflow_provider_sms.service.responses import SendResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from airflow_provider_sms.ledger.campaign import CampaignLedger
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.messages.outgoing import Block, Outgoing
    from airflow_provider_sms.stop_flag import StopFlag


log = logging.getLogger(__name__)

MARGIN_SECONDS = 10.0
"""What a claim's deadline allows beyond the request's own timeouts: for a busy machine and the commit."""
POLL_SECONDS = 0.2
"""How often the stop signal, and the claims of other live processes, are looked at."""
STOP_SECONDS = 2.0
"""How long, once told to stop, rows that were not reached are looked up for the counts."""


class Sender:
    """Sends a stream of messages, each at most once within its campaign.

    :param ledger: this try's view of the campaign.
    :param post: posts one request; raises :class:`ServiceError`. Called in other threads.
    :param post_seconds: the longest that ``post`` may take, and ``ask``.
    :param ask: asks the service a free question, before a request that goes alone because answers were lost; raises
        :class:`ServiceError`. Called in other threads. None: nothing is asked.
    :param stop: when set, nothing more is claimed; what is in flight is awaited and recorded.
    :param tally: where to count.
    :param brakes: what may end the sending early though nothing is wrong; None: nothing.
    :param monotonic: seconds from any start: for waits, which a clock that is set must not stretch.
    :param sleep: waits for that many seconds.
    :param elapsed: the clock of the client that posts: seconds from any start, on while the machine sleeps.
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
        tally: SendCounts | None = None,
        brakes: Brakes | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        elapsed: Callable[[], float] = elapsed,
    ) -> None:
        self.tally = SendCounts() if tally is None else tally
        self.error: Exception | None = None
        self.brakes = Brakes() if brakes is None else brakes
        self._ledger = ledger
        self._post = post
        self._post_seconds = post_seconds
        self._ask = ask
        self._options = options
        self._stop = stop
        self._monotonic = monotonic
        self._sleep = sleep
        self._elapsed = elapsed
        self._departures = RequestScheduler(options, self.brakes)
        self._landings = ResultHandler(
            options,
            self.tally,
            self.brakes,
            self._departures,
            claiming=lambda: self._claiming,
            monotonic=monotonic,
        )
        # Not a SimpleQueue: one whose timeout passes before it begins to wait, on a busy machine, waits for ever.
        self._landed: queue.Queue[tuple[InFlightRequest, SendResponse | BaseException]] = queue.Queue()
        self._flying = 0
        self._posted: dict[int, int] = {}
        self._unposted: set[int] = set()
        self._ledger_failed = False

    def run(self, blocks: Iterable[Block | Sequence[Outgoing]], *, guard: Callable[[], None] | None = None) -> None:
        """Send all of it, and return when every request has an outcome that is recorded.

        What went wrong is in ``error`` afterwards, and the counts are in ``tally``: both are needed when sending ends
        early. Where it was stopped, or the ledger failed, blocks may be left unread, and are then not in the tally.

        :param blocks: the messages; read only as fast as they go out.
        :param guard: called before anything is claimed; when it raises, nothing is.
        """
        posters: WorkerPool[InFlightRequest] | None = None
        try:
            if guard is not None:
                guard()
            posters = WorkerPool(self._options.concurrency, self._post_one)
        except Exception as error:  # noqa: BLE001  # a guard that reads the source may fail in any way
            self._fail(error)
        with Prefetcher(blocks) as ahead:
            backlog = PendingMessages(ahead, self._ledger, self.tally, resend=self._options.resends)
            if posters is not None:
                with posters:
                    while self._flying or (self._claiming and (self._departures.waiting or not backlog.empty)):
                        self._step(backlog, posters)
                    if self._claiming:
                        self.brakes.all_read()
            self._flush()
            self._count_the_rest(backlog)

    def _step(self, backlog: PendingMessages, posters: WorkerPool[InFlightRequest]) -> None:
        try:
            self._collect(backlog)
            self._commit(backlog, self._next_batches(backlog), posters)
        except Exception as error:  # noqa: BLE001  # nothing may keep the posts under way from being recorded
            self._fail(error)

    @property
    def _claiming(self) -> bool:
        return self.error is None and not self._stop.is_set() and self.brakes.halt is None

    def _fail(self, error: Exception) -> None:
        """Claim nothing more, because of the first error that said so; a ledger that went back is the graver one.

        A failover ends the connection first. That error alone would have Airflow try again, in a ledger that has
        forgotten people.
        """
        if self.error is None or isinstance(error, LedgerLostError):
            self.error = error
        self._ledger_failed = self._ledger_failed or isinstance(error, LedgerError)

    def _collect(self, backlog: PendingMessages) -> None:
        """Wait until there is something to do, and take in every post that has ended."""
        try:
            landed = self._landed.get(timeout=self._patience(backlog))
            while True:
                self._land(*landed, backlog)
                landed = self._landed.get_nowait()
        except queue.Empty:
            pass

    def _patience(self, backlog: PendingMessages) -> float:
        if not self._claiming:
            return POLL_SECONDS
        wait = self._departures.patience(self._monotonic(), self._flying, more=backlog.ready)
        return min(POLL_SECONDS, wait)

    def _land(self, flight: InFlightRequest, result: SendResponse | BaseException, backlog: PendingMessages) -> None:
        self._flying -= 1
        if isinstance(result, SendResponse) and self._is_known(result.event_id):
            result = UnknownOutcomeError(
                "the answer has the event id of an earlier one of the campaign: it is not the answer to this request"
            )
        if (error := self._landings.land(flight, result, backlog)) is not None:
            self._fail(error)
        del self._posted[flight.request_id]

    def _is_known(self, event_id: int) -> bool:
        """Return whether an answer with an event id came before: a connection can carry an answer twice."""
        try:
            return any(outcome.event_id == event_id for outcome in self._landings.outcomes) or self._ledger.has_event(
                event_id
            )
        except LedgerError as error:
            self._fail(error)
            return False

    def _next_batches(self, backlog: PendingMessages) -> list[RequestBatch]:
        batches: list[RequestBatch] = []
        try:
            batches.extend(self._departures.next(backlog, self._monotonic(), self._flying, lambda: self._claiming))
        except Exception as error:  # noqa: BLE001  # a source can fail in any way; outcomes must be recorded
            self._fail(error)
        return batches

    def _commit(
        self, backlog: PendingMessages, batches: list[RequestBatch], posters: WorkerPool[InFlightRequest]
    ) -> None:
        """Record and claim in one commit, and post what was claimed."""
        if self._ledger_failed or not (self._landings.outcomes or batches):
            self._put_off(batches)
            return
        alone, asks = self.brakes.caution.on, self.brakes.caution.asks
        seconds = self._post_seconds * (2 if asks else 1) + MARGIN_SECONDS
        try:
            chunks = [batch.chunk for batch in batches]
            claims = self._ledger.commit(outcomes=self._landings.outcomes, chunks=chunks, claim_seconds=seconds)
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing of the commit may be relied on
            self._fail(error)
            self._ledger_failed = True
            self._put_off(batches)
            return
        self._landings.outcomes = []
        self._tell_texted_twice()
        self._unposted = {claim.request_id for claim in claims if claim.request_id is not None}
        if batches and self.brakes.pulled(self._ledger.paused):
            self._put_off(batches)
            return
        for batch, claim in zip(batches, claims, strict=True):
            self._count_capped(batch, [batch.messages[place] for place in claim.capped])
            if lost := batch.keep(claim.won, claim.capped):
                self._sort_lost(backlog, lost, turned_away=batch.turned_away > 0)
            if claim.request_id is None:
                self.brakes.gave_up(batch)
            else:
                batch.attempt += 1
                self._flying += 1
                self._posted[claim.request_id] = len(batch.messages)
                self._unposted.remove(claim.request_id)
                posters.give(InFlightRequest(claim.request_id, batch, claim.deadline, alone, asks))

    def _count_capped(self, batch: RequestBatch, capped: list[Outgoing]) -> None:
        """Count messages to people who must not be texted yet; what an unknown request holds stays unknown."""
        for outgoing in capped:
            if outgoing.key in batch.take_over:
                self.tally.add_unknown(batch.take_over[outgoing.key], 1)
            else:
                self.tally.add_capped(outgoing.row)

    def _put_off(self, batches: Iterable[RequestBatch]) -> None:
        """Keep what was not claimed; soon enough it is tried again, if anything is."""
        for batch in batches:
            self._departures.hold(batch, self._monotonic() + HOLD_SECONDS)

    def _sort_lost(self, backlog: PendingMessages, lost: list[Outgoing], *, turned_away: bool) -> None:
        """Find out what became of messages that somebody else claimed first."""
        try:
            backlog.sort(lost, turned_away=turned_away)
        except LedgerError as error:
            self._fail(error)
            backlog.put_back(lost)

    def _post_one(self, flight: InFlightRequest) -> None:
        """Post, in one of the other threads, and hand back whatever came of it."""
        result: SendResponse | BaseException
        try:
            if flight.asks:
                self._require_answer()
            # A process that slept between claim and POST must not post under a claim that others may call unknown. By
            # a clock that nobody sets: the ledger's may be another one by the time that the first byte is written.
            began = self._elapsed()
            left = flight.deadline - self._ledger.clock()
            if left < self._post_seconds:
                raise NotSentError("its claim was too old by the time it could be posted")  # noqa: TRY301  # one path
            with ending_by(began + min(left, self._post_seconds + MARGIN_SECONDS)):
                result = self._post(flight.batch.messages)
        except BaseException as error:  # noqa: BLE001  # every end of a post is an outcome
            result = error
        self._landed.put((flight, result))

    def _require_answer(self) -> None:
        """Ask the service a free question, and raise where it does not answer: nothing is posted then.

        :raises NotSentError: no answer came.
        :raises AuthenticationError: the token is not valid.
        """
        if self._ask is None:
            return
        try:
            self._ask()
        except AuthenticationError:
            raise
        except RefusedError:
            return  # an answer, though not a balance
        except ServiceError as error:
            raise NotSentError(
                f"not posted, since answers were lost and the service does not answer a free question either: {error}",
                status=error.status,
                retry_after=error.retry_after,
            ) from error

    def _flush(self) -> None:
        """Record what is known and not yet recorded, within a bound; else the log holds it."""
        # What was posted and has no outcome was met by an error of this code: it is unknown, and never given back.
        for request_id, count in self._posted.items():
            self._landings.outcomes.append(failed(request_id, UNKNOWN, self.error))
            self.tally.add_unknown(request_id, count)
        self._landings.outcomes.extend(failed(request_id, NOT_SENT, self.error) for request_id in self._unposted)
        if not (self._landings.outcomes or self._ledger_failed):
            return
        if (error := flush(self._ledger, self._landings.outcomes, self._sleep)) is not None:
            self._fail(error)
        self._tell_texted_twice()

    def _tell_texted_twice(self) -> None:
        """Log and count messages that are with two requests, once each."""
        for twice in self._ledger.texted_twice[len(self.tally.texted_twice) :]:
            self.tally.texted_twice.append(twice)
            log.error("Request %d was accepted after others could claim its messages: %s", twice.request_id, twice)

    def _count_the_rest(self, backlog: PendingMessages) -> None:
        """After an error of the service, look up what was not reached, so that the counts say what became of it."""
        for batch in self._departures.waiting:
            backlog.count_unsent(batch.messages, batch.take_over)
        until = self._monotonic() + STOP_SECONDS

        def may_look() -> bool:
            return not self._ledger_failed and not (self._stop.is_set() and self._monotonic() > until)

        try:
            backlog.settle(may_look)
        except Exception as error:  # noqa: BLE001  # the counts are then of what was read
            self._fail(error)
        backlog.drop()


FLUSH_WAITS = (0.2, 1.0, 3.0, 5.0, 10.0, 10.0, 10.0)
"""Seconds between attempts to record outcomes when the ledger fails."""
FLUSH_SECONDS = 40.0
"""After this no attempt begins: one of them takes seconds where the ledger is silent."""


def flush(
    ledger: CampaignLedger,
    outcomes: Sequence[Outcome],
    sleep: Callable[[float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> LedgerError | None:
    """Record outcomes, and give back claims whose commit raised.

    Only for when no post is under way.

    :param sleep: waits for that many seconds.
    :param monotonic: seconds from any start.
    :returns: the last error; None when all is recorded.
    """
    failed: LedgerError | None = None
    give_up = monotonic() + FLUSH_SECONDS
    for wait in (*FLUSH_WAITS, None):
        try:
            ledger.finish(outcomes)
        except LedgerLostError as error:
            failed = error
            break
        except LedgerError as error:
            failed = error
            if wait is None or monotonic() + wait > give_up:
                break
            sleep(wait)
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


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """How to send.

    :param chunk_size: messages a request, 1 to 100.
    :param concurrency: requests in flight at once, at least 1.
    :param max_requests_per_second: None for no limit.
    :param resend_unknown: post messages again whose outcome is unknown: at least once instead of at most once.
    :param resend_requests: the unknown requests whose messages a person wants to be posted again.
    :param backoff: waits between attempts of a request that was surely not processed.
    """

    chunk_size: int = 100
    concurrency: int = 4
    max_requests_per_second: float | None = None
    resend_unknown: bool = False
    resend_requests: frozenset[int] = frozenset()
    backoff: Backoff = field(default_factory=Backoff)

    def resends(self, request_id: int) -> bool:
        """Say whether what an unknown request holds is to be posted again."""
        return self.resend_unknown or request_id in self.resend_requests
