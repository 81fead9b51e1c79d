"""Ways to text a table from Airflow: a loop of requests, a mapped HttpOperator, and ours, as it is and reconciling."""

from __future__ import annotations

import json
import os
from pathlib import Path

from support.airflow import run_task
from support.faults.campaigns import MESSAGE

LOOP, HTTP, OURS = "requests loop", "mapped HttpOperator", "BulkSmsOperator"
RECONCILING = 'on_unknown="reconcile"'
WAYS = (LOOP, HTTP, OURS, RECONCILING)
OWN = (OURS, RECONCILING)
CHUNK = 100
RETRIES = 3
TIMEOUT = 1
AGAIN_AT = (429, 500, 502, 503, 504)
"""Statuses to retry by every guide to ``Retry``."""
DIES_AT = 3
"""The request after whose response a task dies, if it has to die."""


def send(way, job):
    """Run the task once in a real Airflow, with Airflow's retries.

    :param way: one of :data:`WAYS`.
    :param job: ``table``, ``url``, ``token``, ``campaign`` and ``dies``: a file that marks the task as dead, or
        None where it does not.
    :returns: the state of the run.
    """
    make = {LOOP: _loop, HTTP: _mapped_http, OURS: _ours, RECONCILING: _reconciling}[way]
    return run_task(lambda: make(**job), retries=RETRIES, only=None).state


def _loop(table, url, token, dies, **_):
    from airflow.sdk import task

    @task
    def text_everybody():
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        with requests.Session() as session:
            retry = Retry(total=RETRIES, connect=RETRIES, read=RETRIES, status_forcelist=AGAIN_AT, allowed_methods=None)
            session.mount("http://", HTTPAdapter(max_retries=retry))
            for number, body in enumerate(_bodies(table), start=1):
                answer = session.post(f"{url}/bulkmessages", data=body, headers=_headers(token), timeout=TIMEOUT)
                answer.raise_for_status()
                _die_once(dies, number)

    return text_everybody()


def _mapped_http(table, token, dies, **_):
    from airflow.providers.http.operators.http import HttpOperator

    def check(response):
        _die_once(dies, DIES_AT)
        return response.json()["Messages"] > 0

    return HttpOperator.partial(
        task_id="text",
        endpoint="bulkmessages",
        method="POST",
        headers=_headers(token),
        extra_options={"timeout": TIMEOUT},
        response_check=check,
    ).expand(data=list(_bodies(table)))


def _ours(table, campaign, **_):
    return _operator(table, campaign)


def _reconciling(table, campaign, **_):
    return _operator(table, campaign, on_unknown="reconcile")


def _operator(table, campaign, **options):
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    return BulkSmsOperator(
        task_id="text", source=table, message=MESSAGE, campaign=campaign, chunk_size=CHUNK, **options
    )


def _headers(token):
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json"}


def _bodies(table):
    import pyarrow.parquet as pq

    messages = [
        {"Content": MESSAGE.format(**row), "Destination": row["destination"]}
        for row in pq.read_table(table).to_pylist()
    ]
    for start in range(0, len(messages), CHUNK):
        yield json.dumps({"Messages": messages[start : start + CHUNK]})


def _die_once(dies, number):
    if dies and number >= DIES_AT and not Path(dies).exists():
        Path(dies).touch()
        raise RuntimeError("the task dies here, once")


def load():
    """Load Airflow, which takes longest, and print nothing from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    import airflow.models.dagbag
    import airflow.sdk  # noqa: F401
