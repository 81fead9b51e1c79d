"""Every example DAG, and some DAGs of the tests, run by a real Airflow as users run them, who look at its pages."""

from __future__ import annotations

import gzip
import re
import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from support.campaign_site import HOSTILE, RUN, CampaignSite, running_site, write_people
from support.faults.rest import API_SECONDS, RUN_SECONDS, until
from support.other_service import served

EXAMPLES = Path(__file__).parents[2] / "dags"
TOKEN = "a-token-that-nobody-may-see"
ON_CALL = ("27820000001", "27830000002")
BALANCE, NEEDED, BOUGHT = 20_000, 50_000, 60_000

DAGS = """
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Asset, task
from airflow.sdk.definitions.deadline import AsyncCallback, DeadlineAlert, DeadlineReference
from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

callback = AsyncCallback(SmsNotifier, kwargs={{"to": "{{{{ var.value.sms_on_call }}}}", "default_region": "ZA"}})
deadline = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(seconds=1), callback=callback
)
TEXTED = Asset(name="texted", uri="x-sms://texted/")

with DAG("waits", schedule=None, deadline=deadline):
    credit = BalanceSensor(task_id="credit", min_balance={needed}, deferrable=True, poke_interval=1, timeout=600)
    credit >> BulkSmsOperator.partial(
        task_id="text",
        message="Hi {{first_name}}, the credit has come",
        default_region="ZA",
        report={report!r},
        outlets=[TEXTED],
        map_index_template="{{{{ task.source.rpartition('/')[2] }}}}",
    ).expand(source=[{source!r}])

with DAG("told", schedule=[TEXTED], start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):

    @task(inlets=[TEXTED])
    def look(inlet_events):
        return dict(inlet_events[TEXTED][-1].extra)

    look()
"""

SENT = 600
CAMPAIGNS = {
    "spring": {
        "source": {"count": SENT, "first": 27_822_000_000, "invalid": 7},
        "message": "Hi {first_name}, the spring sale begins.",
        "campaign": "spring sale",
        "sms_conn_id": "sms_spring",
        "chunk_size": 10,
        "concurrency": 1,
    },
    "reminders": {
        "source": {"count": 250, "first": 27_832_000_000},
        "message": "Hi {first_name}, see you at ten.",
        "campaign": "appointments",
        "sms_conn_id": "sms_lossy",
        "chunk_size": 50,
        "concurrency": 1,
    },
    "hostile": {
        "source": {"count": 20, "first": 27_842_000_000, "names": (HOSTILE,)},
        "message": "{first_name}",
        "campaign": HOSTILE,
    },
    "overdue": {
        "source": {"count": 300, "first": 27_852_000_000},
        "message": "Hi {first_name}, please pay.",
        "campaign": "overdue accounts",
        "sms_conn_id": "sms_low",
        "on_low_balance": "wait",
    },
}
"""Those that end in different ways, and one that nobody has sent yet."""
SERVICES = {"sms_spring": {"balance": 5000}, "sms_lossy": {"balance": 5000}, "sms_low": {"balance": 100}}

SETTINGS = {
    # Airflow notices a killed triggerer within seconds.
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
    "AIRFLOW__METRICS__OTEL_ON": "True",
    "AIRFLOW__METRICS__OTEL_HOST": "127.0.0.1",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
}


@dataclass
class Whole:
    """The observations of the run.

    :param site: the Airflow, which goes on.
    :param triggers: rows of Airflow's database while a sensor was deferred.
    :param told: extra of a send's asset event.
    :param exported: what Airflow exported of its metrics, as OTLP.
    :param shown: what people were shown by the package's pages and commands; numbers that they typed are left out.
    :param unapproved: by run, the people whom the approval example had texted while the person was asked.
    :param approved: the same at the end of the run.
    """

    home: Path
    report: Path
    site: CampaignSite
    states: dict[str, str] = field(default_factory=dict)
    triggers: list[str] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)
    run_type: str = ""
    label: str = ""
    exported: list[bytes] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    unapproved: dict[str, int] = field(default_factory=dict)
    approved: dict[str, int] = field(default_factory=dict)

    @property
    def taken(self):
        """The accepted messages."""
        return [message for service in self.site.services.values() for message in list(service.accepted)]


