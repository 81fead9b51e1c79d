"""The example of mapped partitions in a real Airflow: ``python -m support.faults.partitions``."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.faults.airflow import CONNECTION_EXTRA, TOKEN, WIDTH, a_ledger, leaks
from support.faults.campaigns import Campaign
from support.faults.rest import RUN_SECONDS, until
from support.faults.standalone import PROMPT, running_airflow

if TYPE_CHECKING:
    from support.faults.verdict import Figures

EXAMPLE = Path(__file__).parents[3] / "dags" / "example_sms_partitions.py"
DAG_ID, TASK_ID = "example_sms_partitions", "text_partition"
MESSAGE = "Hi {first_name}, your statement of R{amount:.2f} is ready at our {city} branch. Reply STOP to opt out."
SAME = {"amount": 99.5, "city": "Durban"}
RATE, CONCURRENCY, CHUNK = 5, 4, 100
"""Values of the example: requests per second of each task, concurrency, messages in a request."""

SLOTS = 4
PARALLELISM = 6
"""Tasks that Airflow would run at once without the pool: more than its slots."""
PARTITIONS = 8
PEOPLE = 16_000
LATENCY = 0.5
"""Seconds: so that a process that is killed has requests in flight."""
WINDOW = 5.0
LATE_REQUESTS = 1
"""Requests of a task that may arrive late in a window, on a busy machine."""
COLUMNS = (
    *("rows", "failed tasks", "at once", "peak 1 s", f"peak {WINDOW:.0f} s"),
    *("duplicates", "lost", "wrongly accepted", "wrongly not sent", "unknown", "of requests"),
)

_CLAIMS = text(
    "SELECT k.id, k.pid, k.map_index, k.try_number, r.state, r.claimed_at, coalesce(r.finished_at, r.claimed_at) "
    "FROM sms_request r JOIN sms_attempt k ON k.id = r.attempt_id JOIN sms_campaign c ON c.id = r.campaign_id "
    "WHERE c.name = :name ORDER BY r.id DESC"
)


@dataclass(frozen=True)
class Ran:
    """The result of a run of the example.

    :param failed: tasks whose final state was failed.
    :param at_once: maximum number of processes that sent at the same time.
    :param peaks: requests in the service's busiest second, and in its busiest ``WINDOW``.
    :param rows: rows of all summaries.
    :param killed: requests that the killed process left unknown; None when no process was killed.
    :param wrong: violations of the pool and the rate.
    """

    name: str
    tasks: int
    failed: int
    at_once: int
    peaks: tuple[int, int]
    rows: int
    figures: Figures
    killed: int | None
    wrong: list[str]


def most_at_once(spans):
    """Return the maximum number of simultaneous spans of time, each with its start and end."""
    edges = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    running = most = 0
    for _, step in edges:
        running += step
        most = max(most, running)
    return most


def peak(times, seconds):
    """Return the number of times within the busiest interval of some seconds."""
    times = sorted(times)
    begin = most = 0
    for end, time in enumerate(times):
        while time - times[begin] >= seconds:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def beyond_rate(peaks):
    """Return the intervals, a second or a ``WINDOW``, with more requests than the rate of the pool allows."""
    for seconds, met in zip((1.0, WINDOW), peaks, strict=True):
        most = SLOTS * (RATE * int(seconds) + 1 + LATE_REQUESTS)
        if met > most:
            yield f"{met} requests in {seconds:.0f} s, where {most} are allowed"


class Play:
    """One run of the example.

    :param service: the sandbox's memory.
    :param ledger: engine that reads the ledger.
    """

    def __init__(self, airflow, service, ledger, campaign, directory):
        self._airflow = airflow
        self._service = service
        self._ledger = ledger
        self._campaign = campaign
        self._directory = directory
        self._met_before = len(service.requests)

    def run(self, kill):
        """Run the example to its end.

        :param kill: whether to kill the process of one task in mid-send.
        """
        name = self._campaign.name
        self._airflow.trigger(DAG_ID, name, directory=str(self._directory), campaign=name)
        victim = self._kill_one() if kill else None
        state = self._airflow.await_end(DAG_ID, name)
        summaries = [found for found in self._airflow.summaries(DAG_ID, name) if found[0] >= 0]
        claims = self._claims()
        spans = {}
        for claimant, *_, begin, end in claims:
            first, last = spans.get(claimant, (begin, end))
            spans[claimant] = min(first, begin), max(last, end)
        times = [each.at.timestamp() for each in self._service.requests[self._met_before :] if each.operation == "bulk"]
        ran = Ran(
            name,
            len(summaries),
            sum(each["state"] == "failed" for each in self._airflow.instances(DAG_ID, name)),
            most_at_once([*spans.values()]),
            (peak(times, 1.0), peak(times, WINDOW)),
            sum(summary["rows"] for _, summary in summaries),
            self._campaign.judge(summaries),
            None if victim is None else sum(each[0] == victim and each[4] == "unknown" for each in claims),
            [],
        )
        ran.wrong.extend(self._wrong(ran))
        if victim is not None:
            ran.wrong.extend(self._wrong_after_kill(ran, claims, victim))
        elif state != "success" or ran.figures.unknown:
            ran.wrong.append(f"{state}, with {ran.figures.unknown} unknown, though nothing befell it")
        return ran

    def _claims(self):
        with self._ledger.connect() as connection:
            return connection.execute(_CLAIMS, {"name": self._campaign.name}).all()

    def _kill_one(self):
        """Kill a process with requests in flight, once a third of the people were texted; return its claimant."""
        enough = self._campaign.people // 3
        until(lambda: self._campaign.taken().total() >= enough, seconds=RUN_SECONDS, what="the send is under way")

        def busy():
            return next((each for each in self._claims() if each[4] == "claimed"), None)

        claimant, pid, *_ = until(busy, seconds=RUN_SECONDS, what="a process has requests in flight")
        self._airflow.kill(pid)
        return claimant

    def _wrong(self, ran):
        if ran.tasks != PARTITIONS:
            yield f"{ran.tasks} summaries of {PARTITIONS} tasks"
        if ran.rows != self._campaign.rows:
            yield f"the summaries are of {ran.rows} rows, the tables have {self._campaign.rows}"
        if ran.at_once < 2:
            yield "no two processes were sending at the same time"
        if ran.at_once > SLOTS:
            yield f"{ran.at_once} processes were sending at the same time, with {SLOTS} slots"
        yield from beyond_rate(ran.peaks)

    def _wrong_after_kill(self, ran, claims, victim):
        (killed,) = {each[2] for each in claims if each[0] == victim}
        tries = {each["map_index"]: each["try_number"] for each in self._airflow.instances(DAG_ID, self._campaign.name)}
        if tries[killed] < 2:
            yield "the task that was killed was not tried again"
        if not 0 < ran.killed <= CONCURRENCY:
            yield f"{ran.killed} requests of the process that was killed are unknown"
        if ran.figures.unknown > ran.killed * CHUNK:
            yield f"{ran.figures.unknown} messages are unknown, more than the process that was killed had in flight"


def play(people=PEOPLE, announce=lambda _: None):
    """Run the example in a new Airflow, undisturbed and with one process killed; return both, and leaks in logs.

    :param people: number of people in each run.
    :param announce: function to call with each run's result.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-partitions-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        witness = folder / "witness.jsonl"
        config = SandboxConfig(token=TOKEN, post_paid=True, latency=LATENCY, log=witness)
        service = stack.enter_context(running_sandbox(config))
        settings, ledger = stack.enter_context(a_ledger("postgresql", folder))
        connection = {"conn_type": "sms", "host": service.base_url, "password": TOKEN, "extra": CONNECTION_EXTRA}
        settings["AIRFLOW_CONN_SMS_DEFAULT"] = json.dumps(connection)
        settings |= PROMPT | {"AIRFLOW__CORE__PARALLELISM": str(PARALLELISM)}
        home = folder / "airflow"
        (home / "dags").mkdir(parents=True)
        shutil.copy(EXAMPLE, home / "dags")
        campaigns = {}
        for number, name in enumerate(("undisturbed", "killed")):
            (folder / name).mkdir()
            campaigns[name] = Campaign(
                name, number, people, PARTITIONS, folder / name, witness, ledger, message=MESSAGE, same=SAME
            )
        ran = []
        with running_airflow(home, settings) as airflow:
            airflow.call("POST", "/pools", name="sms_account", slots=SLOTS)
            for name, campaign in campaigns.items():
                ran.append(Play(airflow, service.state, ledger, campaign, folder / name).run(kill=name == "killed"))
                announce(ran[-1])
        return ran, leaks(home, set().union(*(campaign.numbers for campaign in campaigns.values())))


