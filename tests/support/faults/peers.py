"""The same faults for other ways to send from Airflow, and for ours: ``python -m support.faults.peers``."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.airflow import run_task
from support.faults.campaigns import MESSAGE, Campaign
from support.faults.processes import PATIENCE, started
from support.faults.rest import until
from support.faults.verdict import read_reconciled

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 100
RETRIES = 3
TIMEOUT = 1
AGAIN_AT = (429, 500, 502, 503, 504)
"""Statuses to retry by every guide to ``Retry``."""
DIES_AT = 3
"""The request after whose response a task dies, if it has to die."""
TOKEN = "sandbox-token-8901"
PEOPLE = 3_000
SEED = 20_261
SHARE = 0.05
LATENCY = 0.2
"""Seconds of each response where something has to happen in mid-send."""
BALANCE = 10**5
"""Credits of the account, more than each way costs; a million would be a post-paid account's."""

_numbers = itertools.count()


class Befallen(NamedTuple):
    """The result for the people of a table.

    :param twice: people who were texted more than once.
    :param missing: people who were not texted, without any report.
    :param unknown: people whom the sender reports as perhaps not texted.
    :param closed: people of whom the sender learned from the account's balance, after a response was lost, whether they
        were texted.
    """

    twice: int
    missing: int
    unknown: int
    closed: int = 0


# Ways to send


def send(way, job):
    """Run the task once in a real Airflow, with Airflow's retries, and return the state of the run.

    :param way: one of :data:`WAYS`.
    :param job: ``table``, ``url``, ``campaign`` and ``dies``: a file that marks the task as dead, or None where it
        does not die.
    """
    return run_task(lambda: WAYS[way](**job), retries=RETRIES, only=None).state


def _loop(table, url, dies, **_):
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
                answer = session.post(f"{url}/bulkmessages", data=body, headers=HEADERS, timeout=TIMEOUT)
                answer.raise_for_status()
                _die_once(dies, number)

    return text_everybody()


def _mapped_http(table, dies, **_):
    from airflow.providers.http.operators.http import HttpOperator

    def check(response):
        _die_once(dies, DIES_AT)
        return response.json()["Messages"] > 0

    return HttpOperator.partial(**_http(), response_check=check).expand(data=list(_bodies(table)))


def _http():
    options = {"method": "POST", "headers": HEADERS, "extra_options": {"timeout": TIMEOUT}}
    return {"task_id": "text", "endpoint": "bulkmessages", **options}


def _ours(table, campaign, on_unknown="fail", **_):
    from airflow_provider_sms.operators.sms import BulkSmsOperator

    fixed = {"task_id": "text", "message": MESSAGE, "chunk_size": CHUNK}
    return BulkSmsOperator(source=table, campaign=campaign, on_unknown=on_unknown, **fixed)


LOOP, HTTP, OURS, RECONCILING = "requests loop", "mapped HttpOperator", "BulkSmsOperator", 'on_unknown="reconcile"'
WAYS = {LOOP: _loop, HTTP: _mapped_http, OURS: _ours, RECONCILING: partial(_ours, on_unknown="reconcile")}
OWN = (OURS, RECONCILING)
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": "application/json"}


def _bodies(table):
    import pyarrow.parquet as pq

    rows = pq.read_table(table).to_pylist()
    messages = [{"Content": MESSAGE.format(**row), "Destination": row["destination"]} for row in rows]
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


# What befalls them


def _once(**fault):
    """Let the third request meet a fault."""
    return lambda _: [{"kind": "none", "times": 2}, fault]


def _share(**fault):
    """Let a fixed selection of requests meet a fault."""

    def faults(requests):
        met = set(random.Random(SEED).sample(range(requests), max(1, round(SHARE * requests))))
        return [fault if number in met else {"kind": "none"} for number in range(requests)]

    return faults


def _dies(way, job, campaign):
    """Let the task die in mid-send, and let Airflow retry it; ours dies by SIGKILL, the hardest way."""
    if way not in OWN:
        send(way, {**job, "dies": f"{job['table']}.died"})
        return
    with started(send, [(way, job)], load) as (process,):
        until(campaign.taken, seconds=PATIENCE, what="the send is under way")
        if process.ended:
            raise RuntimeError("the task was over before it could die")
    send(way, job)


def _again(way, job, _):
    """Clear the task after its success."""
    send(way, job)
    send(way, job)


def _two_copies(way, job, _):
    """Let two live copies of the task run."""
    with started(send, [(way, job)] * 2, load) as copies:
        if any(copy.result() != "success" for copy in copies):
            raise RuntimeError("a copy of the task failed")


def _restarts(way, job, campaign):
    """Let the triggerer die with a request under way, and another one run the trigger, as a triggerer's restart does.

    Only a deferrable ``HttpOperator`` sends there.
    """
    if way != HTTP:
        send(way, job)
        return
    for number, body in enumerate(_bodies(job["table"]), start=1):
        trigger = _deferred(body)
        if number == DIES_AT:
            before = campaign.taken().total()
            with started(_trigger, [trigger], load):
                until(lambda: campaign.taken().total() > before, seconds=PATIENCE, what="a request is under way")  # noqa: B023
        _trigger(*trigger)


