"""The plugin as every process of Airflow loads it, most of which serve no page: nothing heavy is imported here."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from airflow_provider_sms.plugins import PREFIX

_MAJOR, _MINOR = (int(number) for number in version("apache-airflow").split(".")[:2])
SHOWS_PAGES = (_MAJOR, _MINOR) >= (3, 1)
"""Whether this Airflow has places for plugins' pages, and knows the reader by a cookie: from 3.1 on."""

_TASK = "task?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"


class SmsPlugin(AirflowPlugin):
    """The item *SMS* in Airflow's navigation, and a tab of that name beside each task instance (Airflow 3.1 and newer).

    Older versions of Airflow have no place for either, and get none.
    """

    name = "sms"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        """The application, built when the web server asks for it."""
        if not SHOWS_PAGES:
            return []
        from airflow_provider_sms.plugins.app import create_app

        return [{"app": create_app(), "url_prefix": PREFIX, "name": "SMS"}]

    @cached_property
    def external_views(self) -> list[Any]:  # type: ignore[override]
        """The places at which Airflow shows a page."""
        if not SHOWS_PAGES:
            return []
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
