"""Text the people that a function finds, with one task for each city.

The function `invite` returns the people of one city, and `@task.bulk_sms` texts them. `invite` is mapped over the
cities that `cities` returns. Each mapped task checks, sends and retries separately.

Everybody is invited once to each event, however often the DAG runs.

It needs the connection `sms_default`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, Param, task

if TYPE_CHECKING:
    import pandas as pd

RECIPIENTS = Path(__file__).parent / "data" / "recipients.parquet"

with DAG(
    "example_sms_decorator",
    schedule=None,
    params={"event": Param("open-day", type="string", minLength=1, description="Everybody is invited to it once")},
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["example", "sms"],
    doc_md=__doc__,
):
    # [START howto_decorator_bulk_sms]
    @task
    def cities() -> list[str]:
        """Return the cities whose people are invited."""
        return ["Durban", "Kimberley"]

    @task.bulk_sms(
        message="Hi {first_name}, our {city} branch opens its doors on Saturday. Reply STOP to opt out.",
        default_region="ZA",
        on_invalid="skip",
        campaign="{{ dag.dag_id }}.{{ params.event }}",
    )
    def invite(least: float, city: str) -> pd.DataFrame:
        """Return the people of a city whose last statement was of at least this amount."""
        import pandas as pd

        people = pd.read_parquet(RECIPIENTS)
        return people[(people["city"] == city) & (people["amount"] >= least)]

    invite.partial(least=100.0).expand(city=cities())
    # [END howto_decorator_bulk_sms]
