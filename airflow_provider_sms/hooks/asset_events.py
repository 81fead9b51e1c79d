"""What a task tells those who are scheduled by its assets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import Asset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)


def describe_on_assets(context: Context, facts: Mapping[str, Any]) -> None:
    """Put facts on the events of the task's outlets, which Airflow emits when the task succeeds; never raises.

    Outlets that are no assets, aliases among them, are passed over.

    :param facts: JSON, and nothing of a person: whoever may see assets may read them.
    """
    for outlet in context["task"].outlets:
        if isinstance(outlet, Asset):
            try:
                context["outlet_events"][outlet].extra.update(facts)
            except Exception as error:  # noqa: BLE001  # all is done by now: an event without facts is no failure
                log.warning("The event of an asset goes without its facts: %s", type(error).__name__)
