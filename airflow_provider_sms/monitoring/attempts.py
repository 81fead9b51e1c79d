"""The attempts that sent campaigns, as they reported themselves."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import func, select

from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.model import AttemptState
from airflow_provider_sms.ledger.schema import attempt, campaign
from airflow_provider_sms.monitoring.models import Attempt
from airflow_provider_sms.monitoring.status import current_attempts, is_silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.requests import RequestRow

TaskInstance = tuple[str, str, str, int]
"""The DAG, the task, the run and the map index."""

_TASK_INSTANCE = (attempt.c.dag_id, attempt.c.task_id, attempt.c.run_id, attempt.c.map_index)
_REPORTED = [attempt.c[name] for name in Attempt._fields if name != "silent"]


def attempts_by_campaign(connection: Connection, ids: Sequence[int], now: float) -> dict[int, list[Attempt]]:
    """Return the current attempts of campaigns, newest first."""
    found: dict[int, list[Attempt]] = defaultdict(list)
    for piece in in_pieces(ids):
        # Earlier attempts of a mapped copy count for nothing, and often outnumber the last ones.
        last = (
            select(func.max(attempt.c.id))
            .where(attempt.c.campaign_id.in_(piece))
            .group_by(attempt.c.campaign_id, *_TASK_INSTANCE)
        )
        query = select(attempt.c.campaign_id, *_REPORTED).where(attempt.c.id.in_(last))
        for row in connection.execute(query).mappings():
            reported = dict(row)
            campaign_id = reported.pop("campaign_id")
            silent = is_silent(reported["state"], reported["updated_at"], now)
            found[campaign_id].append(Attempt(**reported, silent=silent))
    current = {campaign_id: current_attempts(attempts) for campaign_id, attempts in found.items()}
    # Of the many that are not current, the figures are not read.
    return {
        campaign_id: [each._replace(figures=_json_object(cast("str | None", each.figures))) for each in attempts]
        for campaign_id, attempts in current.items()
    }


def tasks_to_clear(store: LedgerBackend, decided: Sequence[RequestRow]) -> list[TaskInstance]:
    """Return the tasks to run again once requests are decided: those that made them, or failed on unknown requests.

    The latter are those whose last attempt failed with unknown messages of a campaign of these requests: their own, or
    those of other tasks that they met.
    """
    query = (
        select(*_TASK_INSTANCE, attempt.c.state, attempt.c.figures)
        .join(campaign)
        .where(campaign.c.name.in_({row.campaign for row in decided}))
        .order_by(attempt.c.id)
    )
    has_failed: dict[TaskInstance, bool] = {}
    with store.read() as connection:
        for *task, state, figures in connection.execute(query):
            failed = state == AttemptState.FAILED and _json_object(figures).get("unknown", 0) > 0
            has_failed[(task[0], task[1], task[2], task[3])] = failed
    made_them = [row.task_instance for row in decided]
    return list(dict.fromkeys([*made_them, *(task for task, failed in has_failed.items() if failed)]))


def _json_object(text: str | None) -> dict[str, Any]:
    """Return the object that a JSON text holds; empty for no text or another kind of value."""
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
