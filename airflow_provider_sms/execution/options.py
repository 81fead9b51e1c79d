"""The input of an attempt, in place of the operator: its task, and the checked arguments.

It lies below ``operators/``, which fills these in, so that no step of an attempt needs an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.hooks.sms import SmsHook
    from airflow_provider_sms.planning.approved_plan import PlanId
    from airflow_provider_sms.planning.limits import Limits
    from airflow_provider_sms.send_window.window import SendWindow
    from airflow_provider_sms.stop_flag import StopFlag

OnInvalid: TypeAlias = Literal["fail", "skip"]
"""What happens to rows that cannot be texted."""
OnLowBalance: TypeAlias = Literal["send", "fail", "wait"]
"""What happens to a send that costs more than a pre-paid account has."""
OnUnknown: TypeAlias = Literal["fail", "reconcile", "resend"]
"""What happens to messages whose response was lost."""


@dataclass(frozen=True)
class SendingTask:
    """The facts about its task that an attempt knows before it checks the arguments.

    It checks them once it is in its ledger.

    :param context: Airflow's context of the task instance.
    :param event: the event that the task waited for, as Airflow brings it back; None if it has not waited.
    :param hook: the task's hook, of the connection to send with.
    :param ledger_conn_id: an Airflow connection to PostgreSQL; None means the configured ledger.
    :param stop: set when Airflow ends the task.
    :param campaign: the campaign's name; empty if the task's name is refused later.
    """

    context: Context
    event: Any
    hook: SmsHook
    ledger_conn_id: str | None
    stop: StopFlag
    campaign: str

    @property
    def sms_conn_id(self) -> str:
        """The connection to send with."""
        return self.hook.sms_conn_id

    @property
    def resumed(self) -> bool:
        """Whether this leg of the attempt follows a deferral."""
        return self.event is not None

    @property
    def is_retried(self) -> bool:
        """Whether Airflow tries again after this attempt, if it fails with an error that is worth it."""
        ti = self.context["ti"]
        # No retries in a test without Airflow. ``airflow tasks test`` runs attempt 0, and no other.
        return 0 < ti.try_number <= getattr(ti, "max_tries", 0)


@dataclass(frozen=True)
class GroupOptions:
    """The checked arguments of a :class:`GroupSmsOperator`, with the same meanings.

    :param groups: at least one name.
    """

    message: str
    groups: Sequence[str]
    send_options: dict[str, Any] | None
    on_unknown: OnUnknown


@dataclass(frozen=True)
class BulkOptions:
    """The checked arguments of a :class:`BulkSmsOperator` except ``source``, with the same meanings.

    :param limits: ``min_rows``, ``max_rows``, ``max_cost``, ``max_invalid``, ``max_parts_per_message`` and
        ``max_repeats``.
    """

    message: str | None
    content_column: str | None
    destination_column: str
    default_region: str | None
    key_columns: Sequence[str] | None
    send_options: dict[str, Any] | None
    on_invalid: OnInvalid
    on_unknown: OnUnknown
    chunk_size: int
    concurrency: int
    max_requests_per_second: float | None
    report: str | None
    suppress: Any
    cost_per_part: float | Mapping[str, float]
    max_error_rate: float | None
    on_low_balance: OnLowBalance
    send_window: SendWindow | None
    limits: Limits
    approved_plan: PlanId | None

    @property
    def plan_binds(self) -> bool:
        """Whether nothing but the messages of the plan may be sent: it was approved, or a limit applies to it."""
        limits = (
            self.approved_plan,
            self.limits.max_cost,
            self.limits.max_repeats,
            self.limits.max_parts_per_message,
        )
        return any(limit is not None for limit in limits)
