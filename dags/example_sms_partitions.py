"""Text the people in a directory of Parquet files, with one task for each file, several at once.

`list_partitions` finds the files, and `text_partition` is mapped over them. Each mapped task checks, sends and retries
separately. All share one campaign in one ledger, so a person in two files with the same text is texted once.

The pool `sms_account` enforces the account's rate: each running task takes a slot and posts at most 5 requests a
second, so 4 slots make 20 a second. Put every task that uses the account into that pool.

It needs the connection `sms_default`, the connection `sms_ledger` to PostgreSQL, and the pool:
`airflow pools set sms_account 4 "The SMS account: 5 requests a second for each slot"`. Without the pool the mapped
tasks wait, and the scheduler's log says why.

Most tables need none of this: one task for the whole directory is simpler, and as fast as most accounts allow.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, task

from airflow_provider_sms.operators.sms import BulkSmsOperator

with DAG(
    "example_sms_partitions",
    schedule=None,
    params={
        "directory": Param(
            str(Path(__file__).parent / "data"),
            type="string",
            minLength=1,
            description="A path that every worker can read, or a URI such as s3://bucket/people",
        ),
        "campaign": Param(
            type="string",
            minLength=1,
            description="Within it everybody is texted once: repeat a name to continue, choose a new one to text again",
        ),
    },
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["example", "sms"],
    doc_md=__doc__,
):

    @task
    def list_partitions(directory: str) -> list[str]:
        """Return the path of each Parquet file, and of each folder of them."""
        from airflow.sdk import ObjectStoragePath
        from airflow.sdk.exceptions import AirflowFailException

        found = [
            str(path)
            for path in ObjectStoragePath(directory).iterdir()
            if not path.name.startswith(("_", ".")) and (path.suffix == ".parquet" or path.is_dir())
        ]
        if not found:
            # Without this, the mapped task is skipped, and a run that texted nobody succeeds.
            raise AirflowFailException(f"There is no Parquet file in {directory}")
        return sorted(found)

    # [START howto_operator_bulk_sms_partitions]
    BulkSmsOperator.partial(
        task_id="text_partition",
        message="Hi {first_name}, your statement of R{amount:.2f} is ready at our {city} branch. "
        "Reply STOP to opt out.",
        default_region="ZA",
        on_invalid="skip",
        campaign="{{ params.campaign }}",  # the same for all partitions
        ledger_conn_id="sms_ledger",  # the same for all machines
        pool="sms_account",  # its slots times …
        max_requests_per_second=5,  # … this must not exceed the account's rate
        concurrency=4,
    ).expand(source=list_partitions("{{ params.directory }}"))
    # [END howto_operator_bulk_sms_partitions]
