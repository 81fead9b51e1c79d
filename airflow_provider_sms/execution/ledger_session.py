"""The session of an attempt with its ledger: it checks for earlier attempts, and leaves a trace before any claim."""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.common.compat.sdk import TaskDeferred, conf

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.execution.failures import describe
from airflow_provider_sms.execution.xcom import MARKER, pull_own, push
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.hooks.ledger import configured_ledger_patience, open_ledger
from airflow_provider_sms.ledger.attempts import HighWater, adopted_at, has_trace, high_water, raised, register
from airflow_provider_sms.ledger.backend import again_if_busy
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import AttemptState, Claimant
from airflow_provider_sms.ledger.progress import note_progress
from airflow_provider_sms.sending.threads import run_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.account import Account
    from airflow_provider_sms.ledger.backend import LedgerBackend


@dataclass(frozen=True)
class LedgerSession:
    """An attempt that is in its ledger.

    :param who: the attempt, as claims name it.
    :param claimant_id: this leg's id in the ledger.
    :param resumed: whether this leg follows a deferral.
    :param mark: notes the ledger's high-water mark outside the ledger.
    :param held: how far the ledger was when the attempt was compared with earlier ones.
    """

    store: LedgerBackend
    who: Claimant
    claimant_id: int
    resumed: bool
    mark: HighWaterMark
    held: HighWater

    def hold(self, campaign: str, conn_id: str) -> None:
        """Record that the attempt uses a campaign, so that no purge forgets it while the source is read.

        :param campaign: the campaign's name; nothing is recorded for an empty one, which is refused later.
        :param conn_id: the connection to send with.
        :raises InputError: a purge has forgotten requests of this task since the attempt began.
        :raises LedgerError: when it was not committed; then nothing may be sent.
        """
        if not campaign:
            return
        again_if_busy(
            lambda: note_progress(
                self.store, campaign, self.claimant_id, AttemptState.CHECKING, conn_id=conn_id, patience=None
            )
        )
        # Only now: a purge may have been under way when the attempt was compared with earlier ones.
        if high_water(self.store, self.who).is_below(self.held):
            raise InputError(
                f"Campaign {campaign} was purged while this attempt began. Nothing was sent, since people whom earlier "
                "attempts texted could be texted twice. Take them out of the table before you clear the task"
            )

    def campaign(self, name: str, kind: str, account: Account) -> CampaignLedger:
        """Return the claims of a campaign, as this attempt sees them.

        :param kind: ``bulk`` or ``group``.
        :param account: the account that it is sent with.
        """
        return CampaignLedger(
            self.store,
            name,
            self.who,
            kind=kind,
            claimant_id=self.claimant_id,
            resumed=self.resumed,
            account=account,
            patience=configured_ledger_patience(),
        )


@contextmanager
def entered(context: Context, ledger_conn_id: str | None, *, resumed: bool) -> Iterator[LedgerSession]:
    """Open the ledger for an attempt.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; for None see :func:`open_ledger`.
    :param resumed: whether this leg follows a deferral.
    :raises InputError: the connection cannot hold a ledger, or the ledger has no trace of the earlier attempts, or has
        lost some of their claims.
    :raises LedgerError: it cannot be opened.
    :raises StoppedError: another attempt has replaced this one.
    """
    who = claimant_of(context)
    with closing(open_ledger(ledger_conn_id)) as store:
        held = high_water(store, who)
        refuse_without_trace(context, store, who, held, resumed=resumed, ledger_conn_id=ledger_conn_id)
        claimant_id = register(store, who)
        mark = HighWaterMark(context, store, claimant_id, held)
        mark.leave()
        try:
            yield LedgerSession(store, who, claimant_id, resumed, mark, held)
        except BaseException as signal:
            if isinstance(signal, TaskDeferred):
                mark.leave_for_next_leg()
            raise
        finally:
            mark.beat(last=True)


def claimant_of(context: Context) -> Claimant:
    """Return the claimant: this attempt, in this process."""
    ti = context["ti"]
    return Claimant(
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        host=socket.gethostname(),
        pid=os.getpid(),
    )


log = logging.getLogger(__name__)

