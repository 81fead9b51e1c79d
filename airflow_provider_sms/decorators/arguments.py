"""The arguments of ``@task.bulk_sms``, by name and type, for editors and type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
    from datetime import datetime, timedelta

    from airflow.providers.common.compat.sdk import DAG, Context, TaskGroup

    from airflow_provider_sms.send_window.window import SendWindow

    Callbacks = Callable[[Context], Any] | Collection[Callable[[Context], Any]] | None


class TaskArguments(TypedDict, total=False):
    """The arguments of every Airflow task."""

    task_id: str
    owner: str
    email: str | Collection[str] | None
    email_on_retry: bool
    email_on_failure: bool
    retries: int | None
    retry_delay: timedelta | float
    retry_exponential_backoff: float
    max_retry_delay: timedelta | float | None
    retry_policy: Any
    start_date: datetime | None
    end_date: datetime | None
    depends_on_past: bool
    ignore_first_depends_on_past: bool
    wait_for_past_depends_before_skipping: bool
    wait_for_downstream: bool
    dag: DAG | None
    params: MutableMapping[str, Any] | None
    default_args: dict[str, Any] | None
    priority_weight: int
    weight_rule: Any
    queue: str
    pool: str | None
    pool_slots: int
    sla: timedelta | None
    execution_timeout: timedelta | None
    on_execute_callback: Callbacks
    on_failure_callback: Callbacks
    on_success_callback: Callbacks
    on_retry_callback: Callbacks
    on_skipped_callback: Callbacks
    pre_execute: Callable[[Context], Any] | None
    post_execute: Callable[[Context, Any], Any] | None
    trigger_rule: str
    resources: dict[str, Any] | None
    run_as_user: str | None
    map_index_template: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    executor: str | None
    executor_config: dict[str, Any] | None
    do_xcom_push: bool
    inlets: Any
    outlets: Any
    task_group: TaskGroup | None
    doc: str | None
    doc_md: str | None
    doc_json: str | None
    doc_yaml: str | None
    doc_rst: str | None
    task_display_name: str | None
    logger_name: str | None
    allow_nested_operators: bool
    render_template_as_native_obj: bool | None


class BulkSmsArguments(TaskArguments, total=False):
    """The arguments of :class:`BulkSmsOperator` but ``source``, which the function returns."""

    message: str | None
    content_column: str | None
    destination_column: str
    default_region: str | None
    send_options: dict[str, Any] | None
    sms_conn_id: str
    campaign: str | None
    key_columns: Sequence[str] | None
    on_invalid: str
    on_unknown: str
    chunk_size: int
    concurrency: int
    max_requests_per_second: float | None
    max_xcom_responses: int
    report: str | None
    dry_run: bool
    suppress: Any
    campaign_group: str | None
    min_interval: timedelta | None
    max_rows: int | None
    max_invalid: float | None
    max_parts_per_message: int | None
    max_cost: float | None
    cost_per_part: float | Mapping[str, float]
    max_error_rate: float | None
    check_balance: bool
    wait_for_credit: bool
    credit_interval: float
    approve: bool
    approve_above: int | Mapping[str, float] | None
    send_window: SendWindow | None
    ledger_conn_id: str | None
