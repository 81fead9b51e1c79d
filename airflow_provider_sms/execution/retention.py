"""Retention: forgetting what the ledger has kept for longer than it may, in a task of its own and never in a send."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow_provider_sms.exceptions import StoppedError
from airflow_provider_sms.formatting import iso
from airflow_provider_sms.hooks.ledger import configured_retention_days, open_ledger
from airflow_provider_sms.ledger.purge import KEPT, kept_words, old_campaigns, purge
from airflow_provider_sms.sending.workers import run_uninterrupted

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

_DAY = 86_400
_COUNTS = ("campaigns", "messages", "attempts", "balances")


def apply_retention(ledger_conn_id: str | None, days: int | None, stop: StopFlag) -> dict[str, Any]:
    """Purge the ledger of what is older than its retention, and return counts, as the task's result.

    :param days: the retention; None means ``[sms] retention_days``, and 0 means that nothing is forgotten.
    :param stop: ends the purge between two transactions; the next one goes on from there.
    """
    days = configured_retention_days() if days is None else days
    nothing = {**dict.fromkeys(_COUNTS, 0), "kept": dict.fromkeys(KEPT, 0), "erased": None}
    if not days:
        log.info("Nothing is forgotten: set [sms] retention_days, or the operator's retention_days")
        return {"retention_days": days, "before": None, **nothing}
    result: dict[str, Any] = {"retention_days": days}
    with closing(open_ledger(ledger_conn_id, create=False, stop=stop)) as store:
        before = store.clock() - days * _DAY
        result["before"] = iso(before)
        log.info("Forgetting what is older than %s in %s", iso(before), store.description)
        # In a thread of its own: a signal must not interrupt a transaction.
        interruption = run_uninterrupted(
            lambda: result.update(_purge(store, before, stop)), on_interrupt=stop.set, heartbeat=lambda: None
        )
    if interruption is not None:
        raise interruption
    if stop.is_set():
        raise StoppedError("Told to stop before everything was forgotten. The next run goes on from there")
    return result


def _purge(store: LedgerBackend, before: float, stop: StopFlag) -> dict[str, Any]:
    """Purge a ledger, and return what was forgotten and kept, by its name in the task's result."""
    found = old_campaigns(store, before)
    purged = purge(store, found, before, should_stop=stop.is_set)
    kept = [*found, *purged.in_use]
    for words in kept_words(kept):
        log.warning("%s", words)
    log.info("%s", purged)
    return {
        **{name: getattr(purged, name) for name in _COUNTS},
        "kept": {why: sum(old.keep == why for old in kept) for why in KEPT},
        "erased": purged.remains.is_gone,
    }
