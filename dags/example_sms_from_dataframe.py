"""Text the rows of a DataFrame that another task returns.

The campaign is that of the README. `overdue_invoices` stands for a query. `text_them` texts about each invoice once,
however often the DAG runs: the campaign never changes, and the invoice number identifies the message, so a new wording
or amount is not a new message.

It needs the connection `sms_default`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task

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
            }
        )

    BulkSmsOperator(
        task_id="text_them",
        source=overdue_invoices(),
        destination_column="mobile",
        default_region="ZA",
        message="Hi {first_name}, invoice {invoice} of R{amount:.2f} is overdue. Paid already? Thank you.",
        campaign="reminders",
        key_columns=["invoice"],
    )
    # [END howto_operator_bulk_sms_dataframe]


example_sms_from_dataframe()
