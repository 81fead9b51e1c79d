"""Which Airflow the tests run on, and what it can do."""

from __future__ import annotations

from importlib.metadata import version

AIRFLOW = tuple(map(int, version("apache-airflow").split(".")[:2]))

RAISES_ON_SIGTERM = AIRFLOW < (3, 0)
"""A task that is told to stop is interrupted by an error of Airflow as well, which its log ends with."""
KEEPS_USER_OF_ASSETS = AIRFLOW >= (3, 1)
"""The URI of an asset may name a connection, as in ``s3://my_aws@bucket``; before, Airflow takes it out."""
CAN_ASK = AIRFLOW >= (3, 1)
"""A task can ask a person."""
HAS_DEADLINES = AIRFLOW >= (3, 1)
"""A DAG can have a deadline."""
EXECUTES_CALLBACKS = AIRFLOW >= (3, 2)
"""The callback of a deadline may be run by an executor."""
HAS_COMMANDS_OF_PROVIDERS = AIRFLOW >= (3, 2)
"""``airflow sms`` is there."""
PARKS_WHO_ASKS = AIRFLOW >= (3, 3)
"""A task that has asked is in a state of its own; before, a trigger waits for the answer.

In a run by ``dag.test()`` a trigger cannot be answered, so tests that need an answer there are for versions that park;
``acceptance/test_asking.py`` holds for the others that a person is asked.
"""
KEEPS_TASK_STATE = AIRFLOW >= (3, 3)
"""A task can leave a note that its later tries find."""
