"""Which Airflow the tests run on, and what it can do."""

from __future__ import annotations

from importlib.metadata import version

AIRFLOW = tuple(map(int, version("apache-airflow").split(".")[:2]))

IS_AIRFLOW_3 = AIRFLOW >= (3, 0)
"""With an API server, assets and the task SDK."""
RAISES_ON_SIGTERM = AIRFLOW < (3, 0)
"""A task that is told to stop is interrupted by an error of Airflow as well, which its log ends with."""
TELLS_OPENTELEMETRY = AIRFLOW >= (3, 1)
"""Metrics of a task go to OpenTelemetry: 3.0 is told none, and 2.11 loses those of a task that has ended by then."""
PRINTS_MESSAGES = AIRFLOW == (3, 0)
"""A worker prints on its own output what a task and Airflow tell each other."""
KEEPS_USER_OF_ASSETS = AIRFLOW >= (3, 1)
"""The URI of an asset may name a connection, as in ``s3://my_aws@bucket``; before, Airflow takes it out."""
GIVES_FORMS = AIRFLOW >= (3, 1)
"""The API gives the web page the fields of a connection; that of 3.0 does so only with libraries of Airflow 2."""
HAS_DEADLINES = AIRFLOW >= (3, 1)
"""A DAG can have a deadline."""
MAKES_RUNS_OF_STORED_DAGS = AIRFLOW >= (3, 1)
"""A run can be made of a DAG as Airflow has stored it."""
CAN_ASK = AIRFLOW >= (3, 1)
"""A task can ask a person."""
SHOWS_PAGES = AIRFLOW >= (3, 1)
"""The web server has places for pages of plugins."""
HAS_SPANS = AIRFLOW >= (3, 2)
"""A task's process exports spans."""
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