@contextmanager
def run_all(folder):
    """Run everything once in an empty folder, and yield the observations."""
    home, report, partitions, exported = folder / "airflow", folder / "report.parquet", folder / "partitions", []
    dags = home / "dags"

    def collect(path, headers, body):
        exported.append(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)
        return 200, {}, b""

    shutil.copytree(EXAMPLES, dags, ignore=shutil.ignore_patterns("__pycache__"))
    _open_all_day(dags / "example_sms_controls.py")
    source = write_people(folder / "people.parquet", 30, first=27_841_000_000)
    (dags / "own.py").write_text(DAGS.format(needed=NEEDED, report=str(report), source=source))
    for part in range(2):
        write_people(partitions / f"part-{part}.parquet", 250, first=27_831_000_000 + 250 * part)
    with running_sandbox(SandboxConfig(token=TOKEN, balance=BALANCE)) as sandbox, served(collect) as url:
        exports = {"AIRFLOW__METRICS__OTEL_PORT": url.rpartition(":")[2], "OTEL_EXPORTER_OTLP_ENDPOINT": url}
        with running_site(folder, CAMPAIGNS, SERVICES, {**SETTINGS, **exports}) as site:
            airflow, site.services["sms_default"] = site.airflow, sandbox.state
            whole = Whole(home, report, site, exported=exported)
            # In Airflow's database, not in the environment: the token must not be readable there either.
            service = {"connection_id": "sms_default", "conn_type": "sms", "host": sandbox.base_url, "password": TOKEN}
            airflow.call("POST", "/connections", **service)
            airflow.call("POST", "/variables", key="sms_on_call", value="082 000 0001, +27830000002")
            airflow.call("POST", "/pools", name="sms_account", slots=2)
            site.services["sms_lossy"].set_faults([{"kind": "none"}, {"kind": "drop_after"}, {"kind": "drop_after"}])
            for dag_id in ("overdue", "reminders", "hostile"):
                airflow.trigger(dag_id, RUN)
            _run(airflow, sandbox, whole, partitions)
            (instance,) = (each for each in airflow.instances("waits", RUN) if each["task_id"] == "text")
            whole.label = instance["rendered_map_index"]
            site.await_state("reminders")
            site.await_state("hostile")
            site.await_state("overdue", "deferred")
            _show(airflow, whole, sandbox)
            yield whole


def _show(airflow, whole, sandbox):
    """Look at every page and run commands, as people do who know one number."""
    known, unknown = sandbox.state.accepted[-1].destination, "27829999999"
    for name, number in {"who": f"+{known}", "who of nobody": f"+{unknown}", "who of no number": known[:4]}.items():
        whole.shown[f"command {name}"] = airflow.ledger_command("who", number)
    whole.shown["list"] = airflow.page("/")
    for path in sorted({*re.findall(r'href="[^"]*/sms(/campaigns/\d+)"', whole.shown["list"])}):
        whole.shown[path] = airflow.page(path)


def _open_all_day(dag):
    """Remove the send window of an example, so that it sends at any hour."""
    hours, always = "send_window=SOUTH_AFRICAN_DIRECT_MARKETING", 'send_window=SendWindow("00:00", "24:00", "UTC")'
    imported = "import SOUTH_AFRICAN_DIRECT_MARKETING, BulkSmsOperator"
    text = dag.read_text()
    assert (hours in text, imported in text) == (True, True)
    dag.write_text(text.replace(hours, always).replace(imported, "import BulkSmsOperator, SendWindow"))


def _await(condition, what):
    return until(condition, seconds=RUN_SECONDS, what=what, every=API_SECONDS)