NOT_KNOWN = "one that is not known"
MARK_SECONDS = 2.0
"""Seconds between two notes of the high-water mark. Each takes Airflow some milliseconds."""
DISCARDS_ON_CLEAR = (3, 4)
"""From this version on Airflow discards a task's state store when the task is cleared."""


class Marker(NamedTuple):
    """A note outside the ledger: which ledger was used, and its high-water mark.

    :param ledger: the ledger's description.
    :param mark: None where an older version of this package noted only the ledger.
    :param noted_at: by the ledger's clock, in seconds since the epoch.
    :param try_number: of the attempt that noted it; None where an older version of this package did.
    """

    ledger: str
    mark: HighWater | None = None
    noted_at: float = 0.0
    try_number: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the marker as it is stored: everybody who may look at the task can read it."""
        mark = self.mark or HighWater()
        return {
            "ledger": self.ledger,
            "highest_request": mark.highest,
            "requests": mark.requests,
            "noted_at": self.noted_at,
            "try_number": self.try_number,
        }

    @classmethod
    def read(cls, stored: Any) -> Marker | None:
        """Return a stored value as a marker; None where nothing is stored."""
        if not isinstance(stored, dict):
            return None if stored is None else cls(str(stored))
        mark = HighWater(stored.get("highest_request", 0), stored.get("requests", 0))
        return cls(stored.get("ledger", NOT_KNOWN), mark, stored.get("noted_at", 0.0), stored.get("try_number"))


def refuse_without_trace(
    context: Context,
    store: LedgerBackend,
    who: Claimant,
    held: HighWater,
    *,
    resumed: bool = False,
    ledger_conn_id: str | None = None,
) -> None:
    """Refuse a ledger that does not know the earlier attempts of this task, or has lost some of their claims.

    Where Airflow has a task state store (3.3 and newer), each attempt leaves a note of its ledger there; elsewhere the
    try number says that there was an earlier one. A leg after a deferral knows that there was one before it.

    :param held: the ledger's high-water mark.
    :param resumed: whether this leg follows a deferral.
    :param ledger_conn_id: the connection to the task's ledger, for a command; None means the configured ledger.
    :raises InputError: says what may have happened, and how to go on.
    """
    markers = _markers(context, resumed=resumed)
    used = _earlier_ledger(context, who, markers, resumed=resumed)
    if used is None:
        return
    mapped = "" if who.map_index < 0 else f" --map-index {who.map_index}"
    here = f" --ledger-conn-id {quote(ledger_conn_id)}" if ledger_conn_id else ""
    adopt = f"airflow-sms adopt {who.dag_id} {who.task_id} {who.run_id}{mapped}{here}"
    this = f"This is attempt {who.try_number}{' after a wait' if resumed else ''}"
    if not has_trace(store, who, of_attempt=resumed):
        raise InputError(
            f"{this}, and {store.description} has no trace of an earlier one, which used {used}. "
            "Nothing was sent, since people could be texted twice. Was the ledger lost or moved, was the campaign "
            "purged, does this machine not share it, or is another one configured now? Bring it back and clear the "
            f"task. Where no earlier attempt texted anybody, or a second text is acceptable: {adopt}"
        )
    for marker in markers:
        if _is_elsewhere(store, who, marker):
            raise InputError(
                f"{this}, and {store.description} has no trace of attempt {marker.try_number}, which used "
                f"{marker.ledger}. Nothing was sent, since people could be texted twice: this ledger does not know "
                "whom that attempt texted. Is another ledger configured now? Configure that one again and clear the "
                f"task. Where that attempt texted nobody, or a second text is acceptable: {adopt}"
            )
        was = marker.mark
        if was is not None and held.is_below(was) and (adopted_at(store, who) or 0.0) <= marker.noted_at:
            raise InputError(
                f"{this}, and {store.description} has gone back: it has {held.requests} "
                f"{by_count(held.requests, 'request')} of this task, up to request {held.highest}, and had "
                f"{was.requests}, up to request {was.highest}. Nothing was sent, since people could be texted twice. "
                "Was an older backup put back, was the file copied without its -wal file, or did a standby of the "
                "database take over that had not received everything? Bring back what is missing and clear the task. "
                f"Where a second text is acceptable: {adopt}"
            )


def _is_elsewhere(store: LedgerBackend, who: Claimant, marker: Marker) -> bool:
    """Return whether another ledger has the attempt that left a note, and nobody has adopted this one since."""
    if marker.try_number is None or marker.ledger == store.description:
        return False
    if has_trace(store, replace(who, try_number=marker.try_number), of_attempt=True, adopted=False):
        return False
    return (adopted_at(store, who) or 0.0) <= marker.noted_at


class HighWaterMark:
    """Notes the ledger's high-water mark outside the ledger, while an attempt sends. It belongs in the main thread.

    :param claimant_id: of this leg, in the ledger.
    :param mark: the ledger's mark before this leg.
    :param clock: returns seconds, from any start.
    """

    def __init__(
        self,
        context: Context,
        store: LedgerBackend,
        claimant_id: int,
        mark: HighWater,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._store = store
        self._claimant_id = claimant_id
        self._clock = clock
        self._state: Any = context.get("task_state_store")
        self._mark = mark
        self._due = clock()

    def leave(self) -> None:
        """Note the ledger of this attempt and its high-water mark, before anything is claimed.

        :raises StoppedError: Airflow does not take the note, as happens to an attempt that was superseded.
        """
        try:
            self._set()
        except Exception as error:
            raise StoppedError(
                "Airflow did not take the note of the ledger that this attempt uses, as it refuses one from an attempt "
                f"that another one has replaced ({type(error).__name__}). This attempt sent nothing"
            ) from error

    def beat(self, *, last: bool = False) -> None:
        """Note the high-water mark if it has risen, unless that was done a moment ago. Never raises.

        :param last: whether no other call follows.
        """
        if self._state is None or not (last or self._clock() >= self._due):
            return
        self._due = self._clock() + MARK_SECONDS
        try:
            if self._raise():
                self._set()
        except Exception as error:  # noqa: BLE001  # nobody may be left out because a note could not be written
            self._state = None
            log.warning("The high-water mark of the ledger could not be noted in Airflow: %s", describe(error))

    def leave_for_next_leg(self) -> None:
        """Leave the mark for the leg after a deferral as an XCom as well, if the task pushes XComs. Never raises."""
        task: Any = self._context["task"]
        if not task.do_xcom_push:
            return  # and the mark is not updated here, so that the last beat notes it in the state store
        try:
            self._raise()
            push(self._context, MARKER, self._marker().as_json())
        except Exception as error:  # noqa: BLE001  # the task waits in any case
            log.warning("The high-water mark of the ledger could not be noted in an XCom: %s", describe(error))

    def _raise(self) -> bool:
        # While a send is under way, a silent ledger must not keep Airflow's signals waiting.
        before, self._mark = self._mark, run_beside(lambda: raised(self._store, self._mark, self._claimant_id))
        return self._mark != before

    def _marker(self) -> Marker:
        try_number = getattr(self._context.get("ti"), "try_number", None)
        return Marker(self._store.description, self._mark, self._store.clock(), try_number)

    def _set(self) -> None:
        if self._state is None:
            return
        from airflow.sdk.execution_time.context import NEVER_EXPIRE

        self._state.set(MARKER, self._marker().as_json(), retention=NEVER_EXPIRE)


def _markers(context: Context, *, resumed: bool) -> list[Marker]:
    """Return the notes of earlier attempts, and of the leg before a deferral."""
    state: Any = context.get("task_state_store")
    stored = [None if state is None else state.get(MARKER)]
    if resumed:
        stored.append(pull_own(context, MARKER))
    return [marker for marker in map(Marker.read, stored) if marker is not None]


def _earlier_ledger(context: Context, who: Claimant, markers: list[Marker], *, resumed: bool) -> str | None:
    """Return the ledger that an earlier attempt or leg used, in words; None if none has used one."""
    if markers:
        return markers[0].ledger
    if not resumed and context.get("task_state_store") is not None and _markers_outlive_clears():
        return None
    return NOT_KNOWN if resumed or who.try_number > 1 else None


def _markers_outlive_clears() -> bool:
    """Return whether a task's state store keeps a note throughout the run: then no marker means no earlier attempt."""
    from airflow import __version__

    version = tuple(int(number) for number in __version__.split(".")[:2])
    return version < DISCARDS_ON_CLEAR and not conf.getboolean("state_store", "clear_on_success", fallback=False)