def _deferred(body):
    from airflow.providers.http.operators.http import HttpOperator
    from airflow.sdk.exceptions import TaskDeferred

    try:
        HttpOperator(**_http(), data=body, deferrable=True).execute({})
    except TaskDeferred as deferred:
        return deferred.trigger.serialize()


def _trigger(path, arguments):
    from airflow.sdk.module_loading import import_string

    asyncio.run(anext(aiter(import_string(path)(**arguments).run())))


@dataclass(frozen=True)
class Trouble:
    """A fault.

    :param faults: returns the sandbox's faults for a number of requests.
    :param play: sends a job of a campaign in one way.
    :param latency: seconds of every response.
    """

    name: str
    faults: Callable[[int], list[dict[str, Any]]] = lambda _: []
    play: Callable[[str, dict[str, Any], Campaign], Any] = lambda way, job, _: send(way, job)
    latency: float = 0.0


TROUBLES = {
    "lost once": Trouble("response lost once", _once(kind="drop_after")),
    "lost": Trouble("5 % of the responses lost", _share(kind="drop_after")),
    "unread": Trouble("5 % of the requests lost", _share(kind="drop_before")),
    "late": Trouble("response later than the timeout, once", _once(kind="delay", seconds=3 * TIMEOUT)),
    "500": Trouble("500 after it was taken, once", _once(kind="status", status=500, accepted=True)),
    "truncated": Trouble("response breaks off, once", _once(kind="truncated")),
    "dies": Trouble("task dies in mid-send, retried", play=_dies, latency=LATENCY),
    "restarts": Trouble("triggerer restarts in mid-send", play=_restarts, latency=LATENCY),
    "again": Trouble("task cleared and run again", play=_again),
    "copies": Trouble("two live copies of the task", play=_two_copies, latency=LATENCY),
}


def befall(trouble, way, people=PEOPLE):
    """Send a table in one way under one fault, in this process's Airflow, and return the result."""
    folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-peers-"))
    witness = folder / "witness.jsonl"
    ledger = create_engine(f"sqlite:///file:{folder / 'ledger.db'}?mode=ro&uri=true")
    config = SandboxConfig(token=TOKEN, balance=BALANCE, latency=trouble.latency, log=witness)
    try:
        with running_sandbox(config) as service:
            campaign = Campaign(f"peers-{next(_numbers)}", 0, people, 1, folder, witness, ledger)
            service.state.set_faults(trouble.faults(people // CHUNK))
            job = {"table": campaign.tables[0], "url": service.base_url, "campaign": campaign.name, "dies": None}
            with patch.dict(os.environ, _connections(service.base_url, folder)):
                trouble.play(way, job, campaign)
        return _judge(way, campaign)
    finally:
        ledger.dispose()
        shutil.rmtree(folder)


def _connections(url, folder):
    extra = {"timeout": TIMEOUT, "connect_timeout": TIMEOUT}
    ours = {"conn_type": "sms", "host": url, "password": TOKEN, "extra": extra}
    return {
        "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(ours),
        "AIRFLOW_CONN_HTTP_DEFAULT": json.dumps({"conn_type": "http", "host": url}),
        "AIRFLOW__SMS__LEDGER_PATH": str(folder / "ledger.db"),
        # A process that was killed on this machine records nothing any more.
        "AIRFLOW__SMS__LEDGER_PATIENCE": "0",
    }


def _judge(way, campaign):
    texts = Counter()
    for (destination, _), count in campaign.taken().items():
        texts[destination] += count
    states = campaign.states() if way in OWN else {}
    named = {campaign.expected[key][0] for key, state in states.items() if state == "unknown"}
    return Befallen(
        twice=sum(count > 1 for count in texts.values()),
        missing=len(campaign.numbers - texts.keys() - named),
        unknown=len(named),
        closed=sum(read_reconciled(campaign.ledger, campaign.name)) if way in OWN else 0,
    )


def main():
    """Print the results of each fault; return 1 if our operator texted a person twice or lost one, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.faults.peers", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TROUBLES, metavar="FAULT", default=list(TROUBLES))
    chosen = parser.parse_args().only
    # Before any module of Airflow is imported, an Airflow of this process's own.
    for name in [name for name in os.environ if name.startswith(("AIRFLOW", "_AIRFLOW"))]:
        del os.environ[name]
    os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "CRITICAL"
    from support import airflow_home

    # A process that receives SIGTERM still ends its children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    table, broken = Table("fault", *WAYS, title=" / ".join(Befallen._fields)), 0
    try:
        from airflow.utils.db import initdb

        initdb()
        for name in chosen:
            by_way = {way: befall(TROUBLES[name], way) for way in WAYS}
            table.add_row(TROUBLES[name].name, *(" / ".join(map(str, each)) for each in by_way.values()))
            broken += sum(by_way[way].twice + by_way[way].missing for way in OWN)
    finally:
        airflow_home.pytest_unconfigure()
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
