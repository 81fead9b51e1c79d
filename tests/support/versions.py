"""The Airflow version under test, and its abilities."""

from __future__ import annotations

from importlib.metadata import version

AIRFLOW = tuple(map(int, version("apache-airflow").split(".")[:2]))

HAS_COMMANDS_OF_PROVIDERS = AIRFLOW >= (3, 2)
"""The command ``airflow sms`` exists."""
KEEPS_TASK_STATE = AIRFLOW >= (3, 3)
"""A task can store a value that its later attempts find."""
