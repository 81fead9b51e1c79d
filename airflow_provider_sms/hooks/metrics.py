"""Figures for Airflow's own metrics: StatsD, Datadog or OpenTelemetry, whichever is configured there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sms.service.responses import Balance

log = logging.getLogger(__name__)

PREFIX = "sms."


class Metrics:
    """Counts, times and gauges under names that begin with ``sms.``; none of them ever raises.

    The first one that fails is logged, and no other is tried: a task does not depend on who watches it.

    :param tags: for the backends that know tags; never a number or a text.
    :param in_triggerer: whether this is the triggerer, which keeps a backend of its own since Airflow 3.3.
    """

    def __init__(self, tags: dict[str, str], *, in_triggerer: bool = False) -> None:
        self._tags = tags
        self._in_triggerer = in_triggerer
        self._broken = False

    def count(self, name: str, by: int) -> None:
        """Add to a counter; nothing where there is nothing to add."""
        if by > 0:
            self._tell("incr", name, by)

    def time(self, name: str, seconds: float) -> None:
        """Add one duration; backends get it in milliseconds, as Airflow's own."""
        self._tell("timing", name, seconds * 1000)

    def gauge(self, name: str, value: float) -> None:
        """Set a value."""
        self._tell("gauge", name, value)

    def _tell(self, kind: str, name: str, value: float) -> None:
        if self._broken:
            return
        try:
            if not _may_stand_still():
                getattr(_backend(in_triggerer=self._in_triggerer), kind)(PREFIX + name, value, tags=self._tags)
        except Exception as error:  # noqa: BLE001  # whatever a backend raises, sending goes on
            self._broken = True
            log.warning("Metrics are given up for this task: %s", type(error).__name__)


def gauge_balance(conn_id: str, balance: Balance, *, in_triggerer: bool = False) -> None:
    """Set the gauge of an account's balance; a post-paid account has none.

    :param conn_id: the connection, as its tag: the balance is the account's, whoever looks.
    """
    if not balance.post_paid:
        Metrics({"conn_id": conn_id}, in_triggerer=in_triggerer).gauge("balance", float(balance.amount))


def _may_stand_still() -> bool:
    """Whether a call of the backend may never return: with OpenTelemetry on Airflow 3.0.

    There a task or a triggerer is forked off a process whose exporter may hold a lock just then, which nobody in the
    fork ever gives back. Newer versions call the backend themselves before a task begins.
    """
    from airflow import __version__
    from airflow.providers.common.compat.sdk import conf

    return __version__.startswith("3.0.") and conf.getboolean("metrics", "otel_on")


def _backend(*, in_triggerer: bool) -> Any:
    if in_triggerer:
        try:
            from airflow.observability.stats import Stats as OfTriggerer
        except ImportError:  # before 3.3
            pass
        else:
            return OfTriggerer
    from airflow.providers.common.compat.sdk import Stats

    return Stats
