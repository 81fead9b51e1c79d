"""Retention: forgetting what the ledger has kept for longer than it may, in a task of its own and never in a send."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.formatting import counted, iso
from airflow_provider_sms.hooks.ledger import configured_retention_days, open_existing_ledger
from airflow_provider_sms.ledger.balances import forget_balances
from airflow_provider_sms.ledger.purge import choose, forget_campaign, forget_claimants, old_campaigns
from airflow_provider_sms.sending.threads import run_uninterrupted

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.stop_flag import StopFlag

log = logging.getLogger(__name__)

_DAY = 86_400
_NAMED = 10
"""Campaigns that a line of the log names: with a campaign for each run there are many."""


def apply_retention(ledger_conn_id: str | None, days: int | None, stop: StopFlag) -> dict[str, Any]:
    """Purge the ledger of what is older than its retention, and return counts, as the task's result.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None means the configured ledger.
    :param days: the retention; None means ``[sms] retention_days``, and 0 means that nothing is forgotten.
    :param stop: ends the purge between two transactions.
    :raises InputError: the option is not a whole number of days, or there is no ledger.
    :raises LedgerError: the ledger cannot be read or written to.
    :raises StoppedError: the purge was stopped; the next one goes on from there.
    """
    days = configured_retention_days() if days is None else days
    result: dict[str, Any] = {
        "retention_days": days,
        "before": None,
        **dict.fromkeys(("campaigns", "messages", "attempts", "balances"), 0),
        "kept": dict.fromkeys(("open", "paused", "waiting", "in_use"), 0),
        "erased": None,
    }
    if not days:
        log.info("Nothing is forgotten: set [sms] retention_days, or the operator's retention_days")
        return result
    opened = open_existing_ledger(ledger_conn_id, connection=BaseHook.get_connection, argument="ledger_conn_id")
    with closing(opened) as store:
        before = store.clock() - days * _DAY
        result["before"] = iso(before)
        log.info("Forgetting what is older than %s in %s", iso(before), store.description)
        # In a thread of its own: a signal must not interrupt a transaction.
        interruption = run_uninterrupted(
            lambda: _purge(store, before, stop, result), on_interrupt=stop.set, heartbeat=lambda: None
        )
    if interruption is not None:
        raise interruption
    if stop.is_set():
        raise StoppedError("Told to stop before everything was forgotten. The next run goes on from there")
    return result


def _purge(store: LedgerBackend, before: float, stop: StopFlag, result: dict[str, Any]) -> None:
    """Purge a ledger, and count what is forgotten and kept.

    :param before: the end of the retention, seconds since the epoch.
    :param result: gets the counts.
    """

    def count_messages(messages: int) -> None:
        result["messages"] += messages

    kept = result["kept"]
    unsettled, paused, waiting, going = choose(old_campaigns(store, before))
    kept.update(open=len(unsettled), paused=len(paused), waiting=len(waiting))
    for which, some in (
        ("with requests that are unknown or under way", unsettled),
        ("that a person paused", paused),
        ("for which a task waits (if that task has ended: airflow-sms purge --include-waiting)", waiting),
    ):
        if some:
            names = ", ".join(old.name for old in some[:_NAMED])
            log.warning("Kept, though older: %s %s: %s", counted(len(some), "campaign"), which, names)
    for old in going:
        if stop.is_set():
            return
        try:
            forget_campaign(store, old, should_stop=stop.is_set, on_forgotten=count_messages)
        except InputError as error:  # it is in use again
            log.warning("%s", error)
            kept["in_use"] += 1
        else:
            result["campaigns"] += 1
    if stop.is_set():
        return
    result["attempts"] = forget_claimants(store, before)
    result["balances"] = forget_balances(store, before)
    remains = store.remove_remains()
    result["erased"] = remains.is_gone
    log.info(
        "Forgotten: %s with %s, %s and %s. %s",
        counted(result["campaigns"], "campaign"),
        counted(result["messages"], "message"),
        counted(result["attempts"], "attempt"),
        counted(result["balances"], "balance"),
        remains.words,
    )
