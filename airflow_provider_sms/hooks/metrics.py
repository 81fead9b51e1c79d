"""What Airflow tells others of a task: metrics (StatsD, Datadog or OpenTelemetry), and facts on asset events."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Asset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

PREFIX = "sms."


class Metrics:
    """Counters, timers and gauges under names that begin with ``sms.``; no method raises.

    The first failure is logged and ends all metrics of the object: a task must not depend on monitoring. The triggerer
    has a backend of its own since Airflow 3.3.
    """

    def __init__(self, tags: dict[str, str], *, in_triggerer: bool = False) -> None:
        self._tags = tags
        self._in_triggerer = in_triggerer
        self._broken = False

    def count(self, name: str, by: int) -> None:
        """Add to a counter; no-op for 0."""
        if by > 0:
            self._emit("incr", name, by)

    def time(self, name: str, seconds: float) -> None:
        """Record a duration; backends get milliseconds, as for Airflow's own timers."""
        self._emit("timing", name, seconds * 1000)

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._emit("gauge", name, value)

    def _emit(self, kind: str, name: str, value: float) -> None:
        if self._broken:
            return
        try:
            getattr(_backend(in_triggerer=self._in_triggerer), kind)(PREFIX + name, value, tags=self._tags)
        except Exception as error:  # noqa: BLE001  # sending goes on, whatever a backend raises
            self._broken = True
            log.warning("No further metrics are emitted for this task: %s", type(error).__name__)


def gauge_balance(conn_id: str, balance: Balance, *, in_triggerer: bool = False) -> None:
    """Set the gauge of a pre-paid account's balance: it is the account's, whichever task reads it."""
    if not balance.post_paid:
        Metrics({"conn_id": conn_id}, in_triggerer=in_triggerer).gauge("balance", float(balance.amount))


def describe_on_assets(context: Context, facts: Mapping[str, Any]) -> None:
    """Add JSON without personal data to the events that Airflow emits when the task succeeds; never raise."""
    shown = {name: each for name, each in facts.items() if name != "report"}  # its path may name a person
    for outlet in context["task"].outlets:
        if isinstance(outlet, Asset):
            try:
                context["outlet_events"][outlet].extra.update(shown)
            except Exception as error:  # noqa: BLE001  # the task is done: an event without facts is no failure
                log.warning("The event of an asset is emitted without facts: %s", type(error).__name__)


def _backend(*, in_triggerer: bool) -> Any:
    if in_triggerer:
        try:
            from airflow.observability.stats import Stats as TriggererStats
        except ImportError:  # before 3.3
            pass
        else:
            return TriggererStats
    from airflow.providers.common.compat.sdk import Stats

    return Stats
