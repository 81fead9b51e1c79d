"""Text the rows of a DataFrame that another task returns.

`overdue_invoices` stands for a query. `remind` texts about each invoice once, however often the DAG runs: the campaign
never changes, and the invoice number identifies the message, so a new wording or amount is not a new message.

It needs the connection `sms_default`.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import dag, task

from airflow_provider_sms.operators.sms import BulkSmsOperator


@dag(schedule=None, tags=["example", "sms"], doc_md=__doc__)
def example_sms_from_dataframe() -> None:
    """Find overdue invoices, and remind the people who owe them."""

    # [START howto_operator_bulk_sms_dataframe]
    @task(show_return_value_in_logs=False)  # or the log shows everybody's number
    def overdue_invoices() -> Any:
        import pandas as pd

        return pd.DataFrame(
            {
                "mobile": ["082 000 0001", "+27 83 000 0002", "27840000003"],
                "first_name": ["Thandeka", "Pieter", "Naledi"],
                "invoice": ["INV-1041", "INV-1042", "INV-1057"],
                "amount": [1250.5, 89.9, 12400.0],
                "due": pd.to_datetime(["2026-01-05", "2026-01-09", "2026-01-12"]),
            }
        )

    BulkSmsOperator(
        task_id="remind",
        source=overdue_invoices(),
        destination_column="mobile",
        message="{first_name}, invoice {invoice} of R{amount:,.2f} was due on {due:%d %B}. Paid already? Thank you.",
        key_columns=["invoice"],
        default_region="ZA",
        campaign="{{ dag.dag_id }}",
    )
    # [END howto_operator_bulk_sms_dataframe]


example_sms_from_dataframe()
