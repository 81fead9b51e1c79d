"""Every step of the operator itself fails: its reports to Airflow must be true, too."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_sms.planning import scan
from airflow_provider_sms.sending import flush, reconciliation
from airflow_provider_sms.sending.backoff import Backoff
from support.faults.arena import Arena
from support.faults.saboteur import MANNERS
from support.faults.steps import sweep
from support.faults.tries import TOKEN, Ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faults.tries import Campaign, Ledgers
    from support.faults.verdict import Figures

STRIDE = 3
QUICK_STRIDE = 30
"""One operation in this many fails; the first one differs from sweep to sweep."""


def run(
    ledgers: Ledgers,
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    reconciles: bool = False,
) -> Figures:
    """Break operations of a task of ten requests, in each manner, once and for good.

    :param ledgers: function that opens the ledger.
    :param quick: True breaks a few of them.
    :param reconciles: whether lost requests are closed by what the balance proves; then it breaks fewer.
    """
    stride = (QUICK_STRIDE if quick else STRIDE) * (1 + 3 * reconciles)
    with Arena(ledgers, reconciles=reconciles) as arena, airflow(arena.sandbox.base_url, ledgers):
        for number, (manner, lasting) in enumerate(itertools.product(MANNERS, (False, True))):
            steps = range(number * 4 % stride, 10**6, stride)
            sweep(arena, manner, steps, lasting=lasting, concurrency=2, play=execute)
    return arena.figures


@contextmanager
def airflow(base_url: str, ledgers: Ledgers) -> Iterator[None]:
    """Set Airflow's connections, a home if it has none, and waits of no time."""
    service = {"conn_type": "sms", "host": base_url, "password": TOKEN, "extra": {"timeout": 5}}
    url = ledgers.url
    if ledgers.name == "sqlite":
        ledger = {"AIRFLOW__SMS__LEDGER_PATH": str(url.database)}
    else:
        server = {"conn_type": "postgres", "host": url.query["host"], "schema": url.database, "login": url.username}
        ledger = {"AIRFLOW_CONN_SMS_LEDGER": json.dumps(server), "AIRFLOW__SMS__LEDGER_CONN_ID": "sms_ledger"}
    with tempfile.TemporaryDirectory(prefix="airflow-provider-sms-faults-") as home:
        # Read when Airflow is first imported; where it was before, its own stand.
        own = {"AIRFLOW_HOME": home, "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL"}
        environment = {**own, **os.environ, **ledger, "AIRFLOW__SMS__RECOVERY_PATH": f"{home}/recovery"}
        with (
            patch.dict(os.environ, {**environment, "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(service)}),
            patch.object(flush, "FLUSH_WAITS", (0.0, 0.0, 0.0)),
            patch.object(reconciliation, "UNREADABLE_SECONDS", 0.01),
            # Of a table of that length, all but the first block are claimed in the order of keys.
            patch.object(scan, "BLOCK_ROWS", 30),
            patch.object(Backoff, "wait", lambda _, attempt, _retry_after=None: None if attempt >= 4 else 0.001),
        ):
            yield


def execute(campaign: Campaign, *, concurrency: int) -> Ended:
    """Execute the operator as a worker does, in a context of the little that it asks for.

    :raises Exception: whatever is no error of Airflow's: it would reach the log unmasked.
    """
    from airflow.providers.common.compat.sdk import AirflowException

    from airflow_provider_sms.operators.sms import BulkSmsOperator

    pushed: dict[str, Any] = {}
    task = BulkSmsOperator(
        task_id="send",
        source=[{"destination": m.destination, "text": m.content} for m in campaign.messages],
        content_column="text",
        campaign=campaign.name,
        chunk_size=campaign.chunk_size,
        concurrency=concurrency,
        **({} if campaign.reconciles_since is None else {"on_unknown": "reconcile", "settle_seconds": 0.02}),
    )
    instance = SimpleNamespace(
        dag_id="faults",
        task_id="send",
        run_id="once",
        map_index=-1,
        try_number=1,
        xcom_push=lambda key, value: pushed.update({key: value}),
    )
    try:
        return Ended(task.execute({"task": task, "ti": instance}))
    except AirflowException as error:
        return Ended(pushed["return_value"], error)
