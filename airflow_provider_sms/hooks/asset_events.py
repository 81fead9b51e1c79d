"""Facts on the asset events of a task, for the DAGs that its assets schedule.

A module of its own, because the sensor and attempts share it, and need nothing else of the hooks.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Asset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)


def describe_on_assets(context: Context, facts: Mapping[str, Any]) -> None:
    """Add JSON without personal data to the events that Airflow emits when the task succeeds; never raise."""
    shown = {name: each for name, each in facts.items() if name != "report"}  # its path may name a person
    for outlet in context["task"].outlets:
        if isinstance(outlet, Asset):
            try:
                context["outlet_events"][outlet].extra.update(shown)
            except Exception as error:  # noqa: BLE001  # the task is done: an event without facts is no failure
                log.warning("The event of an asset is emitted without facts: %s", type(error).__name__)
