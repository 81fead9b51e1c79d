"""How fast one campaign is sent, by the number of workers and tasks: ``make several-machines SCENARIOS=--rate``.

The service responds slowly enough that two cores are not the limit: what is measured is whether tasks on several
machines slow each other down in the ledger, and not how fast they would be on machines with cores of their own.
"""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import text

from support.faults.rest import ENDED, RUN_SECONDS, until
from support.machines.deployed import LEDGER

SETUPS = ((1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2))
"""Workers, and tasks on each."""
LATENCY = 0.5
"""Seconds of each response."""
REQUESTS = 4
"""Requests that a task has in flight at once, of 100 messages each."""
PEOPLE = 24_000
"""People of a task, who take half a minute."""
RUN = "measured"

DAG = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

with DAG({dag_id!r}, schedule=None):
    BulkSmsOperator.partial(
        task_id="send", message="Your parcel waits", campaign={dag_id!r}, concurrency={requests}
    ).expand(source={sources!r})
"""
_SPANS = text(
    "SELECT k.host, min(r.claimed_at), max(r.finished_at), sum(r.messages) FROM sms_campaign c "
    "JOIN sms_request r ON r.campaign_id = c.id JOIN sms_claimant k ON k.id = r.claimant_id "
    "WHERE c.name = :name AND r.state = 'accepted' GROUP BY k.id, k.host"
)
_BETWEEN = text(
    "SELECT sum(r.messages) FROM sms_campaign c JOIN sms_request r ON r.campaign_id = c.id "
    "WHERE c.name = :name AND r.finished_at >= :begin AND r.finished_at < :end"
)
_SERVER = text(
    "SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = :ledger), "
    "(SELECT count(*) FROM pg_stat_activity WHERE datname = :ledger AND usename = :role), "
    "(SELECT count(*) FROM pg_stat_activity WHERE datname = :ledger AND usename = :role AND wait_event_type = 'Lock')"
)


class Rate(NamedTuple):
    """What was measured while all tasks of a campaign were sending.

    :param messages: messages a second.
    :param transactions: transactions a second in the ledger's database.
    :param connections: the most connections of tasks.
    :param waiting: share of the moments looked at in which a connection waited for a lock.
    :param busy: share of the machine's processors in use.
    """

    workers: int
    tasks: int
    messages: float
    transactions: float
    connections: int
    waiting: float
    busy: float


def measure(engine, setups=SETUPS):
    """Yield a rate for each setup, one after the other.

    :param engine: a running :class:`~support.machines.engine.Engine` whose service responds within ``LATENCY``.
    """
    tables = engine.folder / "tables"
    tables.mkdir()
    for workers, of_each in setups:
        _use(engine, workers, of_each)
        yield _measured(engine, tables, workers, workers * of_each)


def _use(engine, workers, of_each):
    """Let only some workers run, with as many slots as tasks are meant for each."""
    for worker in engine.workers.values():
        worker.kill()
    engine.concurrency = of_each
    used = list(engine.workers.values())[:workers]
    for worker in used:
        worker.start()
    for worker in used:
        worker.await_ready()


def _measured(engine, tables, workers, tasks):
    name = f"rate_{workers}_{tasks}"
    sources = [_table(tables / f"{name}-{task}.parquet", task) for task in range(tasks)]
    engine.add_dags(f"{name}.py", DAG.format(dag_id=name, requests=REQUESTS, sources=sources))
    engine.trigger(name, RUN)
    seen = []

    def has_ended():
        with engine.services.ledger.connect() as connection:
            found = connection.execute(_SERVER, {"ledger": LEDGER, "role": LEDGER}).one()
        seen.append((time.time(), *found, psutil.cpu_percent()))
        return engine.call("GET", f"/dags/{name}/dagRuns/{RUN}")["state"] in ENDED

    until(has_ended, seconds=RUN_SECONDS, what=f"{name} has ended", every=0.5)
    with engine.services.ledger.connect() as connection:
        spans = connection.execute(_SPANS, {"name": name}).all()
        if sum(sent for *_, sent in spans) != tasks * PEOPLE or len({host for host, *_ in spans}) != workers:
            raise RuntimeError(f"{name}: not everybody was texted, or not by all workers: {spans}")
        begin, end = max(first for _, first, _, _ in spans), min(last for _, _, last, _ in spans)
        sent = connection.execute(_BETWEEN, {"name": name, "begin": begin, "end": end}).scalar_one()
    during = [each for each in seen if begin <= each[0] < end]
    transactions = (during[-1][1] - during[0][1]) / (during[-1][0] - during[0][0])
    return Rate(
        workers=workers,
        tasks=tasks,
        messages=sent / (end - begin),
        transactions=transactions,
        connections=max(each[2] for each in during),
        waiting=statistics.fmean(each[3] > 0 for each in during),
        busy=statistics.fmean(each[4] for each in during) / 100,
    )


def _table(path, task):
    first = 27_820_000_000 + task * PEOPLE
    pq.write_table(pa.table({"destination": [str(first + n) for n in range(PEOPLE)]}), path)
    return str(path)


def row(rate):
    """Return the columns of a rate as text."""
    return (
        *(str(rate.workers), str(rate.tasks), f"{rate.messages:,.0f}", f"{rate.messages / rate.tasks:,.0f}"),
        *(f"{rate.transactions:,.0f}", str(rate.connections), f"{rate.waiting:.0%}", f"{rate.busy:.0%}"),
    )


COLUMNS = (
    *("workers", "tasks", "messages a second", "of a task", "transactions a second", "connections"),
    *("waiting for a lock", "processors in use"),
)
