"""Text the people on call when a task fails.

`count_invoices` stands for any task. Trigger the DAG without parameters, and it fails: everybody in the variable
`sms_on_call` gets a text that names the task and the run. Trigger it with `{"invoices": 1000}`, and nobody does.

It needs the connection `sms_default` and the variable `sms_on_call`, for example `082 000 0001, +27830000002`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_sms.notifications.sms import SmsNotifier


# [START howto_notifier_sms]
@dag(
    schedule=None,
    params={"invoices": 0},
    default_args={"on_failure_callback": SmsNotifier(to="{{ var.value.sms_on_call }}", default_region="ZA")},
    tags=["example", "sms"],
    doc_md=__doc__,
)
def example_sms_alert() -> None:
    """Count invoices, and alert the people on call if there are too few."""

    @task
    def count_invoices(params: dict[str, Any] | None = None) -> None:
        if params and params["invoices"] < 1000:  # noqa: PLR2004 - the usual number in a night
            raise AirflowFailException(f"only {params['invoices']} invoices arrived")

    count_invoices()


example_sms_alert()
# [END howto_notifier_sms]
