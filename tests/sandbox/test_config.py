from __future__ import annotations

import re
from datetime import timedelta

import pytest
from support.pages import ROOT

from airflow_provider_sms.sandbox.config import SandboxConfig, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1"])
def test_loopback_hosts_are_accepted(host):
    """Loopback addresses can be reached from this machine only."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "", "localhost.example.com"])
def test_other_hosts_are_refused(host):
    """The sandbox shows numbers and texts to every client, so it listens on loopback addresses only."""
    with pytest.raises(ValueError, match="loopback"):
        SandboxConfig(host=host)


@pytest.mark.parametrize(
    "settings",
    [
        {"balance": -1},
        {"balance": "much"},
        {"balance": float("nan")},
        {"port": 65536},
        {"latency": -0.1},
        {"latency": float("nan")},
        {"keep_alive": -1},
        {"opted_out": ["+27 82 000 0001"]},
        {"opted_out": ["0820000001"]},
        {"opted_out": "27820000001"},
        {"token_minutes": -1},
        {"client_id": "me"},
        {"client_secret": "secret"},
        {"token": None},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    """An invalid setting is an error at once."""
    with pytest.raises(ValueError):
        SandboxConfig(**settings)


@pytest.mark.parametrize("name", ["latency", "keep_alive", "token_minutes"])
def test_durations_are_numbers(name):
    """A ``timedelta``, which the operators take, is an error at once, and class and page say so."""
    with pytest.raises(TypeError):
        SandboxConfig(**{name: timedelta(seconds=1)})
    page = (ROOT / "docs" / "sandbox.md").read_text()
    assert "takes no ``timedelta``" in SandboxConfig.__doc__
    assert re.search(rf"durations are numbers, .*`{name}`.* takes no `timedelta`", " ".join(page.split()))
