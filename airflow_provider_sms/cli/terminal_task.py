"""The task instance of ``airflow-sms send``: what an operator's attempt asks Airflow for, without a DAG.

Each campaign is a task instance of its own, and each command an attempt of it. So the ledger treats a command that runs
again as a task that is cleared: people who were texted are not texted again, not even with another text.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_sms.hooks.ledger import open_ledger_if_present
from airflow_provider_sms.ledger.attempts import last_try
from airflow_provider_sms.ledger.campaign_names import given_name_in, latest_names
from airflow_provider_sms.ledger.model import COMMAND_DAG, Claimant
from airflow_provider_sms.ledger.name_rules import read_name

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, Context

TASK_ID = "send"
_MAX_RUN_ID = 250
"""Characters of the ledger's column."""


def run_id_of(campaign: str) -> str:
    """Return the id that stands for a DAG run in the ledger: the campaign's name, or its beginning with a digest."""
    if len(campaign) <= _MAX_RUN_ID:
        return campaign
    digest = blake2b(campaign.encode(), digest_size=16).hexdigest()
    return f"{campaign[: _MAX_RUN_ID - len(digest) - 1]} {digest}"


@dataclass
class TerminalTaskInstance:
    """Stands for Airflow's task instance.

    :param ledger_is_new: whether the ledger has no campaign, so that it knows of nobody who was texted.
    :param xcoms: what the attempt has pushed, by key.
    """

    run_id: str
    try_number: int
    ledger_is_new: bool = False
    dag_id: str = COMMAND_DAG
    task_id: str = TASK_ID
    map_index: int = -1
    xcoms: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep a value."""
        self.xcoms[key] = value

    def get_task_states(self, **_: Any) -> dict[str, dict[str, str]]:
        """Return that the task is running: nobody clears a command."""
        return {self.run_id: {self.task_id: "running"}}

    def context(self, operator: BaseOperator) -> Context:
        """Return Airflow's context of the task instance, as far as an attempt reads it."""
        return cast("Context", {"ti": self, "task": operator})


def campaign_in_ledger(given: str, ledger_conn_id: str | None) -> str:
    """Return the campaign's name, as the ledger has it.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None means the configured ledger.
    :raises InputError: it cannot be a campaign's name; says why.
    :raises LedgerError: the ledger cannot be read.
    """
    name = read_name(given)
    with open_ledger_if_present(ledger_conn_id) as store:
        return name if store is None else given_name_in(store, given)


def next_attempt(campaign: str, ledger_conn_id: str | None) -> TerminalTaskInstance:
    """Return the attempt that follows those that the ledger has of a campaign; the first one where it has none.

    :param ledger_conn_id: an Airflow connection to PostgreSQL; None means the configured ledger.
    :raises LedgerError: the ledger cannot be read.
    """
    run_id = run_id_of(campaign)
    who = Claimant(COMMAND_DAG, TASK_ID, run_id, -1, 0, socket.gethostname(), os.getpid())
    with open_ledger_if_present(ledger_conn_id) as store:
        if store is None:
            return TerminalTaskInstance(run_id, 1, ledger_is_new=True)
        return TerminalTaskInstance(run_id, 1 + last_try(store, who), ledger_is_new=not latest_names(store))
