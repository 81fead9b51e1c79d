"""Ways to text a table from Airflow, with this package and without it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from benchmarks.data import MESSAGE
from benchmarks.sizes import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def ours(hooks: dict[str, Any], source: str, **options: Any) -> None:
    """Create a :class:`BulkSmsOperator`."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    BulkSmsOperator(task_id="text", source=source, message=MESSAGE, **options, **hooks)


def watched(hooks: dict[str, Any], source: str, control: str, **options: Any) -> Callable[[], dict[str, Any]]:
    """Create a :class:`BulkSmsOperator` whose reading is measured.

    :param control: URL of the service's counters.
    """
    from airflow_provider_sms.operators.sms import BulkSmsOperator
    from benchmarks.reading import WatchedFolder

    folder = WatchedFolder(source, control)
    BulkSmsOperator(task_id="text", source=folder, message=MESSAGE, **options, **hooks)
    return folder.seen


def query(hooks: dict[str, Any], database: str, statement: str, rows: int, **options: Any) -> None:
    """Create a :class:`BulkSmsOperator` that plans the rows of a query, and sends nothing.

    :param database: SQLite file of the query.
    :param rows: the statement's parameter of this name.
    """
    from airflow_provider_sms.operators.sms import BulkSmsOperator, SqlSource

    os.environ["AIRFLOW_CONN_BENCHMARK"] = json.dumps({"conn_type": "sqlite", "host": database})
    source = SqlSource("benchmark", statement, {"rows": rows})
    BulkSmsOperator(task_id="text", source=source, message=MESSAGE, dry_run=True, **options, **hooks)


def nothing(hooks: dict[str, Any]) -> None:
    """Create a task that does nothing."""
    from airflow.sdk import task

    @task(**hooks)  # type: ignore[untyped-decorator]  # Airflow's
    def text() -> None:
        pass

    text()


def loop(hooks: dict[str, Any], source: str, url: str) -> None:
    """Create a task that loops over a DataFrame, as guides show."""
    from airflow.sdk import task

    @task(**hooks)  # type: ignore[untyped-decorator]  # Airflow's
    def text() -> None:
        import pandas as pd
        import requests

        frame = pd.read_parquet(source)
        for start in range(0, len(frame), CHUNK):
            messages = [
                {
                    "Content": MESSAGE.format(first_name=row.first_name, amount=row.amount),
                    "Destination": row.destination,
                }
                for row in frame.iloc[start : start + CHUNK].itertuples()
            ]
            response = requests.post(
                f"{url}/bulkmessages",
                json={"Messages": messages},
                headers={"Authorization": "Bearer token"},
                timeout=30,
            )
            response.raise_for_status()

    text()


def mapped(hooks: dict[str, Any], source: str) -> None:
    """Create a ``HttpOperator`` that is mapped over requests of 100 messages."""
    from airflow.providers.http.operators.http import HttpOperator

    HttpOperator.partial(
        task_id="text",
        endpoint="bulkmessages",
        method="POST",
        headers={"Authorization": "Bearer token", "Content-Type": "application/json"},
        **hooks,
    ).expand(data=list(_bodies(source)))


def _bodies(source: str) -> Iterator[str]:
    import pyarrow.parquet as pq

    rows = pq.read_table(source, columns=["first_name", "amount", "destination"]).to_pylist()
    messages = [{"Content": MESSAGE.format(**row), "Destination": row["destination"]} for row in rows]
    for start in range(0, len(messages), CHUNK):
        yield json.dumps({"Messages": messages[start : start + CHUNK]})


WAYS: dict[str, Callable[..., Callable[[], dict[str, Any]] | None]] = {
    "ours": ours,
    "watched": watched,
    "query": query,
    "nothing": nothing,
    "loop": loop,
    "mapped": mapped,
}
