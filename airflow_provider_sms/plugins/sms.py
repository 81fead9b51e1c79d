"""The plugin as every process of Airflow loads it, most of which serve no page: nothing heavy is imported here."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from airflow_provider_sms.plugins import PREFIX

_TASK = "task?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"


class SmsPlugin(AirflowPlugin):
    """The item *SMS* in Airflow's navigation, and a tab of that name beside each task instance."""

    name = "sms"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        """The application, built when the web server asks for it."""
        from airflow_provider_sms.plugins.app import create_app

        return [{"app": create_app(), "url_prefix": PREFIX, "name": "SMS"}]

    @cached_property
    def external_views(self) -> list[Any]:  # type: ignore[override]
        """The places at which Airflow shows a page."""
        below = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/") + PREFIX
        icons = {"icon": f"{below}/static/icon.svg", "icon_dark_mode": f"{below}/static/icon-dark.svg"}
        return [
            {"name": "SMS", "href": f"{below}/", "destination": "nav", "url_route": "sms", **icons},
            {
                "name": "SMS",
                "href": f"{below}/{_TASK}",
                "destination": "task_instance",
                "url_route": "sms-task",
                **icons,
            },
        ]
