"""Campaigns and their failures in a real Airflow: ``python -m support.faults.airflow``."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.faults.campaigns import MESSAGE, Campaign
from support.faults.scenarios import SCENARIOS, Scenario, Stage
from support.faults.standalone import PROMPT, running_airflow
from support.faults.tries import STORES
from support.faults.verdict import Figures
from support.postgres import connection_of, new_database, running_postgres

TOKEN = "sandbox-token-4567"
PEOPLE = 3_000
QUICK_PEOPLE = 1_200
QUICK = ("outage", "task_killed", "clear_running")
LATENCY = 0.4
CHUNK = 50
NAME = re.compile(rb"\bName\d")
CONNECTION_EXTRA = {"timeout": 2, "connect_timeout": 1}

DAGS = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

for dag_id, (sources, options) in {dags!r}.items():
    with DAG(dag_id, schedule=None, default_args={{"retries": 2, "retry_delay": 1}}) as dag:
        arguments = {{
            "task_id": "send", "message": {message!r}, "campaign": dag_id, "chunk_size": {chunk}, "concurrency": 4,
            **options,
        }}
        if len(sources) == 1:
            BulkSmsOperator(source=sources[0], **arguments)
        else:
            BulkSmsOperator.partial(**arguments).expand(source=sources)
    globals()[dag_id] = dag
"""


@dataclass(frozen=True)
class Played:
    """The result of a scenario.

    :param tries: attempts that entered the ledger.
    :param rows: rows of the last attempts' tables.
    """

    scenario: Scenario
    tries: int
    rows: int
    figures: Figures


@contextmanager
def a_ledger(store, folder):
    """Create a ledger, and yield Airflow's settings for it and an engine that reads it."""
    if store == "sqlite":
        path = folder / "ledger.db"
        engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
        yield {"AIRFLOW__SMS__LEDGER_PATH": str(path)}, engine
        engine.dispose()
        return
    with running_postgres() as server:
        url = new_database(server)
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        yield {"AIRFLOW_CONN_SMS_LEDGER": connection_of(url), "AIRFLOW__SMS__LEDGER_CONN_ID": "sms_ledger"}, engine
        engine.dispose()


def play(store, scenarios, people, settings=None):
    """Run scenarios one after the other in a new Airflow; return the result of each, and the leaks in its logs.

    :param store: ``sqlite`` or ``postgresql``.
    :param people: number of people in each scenario.
    :param settings: more environment variables of the Airflow.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="airflow-provider-sms-airflow-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        witness = folder / "witness.jsonl"
        service = stack.enter_context(
            running_sandbox(SandboxConfig(token=TOKEN, post_paid=True, latency=LATENCY, log=witness))
        )
        of_ledger, ledger = stack.enter_context(a_ledger(store, folder))
        settings = {**of_ledger, **(settings or {})}
        campaigns = {
            each.dag_id: Campaign(each.dag_id, number, people, each.partitions, folder, witness, ledger)
            for number, each in enumerate(scenarios)
        }
        dags = {each.dag_id: (campaigns[each.dag_id].tables, dict(each.options)) for each in scenarios}
        home = folder / "airflow"
        (home / "dags").mkdir(parents=True)
        (home / "dags" / "campaigns.py").write_text(DAGS.format(dags=dags, message=MESSAGE, chunk=CHUNK))
        connection = {"conn_type": "sms", "host": service.base_url, "password": TOKEN, "extra": CONNECTION_EXTRA}
        settings["AIRFLOW_CONN_SMS_DEFAULT"] = json.dumps(connection)
        if any(each.prompt for each in scenarios):
            settings |= PROMPT
        played = []
        with running_airflow(home, settings) as airflow:
            for scenario in scenarios:
                campaign = campaigns[scenario.dag_id]
                stage = Stage(airflow, service.state, scenario.dag_id, campaign)
                played.append(_play_one(scenario, stage))
                sys.stderr.write(f"{scenario.name} ({store}): {played[-1].tries} tries, {played[-1].figures}\n")
        numbers = set().union(*(campaign.numbers for campaign in campaigns.values()))
        return played, leaks(home, numbers)


def _play_one(scenario, stage):
    scenario.play(stage)
    stage.await_no_sender()
    summaries = [
        (max(0, map_index), summary)
        for run in stage.runs
        for map_index, summary in stage.airflow.summaries(scenario.dag_id, run)
    ]
    tries = len(stage.campaign.pids())
    if tries < scenario.tries:
        raise RuntimeError(f"{scenario.name}: {tries} tries, so nothing has befallen the send")
    rows = sum(summary["rows"] for _, summary in summaries)
    return Played(scenario, tries, rows, stage.campaign.judge(summaries))


def leaks(home, numbers):
    """Return the logs of an Airflow that contain a number, a name, as each text has one, or the token."""
    written = [*home.glob("*.out"), *(path for path in (home / "logs").rglob("*") if path.is_file())]
    return [str(path.relative_to(home)) for path in written if _leaks(path.read_bytes(), numbers)]


def _leaks(log, numbers):
    found = (number.decode() for number in re.findall(rb"(?=(2782\d{7}))", log))
    return TOKEN.encode() in log or bool(NAME.search(log)) or not numbers.isdisjoint(found)


def run(store, quick, only=()):
    """Run the scenarios on one kind of ledger, and return the sum of their figures.

    :param quick: True runs some of them, with fewer people.
    :param only: the names of those to run.
    """
    chosen = only or (QUICK if quick else [each.dag_id for each in SCENARIOS])
    scenarios = [each for each in SCENARIOS if each.dag_id in chosen]
    played, leaking = play(store, scenarios, QUICK_PEOPLE if quick else PEOPLE)
    if leaking:
        raise AssertionError(f"numbers, token or text in {len(leaking)} logs: {', '.join(leaking)}")
    return sum((each.figures for each in played), Figures())


def main():
    """Run the selected scenarios, and return 1 if the promise was broken, else 0."""
    parser = argparse.ArgumentParser(prog="python -m support.faults.airflow", description=__doc__)
    parser.add_argument("--store", choices=STORES, help="default: each")
    parser.add_argument("--only", nargs="+", choices=[each.dag_id for each in SCENARIOS], metavar="SCENARIO")
    given = parser.parse_args()
    # A process that receives SIGTERM still ends its children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    figures = [run(store, quick=False, only=given.only) for store in ([given.store] if given.store else STORES)]
    return int(any(each.broken for each in figures))


if __name__ == "__main__":
    sys.exit(main())
