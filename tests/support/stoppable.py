"""A task in a process of its own, which SIGTERM tells to stop, as Airflow does; its settings are the environment's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

TESTS = Path(__file__).parents[1]


@contextmanager
def started(**job):
    """Start an attempt in a process of its own, and end the process with the block.

    :param job: of :func:`attempt`.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "support.stoppable", json.dumps(job)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def attempt(numbers, campaign, try_number, *, text="Hi", stops_at_signal=False, **options):
    """Execute an attempt of the operator in this process, in a context of the little that it asks for.

    :param stops_at_signal: whether SIGTERM ends it, with the handler that Airflow's task runner sets.
    :returns: its summary.
    """
    from airflow.providers.common.compat.sdk import AirflowException

    from airflow_provider_sms.operators.sms import BulkSmsOperator

    pushed = {}
    task = BulkSmsOperator(
        task_id="send",
        source=[{"destination": number, "text": text} for number in numbers],
        content_column="text",
        campaign=campaign,
        **options,
    )
    instance = SimpleNamespace(
        dag_id="stopped",
        task_id="send",
        run_id="once",
        map_index=-1,
        try_number=try_number,
        xcom_push=lambda key, value: pushed.update({key: value}),
    )
    if stops_at_signal:
        signal.signal(signal.SIGTERM, lambda *_: task.on_kill())
    try:
        return task.execute({"task": task, "ti": instance})
    except AirflowException:
        return pushed["return_value"]


if __name__ == "__main__":
    attempt(**json.loads(sys.argv[1]), stops_at_signal=True)