def main(arguments=None):
    """Run both, print a table, and return 1 if the promise was broken, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.faults.partitions", description=__doc__)
    parser.add_argument("--people", type=int, default=PEOPLE, help=f"of each of the two runs (default: {PEOPLE})")
    given = parser.parse_args(arguments)
    # A process that receives SIGTERM still ends its children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    console = Console(width=max(WIDTH + 10, Console().width))
    title = f"{given.people} people in {PARTITIONS} partitions; {SLOTS} slots of {RATE} requests a second"
    table = Table("run", title=title)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    ran, leaking = play(given.people, lambda each: console.print(f"{each.name}: ended", style="dim"))
    for each in ran:
        figures = each.figures
        seen = (each.rows, each.failed, each.at_once, *each.peaks)
        judged = (figures.duplicates, figures.lost, figures.wrongly_accepted, figures.wrongly_not_sent, figures.unknown)
        table.add_row(each.name, *map(str, (*seen, *judged, each.killed or 0)))
    console.print(table)
    wrong = [f"{each.name}: {words}" for each in ran for words in each.wrong]
    wrong += [f"{path} holds a number, the token or a text" for path in leaking]
    for words in wrong:
        console.print(words)
    return 1 if wrong or any(each.figures.broken for each in ran) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was started has ended")