def _run(airflow, sandbox, whole, partitions):
    params = {"example_sms_partitions": {"directory": str(partitions), "campaign": "spring"}}
    others = {"example_sms_approval", "example_sms_maintenance", "example_sms_on_update"}
    triggered = sorted({path.stem for path in EXAMPLES.glob("*.py")} - others | {"example_sms_on_update_write"})
    for dag_id in ("waits", *triggered):
        airflow.trigger(dag_id, RUN, **params.get(dag_id, {}))
    _outlive_triggerer(airflow, sandbox, whole)
    for dag_id in triggered:
        whole.states[dag_id] = airflow.await_end(dag_id, RUN)
    for run, answer in (("cheap", None), (RUN, "Approve"), ("refused", "Reject"), ("changed", "Approve")):
        _approve(airflow, sandbox, whole, run, answer)
    # Once there is a ledger.
    airflow.trigger("example_sms_maintenance", RUN)
    whole.states["example_sms_maintenance"] = airflow.await_end("example_sms_maintenance", RUN)
    missed = "missed its deadline"
    _await(lambda: any(missed in each.content for each in sandbox.state.accepted), missed)
    sandbox.state.set_balance(BOUGHT)
    whole.states["waits"] = airflow.await_end("waits", RUN)
    # Changed assets trigger these.
    for dag_id in ("example_sms_on_update", "told"):
        run = _await(lambda dag_id=dag_id: airflow.runs(dag_id), f"{dag_id} was scheduled")[0]
        whole.states[dag_id] = airflow.await_end(dag_id, run["dag_run_id"])
        whole.run_type = run["run_type"]
    (_, whole.told), *_ = airflow.summaries("told", run["dag_run_id"])


def _approve(airflow, sandbox, whole, run, answer):
    """Run the approval example: the run ``changed`` finds another table once it is approved.

    :param answer: option of the person who is asked; None for a plan that is too cheap to be asked about.
    """
    dag_id, before = "example_sms_approval", len(sandbox.state.accepted)

    def texts():
        return sum("your appointment at our" in each.content for each in sandbox.state.accepted[before:])

    airflow.trigger(dag_id, run, campaign=run, ask_above=500 if answer else 1_000_000)
    if answer:
        asks, output = ("awaiting_input", "deferred"), whole.home / "standalone-0.out"
        _await(lambda: _states(airflow, dag_id, run).get("approve") in asks, "the task asks")
        # Airflow 3.3 treats a task as failed when the answer arrives before the end of its process is recorded.
        known = re.compile(rf"Received executor event.*dag_id='{dag_id}'.*'approve'.*'{run}'")
        _await(lambda: known.search(output.read_text(errors="replace")), "it waits")
        whole.unapproved[run] = texts()
        if run == "changed":
            table = EXAMPLES / "data" / "recipients.parquet"
            pq.write_table(pq.read_table(table).slice(1), whole.home / "dags" / "data" / table.name)
        airflow.answer(dag_id, run, "approve", answer)
    whole.states[f"{dag_id} {run}"] = airflow.await_end(dag_id, run)
    whole.approved[run] = texts()


def _states(airflow, dag_id, run):
    return {each["task_id"]: each["state"] for each in airflow.instances(dag_id, run)}


def _outlive_triggerer(airflow, sandbox, whole):
    """Kill the triggerer of a sensor, and wait until another one has looked after it."""

    def looks():
        return sum(request.operation == "balance" for request in sandbox.state.requests)

    _await(lambda: _states(airflow, "waits", RUN).get("credit") == "deferred", "the sensor is deferred")
    with closing(sqlite3.connect(f"file:{airflow.home}/airflow.db?mode=ro", uri=True)) as database:
        whole.triggers = [str(row) for row in database.execute("SELECT * FROM trigger")]
    # It exports its metrics every second, and not every minute and at its end. No process that forks may: one that is
    # forked during an export inherits the exporter's lock, and waits forever at its own export.
    soon = {"AIRFLOW__METRICS__OTEL_INTERVAL_MILLISECONDS": "1000", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
    airflow.replace("triggerer", soon, whole=True)
    before = looks()
    _await(lambda: looks() > before + 1, "another triggerer looks")
