"""The Airflow version under test, and its abilities."""

from __future__ import annotations

from importlib.metadata import version

AIRFLOW = tuple(map(int, version("apache-airflow").split(".")[:2]))

IS_AIRFLOW_3 = AIRFLOW >= (3, 0)
"""Airflow has an API server, assets and the task SDK."""
RAISES_ON_SIGTERM = AIRFLOW < (3, 0)
"""A stopped task is also interrupted by an error of Airflow, with which its log ends."""
TELLS_OPENTELEMETRY = AIRFLOW >= (3, 1)
"""Metrics of a task reach OpenTelemetry: 3.0 sends none, and 2.11 loses those of a task that ends first."""
PRINTS_MESSAGES = AIRFLOW == (3, 0)
"""A worker prints the messages between task and Airflow on its own output."""
KEEPS_USER_OF_ASSETS = AIRFLOW >= (3, 1)
"""The URI of an asset may name a connection, as in ``s3://my_aws@bucket``; older versions remove it."""
GIVES_FORMS = AIRFLOW >= (3, 1)
"""The API returns a connection's form fields; that of 3.0 does so only with libraries of Airflow 2."""
HAS_DEADLINES = AIRFLOW >= (3, 1)
"""A DAG can have a deadline."""
MAKES_RUNS_OF_STORED_DAGS = AIRFLOW >= (3, 1)
"""A run can be created from a stored DAG."""
CAN_ASK = AIRFLOW >= (3, 1)
"""A task can ask a person."""
SHOWS_PAGES = AIRFLOW >= (3, 1)
"""The web server can show pages of plugins."""
HAS_SPANS = AIRFLOW >= (3, 2)
"""A task's process exports spans."""
EXECUTES_CALLBACKS = AIRFLOW >= (3, 2)
"""An executor may run the callback of a deadline."""
HAS_COMMANDS_OF_PROVIDERS = AIRFLOW >= (3, 2)
"""The command ``airflow sms`` exists."""
ASKS_WITHOUT_TRIGGER = AIRFLOW >= (3, 3)
"""A task that waits for a person has its own state; in older versions, a trigger waits for the answer.

In a run by ``dag.test()`` a trigger cannot be answered, so tests that need an answer require this ability;
``acceptance/test_asking.py`` tests the question on the other versions.
"""
KEEPS_TASK_STATE = AIRFLOW >= (3, 3)
"""A task can store a value that its later attempts find."""
READS_POLARS = tuple(map(int, version("pyarrow").split(".")[:1])) >= (18,)
"""Arrow knows the type of text that polars hands out."""
