"""The progress of each attempt, recorded in the ledger for the pages. It never decides whether a message goes out.

Two rules read it: a purge keeps the campaign of an attempt that began or is deferred, and a later attempt is compared
with the plans of earlier ones. Commands read from it which connection sent a request, and which tasks failed on unknown
requests.

Each attempt, and each leg of one, has a row of its own, which no other process writes: a process that hung and reports
late reports only about itself.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from airflow_provider_sms.ledger.backend import enter_campaign, in_pieces
from airflow_provider_sms.ledger.locks import campaign_lock, progress_lock
from airflow_provider_sms.ledger.model import AttemptState, Claimant
from airflow_provider_sms.ledger.schema import campaign, claimant, progress, request
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable

PATIENCE_SECONDS = 1.0
"""Seconds that a record of progress waits for another process's commit: the thread that records it handles Airflow's
signals, and SQLite, which waits in C, lets none through."""

_MAX_CONN_ID = 250


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
    patience: float | None = PATIENCE_SECONDS,
) -> None:
    """Record the progress of an attempt. A value that is None keeps what was recorded last.

    It waits for no claim, except for those of other attempts where the campaign is new.

    :param claimant_id: the claimant of the attempt, or of the leg of it.
    :param state: an :class:`~airflow_provider_sms.ledger.model.AttemptState`.
    :param conn_id: the connection that it sends with.
    :param total: rows that can be texted.
    :param done: of these, rows that need nothing more: sent now or before, unknown, repeated or suppressed.
    :param not_sent: of these, rows that were not sent.
    :param invalid: rows that cannot be texted.
    :param rate: messages a second.
    :param figures: further counts that belong to the state; no number and no text.
    :param plan: the plan, as :meth:`~airflow_provider_sms.planning.plan.Plan.as_json` returns it.
    :param patience: seconds to wait for another process's commit; None means as long as a claim waits.
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
    with store.write(progress_lock(claimant_id), patience=patience) as connection:
        # A shared lock on its row: a purge of the campaign comes before this or after.
        query = select(campaign.c.id).where(campaign.c.name == campaign_name)
        campaign_id = connection.execute(query.with_for_update(read=True, key_share=True)).scalar()
        if campaign_id is not None:
            _put(connection, claimant_id, {**given, "campaign_id": campaign_id})
            return
    with store.write(campaign_lock(campaign_name), patience=patience) as connection:
        campaign_id = enter_campaign(connection, campaign_name, store.clock())
        _put(connection, claimant_id, {**given, "campaign_id": campaign_id})


def of_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a summary, with no more of the service's own words than is needed.

    :param summary: an attempt's summary, or the part of it that the service stated.
    """
    networks = {mask_numbers_in(network): cost for network, cost in summary["cost_breakdown"].items()}
    return {**summary, "cost_breakdown": networks}


def connections_of(store: Readable, request_ids: Collection[int]) -> dict[int, str]:
    """Return the Airflow connection that each request was sent with, as its attempt reported it.

    :param request_ids: requests whose connection is not known are left out.
    :raises LedgerError: when the ledger cannot be read.
    """
    of_attempt = request.join(progress, progress.c.claimant_id == request.c.claimant_id)
    query = select(request.c.id, progress.c.conn_id).select_from(of_attempt).where(progress.c.conn_id.is_not(None))
    found: dict[int, str] = {}
    with store.read() as connection:
        for piece in in_pieces(sorted(request_ids)):
            found.update((each, conn_id) for each, conn_id in connection.execute(query.where(request.c.id.in_(piece))))
    return found


def failed_on_unknown(store: Readable, campaign_names: Collection[str]) -> list[Claimant]:
    """Return the attempts that failed with unknown messages of a campaign and were the last of their task instance.

    Their own requests may be unknown, or those of other tasks that they met: once these are closed, the tasks need to
    be cleared.

    :returns: in the order in which they began.
    :raises LedgerError: when the ledger cannot be read.
    """
    columns = [claimant.c[each.name] for each in fields(Claimant)]
    query = (
        select(progress.c.state, progress.c.figures, *columns)
        .select_from(progress.join(claimant).join(campaign, campaign.c.id == progress.c.campaign_id))
        .where(campaign.c.name.in_(campaign_names))
        .order_by(claimant.c.id)
    )
    last: dict[tuple[str, str, str, int], Claimant | None] = {}
    with store.read() as connection:
        for state, figures, *values in connection.execute(query):
            who = Claimant(*values)
            failed = state == AttemptState.FAILED and json.loads(figures or "{}").get("unknown", 0) > 0
            last.pop(who.task_instance, None)
            last[who.task_instance] = who if failed else None
    return [who for who in last.values() if who is not None]


def _put(connection: Connection, claimant_id: int, values: Mapping[str, Any]) -> None:
    changed = connection.execute(update(progress).where(progress.c.claimant_id == claimant_id).values(**values))
    if not changed.rowcount:
        connection.execute(insert(progress).values(claimant_id=claimant_id, **values))
