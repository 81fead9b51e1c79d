"""The import path of the provider's metadata for Airflow: ``provider_info.json`` with the package's version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow_provider_sms import __version__


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata in Airflow's schema."""
    info = json.loads(Path(__file__).with_name("provider_info.json").read_text(encoding="utf-8"))
    return {**info, "versions": [__version__]}
