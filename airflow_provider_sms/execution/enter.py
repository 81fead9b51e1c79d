"""An attempt enters its ledger: it checks for earlier attempts, and leaves a trace before anything is claimed.

A second copy of a task that runs at the same time is refused only where Airflow refuses its note. Otherwise it wins
what is free (:mod:`airflow_provider_sms.ledger.claims`), and waits for the other's claims
(:mod:`airflow_provider_sms.sending.settle`).
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import closing, contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_sms.exceptions import InputError, ServiceError, SmsError, StoppedError
from airflow_provider_sms.execution.errors import airflow_errors, is_permanent
from airflow_provider_sms.execution.progress import Progress
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.attempts import has_trace, note_progress, register
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import AttemptState, Claimant
from airflow_provider_sms.ledger.name_rules import default_name
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sending.settle import Reconciliation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.hooks.connection import ClientSettings
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

NOTE = "sms_ledger"
"""The key in Airflow's task state store of the ledger that a task has used, in words."""


@dataclass
class Run:
    """An attempt that is in its ledger, with its operator and that operator's checked arguments."""

    task: Any
    options: Any
    campaign: str
    stop: StopFlag
    settings: ClientSettings
    store: LedgerBackend
    who: Claimant
    ledger: CampaignLedger
    reconciliation: Reconciliation
    progress: Progress


@contextmanager
def enter(task: Any, context: Context, *, resumed: bool) -> Iterator[Run]:
    """Enter the ledger, and raise every error of the block as one of Airflow's.

    The arguments are checked once the attempt is registered: the next one looks for the trace of this one.
    """
    who, stop = claimant_of(context), task.stop_signal
    with airflow_errors(resumed=resumed), closing(open_ledger(task.ledger_conn_id, stop=stop)) as store:
        refuse_without_trace(context, store, who, resumed=resumed, ledger_conn_id=task.ledger_conn_id)
        claimant_id = register(store, who)
        note_ledger(context, store)
        options = task.read_options()
        campaign = options.campaign or default_name(who)
        conn_id = task.hook.sms_conn_id
        # So that no purge forgets the campaign while the source is read.
        store.patience.again(
            lambda: note_progress(store, campaign, claimant_id, AttemptState.CHECKING, conn_id=conn_id, patience=None)
        )
        progress = Progress(context, conn_id, store, claimant_id, campaign)
        with progress.until_ended():
            settings = task.hook.get_settings()
            account = Account(settings.account, Prices(options.cost_per_part).total)
            ledger = CampaignLedger(store, campaign, who, kind=options.kind, claimant_id=claimant_id, account=account)
            ledger.lapse()
            scope = "" if options.campaign else " (one per DAG run: name it to text each person once, ever)"
            log.info("Campaign %s%s, remembered in %s", campaign, scope, store.description)
            reconciliation = Reconciliation(
                store, campaign, settings.account, lambda: progress.balance_read(read_balance(settings))
            )
            try:
                yield Run(task, options, campaign, stop, settings, store, who, ledger, reconciliation, progress)
            except BaseException as error:
                if ledger.lost is None or is_permanent(error):
                    raise
                # Whatever ended the attempt: a retry would text forgotten people twice.
                raise ledger.lost from error


def read_balance(settings: ClientSettings) -> Balance:
    """Read the balance; an error names the place of the service."""
    try:
        return settings.read_balance()
    except ServiceError as error:
        error.place = settings.place(settings.balance_url)
        raise


def balance_if_readable(read: Callable[[], Balance]) -> Balance | None:
    """Return the balance; None where it cannot be read, which matters only to ``on_low_balance`` and later evidence."""
    try:
        return read()
    except SmsError as error:
        log.info("The balance cannot be read before the send: %s", error)
        return None


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
    context: Context, store: LedgerBackend, who: Claimant, *, resumed: bool, ledger_conn_id: str | None
) -> None:
    """Refuse a ledger that does not know the earlier attempts of this task.

    Where Airflow has a task state store (3.3 and newer), each attempt leaves a note of its ledger there; elsewhere the
    try number says that there was an earlier one. After a wait there was one, the attempt itself.
    """
    state: Any = context.get("task_state_store")
    noted = None if state is None else state.get(NOTE)
    is_first = who.try_number == 1 or (state is not None and _notes_outlive_clears())
    if (noted is None and is_first and not resumed) or has_trace(store, who, of_attempt=resumed):
        return
    mapped = "" if who.map_index < 0 else f" --map-index {who.map_index}"
    here = f" --ledger-conn-id {quote(ledger_conn_id)}" if ledger_conn_id else ""
    raise InputError(
        f"This is attempt {who.try_number}{' after a wait' if resumed else ''}, and {store.description} has no trace "
        f"of an earlier one, which used {noted or 'one that is not known'}. Nothing was sent, since people could be "
        "texted twice. Was the ledger lost or moved, was the campaign purged, does this machine not share it, or is "
        "another one configured now? Bring it back and clear the task. Where no earlier attempt texted anybody, or a "
        f"second text is acceptable: airflow-sms adopt {who.dag_id} {who.task_id} {who.run_id}{mapped}{here}"
    )


def note_ledger(context: Context, store: LedgerBackend) -> None:
    """Note the ledger of this attempt in Airflow, before anything is claimed; no-op where Airflow takes no notes."""
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


def _notes_outlive_clears() -> bool:
    """Return whether a task's state store keeps a note throughout the run, which it does not from Airflow 3.4 on."""
    from airflow import __version__

    version = tuple(int(number) for number in __version__.split(".")[:2])
    return version < (3, 4) and not conf.getboolean("state_store", "clear_on_success", fallback=False)
