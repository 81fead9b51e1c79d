"""A later try must find the ledger of the earlier ones: without it, it would text everybody again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.sending.earlier import has_trace

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.store import Store

MARKER = "sms_ledger"
"""Key in Airflow's task state store, which survives retries and clears, of the ledger that a try used."""


def refuse_without_trace(context: Context, store: Store, who: Claimant) -> None:
    """Refuse a ledger that does not know the earlier tries of this task.

    Where Airflow has a task state store (3.3 and newer), each try leaves a note of its ledger there; elsewhere the try
    number says that there was an earlier one.

    :raises InputError: says what may have happened, and how to go on.
    """
    used = _earlier_ledger(context, who)
    if used is None or has_trace(store, who):
        return
    mapped = "" if who.map_index < 0 else f" --map-index {who.map_index}"
    raise InputError(
        f"This is try {who.try_number}, and {store.description} has no trace of an earlier one, which used {used}. "
        "Nothing was sent, since people could be texted twice. Was the ledger lost or moved, does this machine not "
        "share it, or is another one configured now? Bring it back and clear the task. Where no earlier try texted "
        "anybody, or a second text is acceptable: "
        f"airflow-sms ledger adopt {who.dag_id} {who.task_id} {who.run_id}{mapped}"
    )


def leave_marker(context: Context, store: Store) -> None:
    """Note which ledger this try uses, before it claims anything.

    :raises StoppedError: Airflow does not take the note, as from a try that was superseded.
    """
    state: Any = context.get("task_state_store")
    if state is None:
        return
    from airflow.sdk.execution_time.context import NEVER_EXPIRE

    try:
        state.set(MARKER, store.description, retention=NEVER_EXPIRE)
    except Exception as error:
        raise StoppedError(
            "Airflow did not take the note of the ledger that this try uses, as it refuses one from a try that another "
            f"one has replaced ({type(error).__name__}); nothing was sent by this try"
        ) from error


def _earlier_ledger(context: Context, who: Claimant) -> str | None:
    """Give the ledger that an earlier try used, in words; None where none has used any."""
    state: Any = context.get("task_state_store")
    if state is not None:
        marker = state.get(MARKER)
        if marker is not None:
            return str(marker)
        if not conf.getboolean("state_store", "clear_on_success", fallback=False):
            return None
    return "one that is not known" if who.try_number > 1 else None
