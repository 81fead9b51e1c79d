"""Outcomes that the ledger has not recorded yet. A recovery file keeps them if the delay lasts.

Airflow kills a task five seconds after telling it to stop, and a silent ledger keeps the sender waiting for longer than
that. So a separate thread watches what is not recorded, and writes the file: at once when the send is told to stop,
otherwise once an outcome has waited for the ledger for a second. It removes the file when the ledger has everything. A
send whose ledger responds writes none.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sms.ledger.recovery import UnrecordedOutcomes, write_file
from airflow_provider_sms.sending.response_handler import outcome_of, refuse_contradiction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from typing_extensions import Self

    from airflow_provider_sms.ledger.attempts import Origin
    from airflow_provider_sms.ledger.model import Outcome
    from airflow_provider_sms.sending.request_batch import InFlightRequest
    from airflow_provider_sms.service.responses import SendResponse
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 1.0
"""Seconds that an outcome may wait for the ledger before it is kept in a file, too. A commit takes milliseconds."""
LOOK_SECONDS = 0.25
"""Seconds between two looks at what is not recorded: a small part of the five that a stopped task has."""
_LEAVE_SECONDS = 5.0
"""Seconds that the end of a send waits for the thread, or for the file that it writes: a disk can hang."""


class RecoveryPlace(NamedTuple):
    """Where outcomes are kept.

    :param folder: the folder of the files; created when the first is written.
    :param origin: the attempt that they belong to.
    :param ledger_conn_id: the connection to its ledger, for a command; None means the configured ledger.
    """

    folder: Path
    origin: Origin
    ledger_conn_id: str | None = None


class _Kept(NamedTuple):
    """A request for which the ledger has no outcome.

    :param at: since when, in seconds of the watch's clock.
    :param request: None where it is surely not posted.
    :param result: the end of its POST.
    """

    at: float
    request: InFlightRequest | None = None
    result: SendResponse | BaseException | None = None


class RecoveryFile:
    """The outcomes of a send that its ledger does not have yet, and the file that keeps them if the delay lasts.

    :param place: None means that no file is written.
    :param stop: whether the send was told to stop.
    :param monotonic: seconds from any start.
    """

    def __init__(
        self,
        place: RecoveryPlace | None,
        stop: StopFlag,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._stop = stop
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._writing = threading.Lock()
        self.unposted: Callable[[], Collection[int]] = tuple
        """Returns the requests whose POST has not begun, of claims that are durable or may become so."""
        self._path: Path | None = None
        self._written: frozenset[int] = frozenset()
        """The requests that are in the file."""
        self._failed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sms-recovery", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the file if anything is unrecorded, and none otherwise."""
        self._ended.set()
        self._thread.join(_LEAVE_SECONDS)

    def add(self, request: InFlightRequest, result: SendResponse | BaseException) -> None:
        """Keep the end of a POST until it is recorded. Called in the thread that posted.

        :param result: the response, or what the POST raised.
        """
        with self._lock:
            self._kept[request.request_id] = _Kept(self._monotonic(), request, result)

    def add_unposted(self, request_ids: Iterable[int]) -> None:
        """Keep requests that are claimed, or may be, and that nobody will post."""
        with self._lock:
            self._kept.update((each, _Kept(self._monotonic())) for each in request_ids)

    def remove(self, outcomes: Iterable[Outcome]) -> None:
        """Drop the requests whose outcomes the ledger has recorded."""
        with self._lock:
            for outcome in outcomes:
                self._kept.pop(outcome.request_id, None)

    def remove_all(self) -> None:
        """Drop every request: the ledger has recorded all of them."""
        with self._lock:
            self._kept.clear()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()
        self.write()

    def look(self) -> None:
        """Write the file when it is time for that, and remove it when the ledger responds again."""
        with self._lock:
            oldest = next(iter(self._kept.values()), None)
        is_due = oldest is not None and self._monotonic() - oldest.at >= PATIENCE_SECONDS
        if is_due or self._stop.is_set():
            self.write()
        else:
            self._put({})

    def write(self) -> Path | None:
        """Write all that is unrecorded now, and return the path of the file; None where none has it. Never raises."""
        with self._lock:
            if self._stop.is_set():
                # No POST begins from now on. Before the stop, each of these may be posted in a moment.
                for request_id in self.unposted():
                    self._kept.setdefault(request_id, _Kept(self._monotonic()))
            kept = dict(self._kept)
        self._put(kept)
        return self._path if kept.keys() == self._written else None

    def _put(self, kept: Mapping[int, _Kept]) -> None:
        """Write a new file, then remove the previous one. Without any outcome to keep, only remove the previous one."""
        if not self._writing.acquire(timeout=_LEAVE_SECONDS):
            return
        try:
            if self._place is None or kept.keys() == self._written:
                return
            try:
                before, self._path = self._path, self._write_new(self._place, kept) if kept else None
                self._written = frozenset(kept)
                if before is not None:
                    before.unlink(missing_ok=True)
            except Exception as error:  # noqa: BLE001  # the send goes on, and the next look tries again
                if not self._failed:
                    reason = getattr(error, "strerror", None) or type(error).__name__
                    log.warning("Outcomes cannot be kept in a file in %s: %s", self._place.folder, reason)
                self._failed = True
        finally:
            self._writing.release()

    def _write_new(self, place: RecoveryPlace, kept: Mapping[int, _Kept]) -> Path:
        outcomes = [
            outcome_of(each.request, refuse_contradiction(each.result))
            for each in kept.values()
            if each.request is not None and each.result is not None
        ]
        unposted = [request_id for request_id, each in kept.items() if each.request is None]
        return write_file(place.folder, UnrecordedOutcomes(place.origin, outcomes, unposted))

    def tell(self) -> None:
        """Log where the outcomes that the ledger did not take are kept."""
        if (path := self.write()) is not None:
            conn_id = None if self._place is None else self._place.ledger_conn_id
            log.error(
                "These outcomes are kept in %s. The next task that sends on this machine records them; to record them "
                "now: airflow-sms ledger recover %s%s",
                path,
                shlex.quote(str(path)),
                f" --ledger-conn-id {shlex.quote(conn_id)}" if conn_id else "",
            )
