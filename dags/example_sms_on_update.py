"""Welcome new members each time the table of members is written.

There are two DAGs. `example_sms_on_update_write` writes the table, which is an asset. The update makes Airflow run
`example_sms_on_update`, which texts the people in the table. Its campaign never changes, so a member who was welcomed
after an earlier update is not welcomed again.

They need the connection `sms_default`. Switch both DAGs on.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, task

from airflow_provider_sms.operators.sms import BulkSmsOperator

# [START howto_operator_bulk_sms_asset]
# If tasks run on several machines, use an object store: Asset(uri="s3://bucket/members.parquet").
FILE = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "example_sms_members.parquet"
MEMBERS = Asset(uri=FILE.as_uri())

with DAG("example_sms_on_update_write", schedule=None, tags=["example", "sms"], doc_md=__doc__):

    @task(outlets=[MEMBERS])
    def write_members() -> None:
        """Write the table to a new file and rename it, so that readers always find a whole table."""
        import pandas as pd

        members = pd.DataFrame(
            {
                "mobile": ["082 000 0001", "+27 83 000 0002", "27840000003"],
                "first_name": ["Thandeka", "Pieter", "Naledi"],
            }
        )
        unfinished = FILE.with_suffix(".unfinished")
        members.to_parquet(unfinished)
        unfinished.replace(FILE)

    write_members()

with DAG(
    "example_sms_on_update",
    schedule=[MEMBERS],
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["example", "sms"],
    doc_md=__doc__,
):
    BulkSmsOperator(
        task_id="welcome",
        source=MEMBERS,
        destination_column="mobile",
        message="Welcome, {first_name}. Reply STOP to opt out.",
        key_columns=[],  # the number alone, so a changed name is not welcomed again
        default_region="ZA",
        campaign="{{ dag.dag_id }}",
    )
# [END howto_operator_bulk_sms_asset]
