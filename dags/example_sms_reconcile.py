"""A campaign that settles unknown requests, whose responses were lost, as far as the account's balance tells.

The connection may break while the service works on a request: then nobody learns whether people were texted. A
pre-paid account is charged for each request that the service takes, so `remind` reads the balance and compares it. A
request that was charged for counts as accepted; one that was not is sent again. Where the balance does not tell, the
task fails, and a person decides.

It needs the connection `sms_default`, to a pre-paid account that nobody else spends from meanwhile.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_provider_sms.operators.sms import BulkSmsOperator

RECIPIENTS = Path(__file__).parent / "data" / "recipients.parquet"

with DAG(
    "example_sms_reconcile",
    schedule=None,
    params={"campaign": Param("appointments", type="string", minLength=1)},
    default_args={"retries": 2},
    tags=["example", "sms"],
    doc_md=__doc__,
):
    # [START howto_operator_bulk_sms_reconcile]
    BulkSmsOperator(
        task_id="remind",
        source=str(RECIPIENTS),
        message="Hi {first_name}, your appointment at our {city} branch is tomorrow.",
        default_region="ZA",
        campaign="{{ dag.dag_id }}.{{ params.campaign }}",
        on_invalid="skip",
        cost_per_part={"276": 0.35, "277": 0.8, "27": 1, "": 2.4},  # credits, as the sandbox charges
        on_unknown="reconcile",
    )
    # [END howto_operator_bulk_sms_reconcile]
