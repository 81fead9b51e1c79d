"""An Airflow of this test session's own: a pytest plugin, since Airflow reads its environment when it is imported."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

HOME = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-"))
SETTINGS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # A test's DAG may have the same name as that of the test before.
    "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
    # The one that Airflow makes up is shorter than its signatures need, and Airflow warns of that.
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
}

(HOME / "dags").mkdir()  # which dag.test() reads
os.environ.update(SETTINGS)


def pytest_unconfigure():
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home():
    """The folder of this Airflow, whose database is empty."""
    from airflow.utils.db import initdb

    root = logging.getLogger()
    level = root.level
    initdb()
    root.setLevel(level)  # migrations raise it to WARNING, and leave it there
    return HOME
