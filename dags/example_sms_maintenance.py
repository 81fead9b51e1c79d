"""Forget campaigns once they are old enough.

The ledger keeps everybody who was texted until somebody forgets them. This DAG forgets campaigns in which nothing has
happened for 90 days. In your copy, give it a schedule, such as `@daily`, and set the days here or for all in
`[sms] retention_days`.

A forgotten campaign protects nobody: a task that runs again under its name texts everybody again. So keep a campaign
until none of its tasks can be cleared any more.
"""

from __future__ import annotations

from airflow.sdk import dag

from airflow_provider_sms.operators.sms import PurgeLedgerOperator


# [START howto_operator_purge_ledger]
@dag(schedule=None, catchup=False, tags=["example", "sms"], doc_md=__doc__)
def example_sms_maintenance() -> None:
    """Purge the ledger; campaigns that are unknown, paused or waiting are kept."""
    PurgeLedgerOperator(task_id="purge_ledger", retention_days=90)


example_sms_maintenance()
# [END howto_operator_purge_ledger]
