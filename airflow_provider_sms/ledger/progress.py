"""Notes in the ledger of how each try goes, for people who look. They decide nothing that lets a message go out.

A purge keeps the campaign of an attempt that waits, and a later attempt is compared with what the earlier ones planned.

Each try, and each part of one after a wait, has a row of its own, which nobody else writes: what a process that hangs
says late is about itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from airflow_provider_sms.ledger.backend import enter_campaign
from airflow_provider_sms.ledger.locks import campaign_lock, progress_lock
from airflow_provider_sms.ledger.schema import campaign, progress
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend

PATIENCE_SECONDS = 5.0
"""How long a note waits for another process's commit: nobody waits for a note."""

_MAX_CONN_ID = 250
_COUNTERS = ("NoNetwork", "Duplicates", "OptedOuts", "Faults")


def note_progress(
    store: LedgerBackend,
    campaign_name: str,
    claimant_id: int,
    state: str,
    *,
    conn_id: str | None = None,
    total: int | None = None,
    done: int | None = None,
    not_sent: int | None = None,
    invalid: int | None = None,
    rate: float | None = None,
    figures: Mapping[str, Any] | None = None,
    plan: Mapping[str, Any] | None = None,
) -> None:
    """Note how a try goes. What is None stays as it was noted last.

    It waits for no claim, but for those of other tries where the campaign is new.

    :param claimant_id: the try's.
    :param state: what it does, waits for or came to, at most 30 characters.
    :param conn_id: the connection that it sends with.
    :param total: rows that can be texted.
    :param done: of these, rows that it is done with: sent now or before, unknown, repeats, or left out.
    :param not_sent: of these, rows that were not sent.
    :param invalid: rows that cannot be texted.
    :param rate: messages a second.
    :param figures: what else there is to say of the state: counts, no number and no text.
    :param plan: what is to be sent, as :meth:`~airflow_provider_sms.planning.plan.Plan.as_json` gives it.
    :raises LedgerError: when it was not committed.
    """
    values = {
        "conn_id": None if conn_id is None else conn_id[:_MAX_CONN_ID],
        "state": state,
        "updated_at": store.clock(),
        "total": total,
        "done": done,
        "not_sent": not_sent,
        "invalid": invalid,
        "rate": rate,
        "figures": None if figures is None else json.dumps(figures),
        "plan": None if plan is None else json.dumps(plan),
    }
    given = {name: value for name, value in values.items() if value is not None}
    with store.write(progress_lock(claimant_id), patience=PATIENCE_SECONDS) as connection:
        # Shared: a purge of the campaign comes before or after.
        its = select(campaign.c.id).where(campaign.c.name == campaign_name).with_for_update(read=True, key_share=True)
        campaign_id = connection.execute(its).scalar()
        if campaign_id is not None:
            _put(connection, claimant_id, {**given, "campaign_id": campaign_id})
            return
    with store.write(campaign_lock(campaign_name), patience=PATIENCE_SECONDS) as connection:
        campaign_id = enter_campaign(connection, campaign_name, store.clock())
        _put(connection, claimant_id, {**given, "campaign_id": campaign_id})


def of_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Give a summary as it is noted: without event ids, and of the service's own words no more than is needed.

    :param summary: as :func:`~airflow_provider_sms.reporting.summary.summarise` gives it, or the service's part of it.
    """
    networks = {mask_numbers_in(network): cost for network, cost in summary["cost_breakdown"].items()}
    # Its further counters are of any name and any value.
    report = {name: summary["error_report"].get(name, 0) for name in _COUNTERS}
    noted = {name: value for name, value in summary.items() if name != "event_ids"}
    return {**noted, "cost_breakdown": networks, "error_report": report}


def _put(connection: Connection, claimant_id: int, values: Mapping[str, Any]) -> None:
    changed = connection.execute(update(progress).where(progress.c.claimant_id == claimant_id).values(**values))
    if not changed.rowcount:
        connection.execute(insert(progress).values(claimant_id=claimant_id, **values))
