"""Wait for credit, text the customers in a Parquet file, then the staff.

`wait_for_credit` waits until the account has enough credit. `text_customers` texts each person once, in requests of
100. It counts the rows that cannot be texted and leaves them out. `text_staff` texts a group that the service knows.

There is one campaign a day: a second run on that day, a retry or a clear texts nobody twice.

It needs the connection `sms_default`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

RECIPIENTS = Path(__file__).parent / "data" / "recipients.parquet"

# [START howto_sms_campaign_name]
# One name for each day. A run that was triggered by hand may have no logical date; then the day it is due counts.
CAMPAIGN = "{{ dag.dag_id }}.{{ (dag_run.logical_date or dag_run.run_after) | ds }}"
# [END howto_sms_campaign_name]

with DAG(
    "example_sms_campaign",
    schedule=None,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["example", "sms"],
    doc_md=__doc__,
):
    # [START howto_sensor_balance]
    wait_for_credit = BalanceSensor(
        task_id="wait_for_credit",
        min_balance=1500,
        poke_interval=5,  # seconds; reading the balance is free
        timeout=6 * 60 * 60,
    )
    # [END howto_sensor_balance]

    # [START howto_operator_bulk_sms]
    text_customers = BulkSmsOperator(
        task_id="text_customers",
        source=str(RECIPIENTS),
        message="Hi {first_name}, your statement of R{amount:.2f} is ready at our {city} branch. "
        "Reply STOP to opt out.",
        default_region="ZA",
        on_invalid="skip",
        campaign=CAMPAIGN,
    )
    # [END howto_operator_bulk_sms]

    # [START howto_operator_group_sms]
    text_staff = GroupSmsOperator(
        task_id="text_staff",
        message="The statements are out: expect calls.",
        groups=["staff"],
        campaign=CAMPAIGN,
    )
    # [END howto_operator_group_sms]

    wait_for_credit >> text_customers >> text_staff
