"""The session of an attempt with its ledger: it checks for earlier attempts, and leaves a trace before any claim."""

from __future__ import annotations

import os
import socket
from contextlib import closing, contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.attempts import has_trace, note_progress, register
from airflow_provider_sms.ledger.backend import again_if_busy
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import AttemptState, Claimant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.ledger.account import Account
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.stop_flag import StopFlag

NOTE = "sms_ledger"
"""The key in Airflow's task state store of the ledger that a task has used, in words."""
NOT_KNOWN = "one that is not known"
DISCARDS_ON_CLEAR = (3, 4)
"""From this version on Airflow discards a task's state store when the task is cleared."""


@dataclass(frozen=True)
class LedgerSession:
    """An attempt that is in its ledger.

    :param who: the attempt, as claims name it.
    :param claimant_id: this process's id in the ledger.
    """

    store: LedgerBackend
    who: Claimant
    claimant_id: int

    def hold(self, campaign: str, conn_id: str) -> None:
        """Record that the attempt uses a campaign, so that no purge forgets it while the source is read.

        :param campaign: the campaign's name; nothing is recorded for an empty one, which is refused later.
        :param conn_id: the connection to send with.
        :raises LedgerError: when it was not committed; then nothing may be sent.
        """
        if not campaign:
            return
        again_if_busy(
            lambda: note_progress(
                self.store, campaign, self.claimant_id, AttemptState.CHECKING, conn_id=conn_id, patience=None
            )
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
            account=account,
        )


@contextmanager
def entered(
    context: Context, ledger_conn_id: str | None, *, resumed: bool = False, stop: StopFlag | None = None
) -> Iterator[LedgerSession]:
    """Open the ledger for an attempt.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; for None see :func:`open_ledger`.
    :param resumed: whether this leg follows a deferral.
    :param stop: whether the task was told to stop.
    :raises InputError: the connection cannot hold a ledger, or the ledger has no trace of the earlier attempts.
    :raises LedgerError: it cannot be opened.
    :raises StoppedError: another attempt has replaced this one.
    """
    who = claimant_of(context)
    with closing(open_ledger(ledger_conn_id, stop=stop)) as store:
        refuse_without_trace(context, store, who, resumed=resumed, ledger_conn_id=ledger_conn_id)
        claimant_id = register(store, who)
        note_ledger(context, store)
        yield LedgerSession(store, who, claimant_id)


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


def refuse_without_trace(
    context: Context,
    store: LedgerBackend,
    who: Claimant,
    *,
    resumed: bool = False,
    ledger_conn_id: str | None = None,
) -> None:
    """Refuse a ledger that does not know the earlier attempts of this task.

    Where Airflow has a task state store (3.3 and newer), each attempt leaves a note of its ledger there; elsewhere the
    try number says that there was an earlier one. A leg after a deferral knows that there was one before it.

    :param resumed: whether this leg follows a deferral.
    :param ledger_conn_id: the connection to the task's ledger, for a command; None means the configured ledger.
    :raises InputError: says what may have happened, and how to go on.
    """
    used = _earlier_ledger(context, who, resumed=resumed)
    if used is None or has_trace(store, who, of_attempt=resumed):
        return
    mapped = "" if who.map_index < 0 else f" --map-index {who.map_index}"
    here = f" --ledger-conn-id {quote(ledger_conn_id)}" if ledger_conn_id else ""
    raise InputError(
        f"This is attempt {who.try_number}{' after a wait' if resumed else ''}, and {store.description} has no trace "
        f"of an earlier one, which used {used}. Nothing was sent, since people could be texted twice. Was the ledger "
        "lost or moved, was the campaign purged, does this machine not share it, or is another one configured now? "
        "Bring it back and clear the task. Where no earlier attempt texted anybody, or a second text is acceptable: "
        f"airflow-sms adopt {who.dag_id} {who.task_id} {who.run_id}{mapped}{here}"
    )


def note_ledger(context: Context, store: LedgerBackend) -> None:
    """Note the ledger of this attempt in Airflow, before anything is claimed; no-op where Airflow takes no notes.

    :raises StoppedError: Airflow does not take the note, as happens to an attempt that was superseded.
    """
    state: Any = context.get("task_state_store")
    if state is None:
        return
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    try:
        state.set(NOTE, store.description, retention=NEVER_EXPIRE)
    except Exception as error:
        raise StoppedError(
            "Airflow did not take the note of the ledger that this attempt uses, as it refuses one from an attempt "
            f"that another one has replaced ({type(error).__name__}). This attempt sent nothing"
        ) from error


def _earlier_ledger(context: Context, who: Claimant, *, resumed: bool) -> str | None:
    """Return the ledger that an earlier attempt or leg used, in words; None if none has used one."""
    state: Any = context.get("task_state_store")
    noted = None if state is None else state.get(NOTE)
    if noted is not None:
        return str(noted)
    if not resumed and state is not None and _notes_outlive_clears():
        return None
    return NOT_KNOWN if resumed or who.try_number > 1 else None


def _notes_outlive_clears() -> bool:
    """Return whether a task's state store keeps a note throughout the run: then no note means no earlier attempt."""
    from airflow import __version__

    version = tuple(int(number) for number in __version__.split(".")[:2])
    return version < DISCARDS_ON_CLEAR and not conf.getboolean("state_store", "clear_on_success", fallback=False)
