"""A campaign with every control: opt-outs, sending hours, limits, and credit.

`text_customers` checks the table, logs the plan of the send, and pushes it as the XCom `plan`. It sends only in South
Africa's hours for direct marketing. Outside these hours, or without credit, it waits without a worker slot. A plan that
is larger or dearer than expected fails the task before anybody is texted.

`params.campaign` names the campaign. A second run under the same name texts nobody twice.

It needs the connection `sms_default`, and a triggerer for the waits.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_provider_sms.operators.sms import SOUTH_AFRICAN_DIRECT_MARKETING, BulkSmsOperator, Limits

DATA = Path(__file__).parent / "data"
RECIPIENTS, OPTED_OUT = DATA / "recipients.parquet", DATA / "opted_out.csv"

with DAG(
    "example_sms_controls",
    schedule=None,
    params={"campaign": Param("spring-sale", type="string", minLength=1)},
    tags=["example", "sms"],
    doc_md=__doc__,
):
    # [START howto_operator_bulk_sms_controls]
    BulkSmsOperator(
        task_id="text_customers",
        source=str(RECIPIENTS),
        message="Hi {first_name}, the spring sale begins at our {city} branch. Reply STOP to opt out.",
        default_region="ZA",
        campaign="{{ dag.dag_id }}.{{ params.campaign }}",
        suppress=str(OPTED_OUT),
        send_window=SOUTH_AFRICAN_DIRECT_MARKETING,
        on_invalid="skip",
        cost_per_part={"276": 0.35, "277": 0.8, "27": 1, "": 2.4},  # credits, as the sandbox charges
        limits=Limits(max_rows=2_000, max_cost=1_000, max_parts=2, max_invalid=0.05, max_error_rate=0.1),
        on_low_balance="wait",
    )
    # [END howto_operator_bulk_sms_controls]
