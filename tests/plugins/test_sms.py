from __future__ import annotations

import json
import subprocess
import sys

import pytest

from airflow_provider_sms.plugins.sms import SmsPlugin

LOADED = """
import json, sys
from airflow import plugins_manager

of_airflow = set(sys.modules)
from airflow_provider_sms.plugins.sms import SmsPlugin

SmsPlugin()
heavy = sorted({"fastapi", "jinja2", "pandas", "pyarrow", "sqlalchemy"} & (set(sys.modules) - of_airflow))
plugins_manager.ensure_plugins_loaded()
print(json.dumps([[name for name in sys.modules if name.startswith("airflow_provider_sms.")], heavy]))
"""


@pytest.mark.slow
def test_every_process_loads_the_plugin_and_nothing_of_the_pages(airflow_home):
    """Schedulers and workers load plugins as well: the pages, and what is heavy, wait for the web server to ask."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    modules, heavy = json.loads(done.stdout.strip().splitlines()[-1])
    assert heavy == []
    assert {name for name in modules if "plugins" in name or "monitoring" in name} == {
        "airflow_provider_sms.plugins",
        "airflow_provider_sms.plugins.sms",
    }


@pytest.mark.parametrize(
    ("base_url", "below"),
    [
        ("http://airflow.test", "/sms/"),
        ("http://airflow.test/", "/sms/"),
        ("https://example.com/team/airflow", "/team/airflow/sms/"),
        ("https://example.com/team/airflow/", "/team/airflow/sms/"),
    ],
)
def test_pages_are_below_the_address_of_airflow(monkeypatch, base_url, below):
    """If Airflow is served below a path, each address of a page begins with it."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    views = SmsPlugin().external_views
    assert [view["destination"] for view in views] == ["nav", "task_instance"]
    for view in views:
        addresses = [view["href"], view["icon"], view["icon_dark_mode"]]
        assert [address for address in addresses if not address.startswith(below)] == []
    assert len({view["url_route"] for view in views}) == len(views)
