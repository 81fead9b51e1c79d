"""The tasks that are measured: one that sends, and one that does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.data import MESSAGE

if TYPE_CHECKING:
    from collections.abc import Callable


def ours(hooks: dict[str, Any], source: str, **options: Any) -> None:
    """Create a :class:`BulkSmsOperator`."""
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    BulkSmsOperator(task_id="text", source=source, message=MESSAGE, **options, **hooks)


def nothing(hooks: dict[str, Any]) -> None:
    """Create a task that does nothing."""
    from airflow.sdk import task

    @task(**hooks)  # type: ignore[untyped-decorator]  # Airflow's
    def text() -> None:
        pass

    text()


WAYS: dict[str, Callable[..., None]] = {
    "ours": ours,
    "nothing": nothing,
}
