"""A campaign that a person approves before anybody is texted.

`plan` checks the table and sends nothing. If it costs more than 500 credits, `approve` shows it in Airflow's required
actions, tells the people on call, and fails after four hours without an answer. `assigned_users` would say who may
answer. `send` sends that plan, or nothing: if the table has changed since, it fails, and `plan` has to be cleared.

It needs the connection `sms_default`, and the variable `sms_on_call` with one or more numbers.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.python import BranchPythonOperator
from airflow.sdk import DAG, Param

from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.sms import BulkSmsOperator

RECIPIENTS = Path(__file__).parent / "data" / "recipients.parquet"
CAMPAIGN = {
    "source": str(RECIPIENTS),
    "message": "Hi {first_name}, your appointment at our {city} branch is tomorrow.",
    "default_region": "ZA",
    "campaign": "{{ dag.dag_id }}.{{ params.campaign }}",
    "on_invalid": "skip",
}

with DAG(
    "example_sms_approval",
    schedule=None,
    params={
        "campaign": Param("appointments", type="string", minLength=1),
        "ask_above": Param(500, type="number", minimum=0, description="credits"),
    },
    tags=["example", "sms"],
    doc_md=__doc__,
):
    # [START howto_operator_bulk_sms_approval]
    plan = BulkSmsOperator(task_id="plan", dry_run=True, **CAMPAIGN)
    approve = ApprovalOperator(
        task_id="approve",
        subject="Send this campaign?",
        body="{{ ti.xcom_pull('plan', key='plan')['markdown'] }}",
        notifiers=SmsNotifier("{{ dag.dag_id }} waits for you", to="{{ var.value.sms_on_call }}", default_region="ZA"),
        response_timeout=timedelta(hours=4),
    )
    send = BulkSmsOperator(
        task_id="send",
        approved_plan="{{ ti.xcom_pull('plan', key='plan')['id'] }}",
        trigger_rule="none_failed_min_one_success",
        retries=2,
        **CAMPAIGN,
    )
    plan >> approve >> send
    # [END howto_operator_bulk_sms_approval]

    # [START howto_operator_bulk_sms_approval_above]
    is_dear = BranchPythonOperator(
        task_id="is_dear",
        python_callable=lambda ti, params: (
            "approve" if ti.xcom_pull("plan", key="plan")["cost"] > params["ask_above"] else "send"
        ),
    )
    plan >> is_dear >> [approve, send]
    # [END howto_operator_bulk_sms_approval_above]
