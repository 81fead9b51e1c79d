"""A campaign whose mapped send is under way on several workers, and what came of it.

Tables overlap, each has a task, and the tasks run on all workers, with one ledger. A test disturbs that; the send then
waits until every task has ended by itself, and the service's witness judges.
"""

from __future__ import annotations

import itertools
import re
import time
from contextlib import suppress

import requests
from sqlalchemy import inspect

from airflow_provider_sms.ledger.model import UNKNOWN
from support.faults.airflow import DAGS
from support.faults.campaigns import MESSAGE, Campaign
from support.faults.rest import ENDED, RUN_SECONDS, until
from support.faults.verdict import judge
from support.machines.engine import CONCURRENCY, WORKERS

PEOPLE = 2_000
TASKS = len(WORKERS) * CONCURRENCY
REQUESTS = 2
"""Requests that a task has in flight at once."""
CHUNK = 50
"""People of a request."""
OF_WORKER = CONCURRENCY * REQUESTS * CHUNK
"""People whom a worker may have in flight."""
RUN = "first"
STUCK_SECONDS = 900.0
LAPSE_SECONDS = 120.0
"""Seconds in which every claim lapses."""

ENDED_BY = re.compile(r'"exc_value": ?"([^"]*)"')
"""The words of an exception in a task's log, which is lines of JSON."""

_numbers = itertools.count()


class Send:
    """One campaign, whose name is the DAG's.

    :param engine: a running :class:`~support.machines.engine.Engine`.
    :param campaign: reader of the campaign's records in witness and ledger.
    """

    def __init__(self, engine, campaign):
        self.name = campaign.name
        self._engine = engine
        self._campaign = campaign
        self.began = None

    def start(self):
        """Start the run, and return once every worker has requests in flight and some people have been texted."""
        # Retries last longer than whatever befalls the tasks.
        options = {"concurrency": REQUESTS, "retries": 3, "retry_delay": 30}
        dags = {self.name: (self._campaign.tables, options)}
        dag = DAGS.format(dags=dags, message=MESSAGE, chunk=CHUNK)
        (self._engine.folder / "dags" / f"{self.name}.py").write_text(dag)
        self._engine.trigger(self.name, RUN)
        until(self._is_under_way, seconds=RUN_SECONDS, what="every worker sends", every=0.5)
        self.began = time.time()

    def _is_under_way(self):
        texted = len(self._campaign.taken())
        if texted == self._campaign.people or self._has_ended():
            raise RuntimeError("the send was over before anything befell it")
        return texted >= self._campaign.people / 8 and self._busy() == set(self._engine.workers)

    def _busy(self):
        """Return the names of the workers that have requests in flight."""
        with self._campaign.ledger.connect() as connection:
            # The first task makes the tables.
            there = inspect(connection).has_table("sms_request")
            return set(connection.exec_driver_sql(self._requests("k.host", "claimed")).scalars()) if there else set()

    def held_until(self, when):
        """Return how many requests were in flight when :meth:`start` returned, and recorded as accepted after a time.

        :param when: seconds since the epoch.
        """
        held = f"r.claimed_at < {self.began} AND r.finished_at > {when}"
        with self._campaign.ledger.connect() as connection:
            return connection.exec_driver_sql(f"{self._requests('count(*)', 'accepted')} AND {held}").scalar()

    def errors(self):
        """Return the errors that ended attempts, as the logs of their tasks have them."""
        logs = self._engine.folder.glob(f"*/logs/dag_id={self.name}/**/attempt=*.log")
        return [each for log in logs for each in ENDED_BY.findall(log.read_text(errors="replace"))]

    def _requests(self, what, state):
        joined = "sms_request r JOIN sms_attempt k ON k.id = r.attempt_id"
        return f"SELECT {what} FROM {joined} WHERE k.dag_id = '{self.name}' AND r.state = '{state}'"

    def await_end(self):
        """Return the figures of the send, and print them, once the run has ended and no process sends any more.

        :raises TimeoutError: a task is stuck.
        """
        until(self._is_quiet, seconds=STUCK_SECONDS, what="the run has ended", every=1.0)
        # A process that was killed leaves its claims open until their deadline.
        until(self._has_no_claim, seconds=LAPSE_SECONDS, what="no claim is open", every=1.0)
        figures = judge(self._campaign.taken(), self._campaign.states(), self._campaign.expected)
        print(f"{self.name}: {figures}")  # noqa: T201  # make several-machines shows it
        return figures

    def attempts(self):
        """Return how many attempts each task had."""
        return [each["try_number"] for each in self._engine.instances(self.name, RUN)]

    def unexcused(self):
        """Return how many tasks did not succeed, though nobody in their table is unknown."""
        states = self._campaign.states()
        instances = self._engine.instances(self.name, RUN)
        failed = [each["map_index"] for each in instances if each["state"] != "success"]
        return sum(all(states.get(key) != UNKNOWN for key in self._campaign.keys_of(index)) for index in failed)

    def _is_quiet(self):
        self._engine.revive()
        return self._has_ended() and not any(worker.tasks() for worker in self._engine.workers.values())

    def _has_ended(self):
        with suppress(requests.RequestException):
            return self._engine.call("GET", f"/dags/{self.name}/dagRuns/{RUN}")["state"] in ENDED
        return False

    def _has_no_claim(self):
        return "claimed" not in self._campaign.states().values()


def start_send(engine, name):
    """Return a send that is under way, on new processes of all workers.

    :param name: of the campaign and its DAG.
    """
    tables = engine.folder / "tables" / name
    tables.mkdir(parents=True)
    records = engine.services.witness, engine.services.ledger
    send = Send(engine, Campaign(name, next(_numbers), PEOPLE, TASKS, tables, *records))
    engine.renew_workers()
    send.start()
    return send
