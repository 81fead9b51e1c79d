"""What befalls machines, links and services in mid-send: each scenario is a function with its own campaign and people.

A scenario gets a :class:`Stage` of a campaign whose mapped send is under way: several tables that overlap, a task for
each, on several workers, and one ledger. It disturbs that once, and returns. The stage then waits until every task has
ended by itself, and the service's witness judges.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import requests

from support.faults.campaigns import MESSAGE, Campaign
from support.faults.rest import ENDED, RUN_SECONDS, until
from support.faults.verdict import judge
from support.machines.engine import CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable

PEOPLE = 6_000
RUN = "first"
REQUESTS = 2
"""Requests that a task has in flight at once."""
CHUNK = 50
"""People of a request."""
CUT_SECONDS = 60.0
LONGEST = 300.0
"""Seconds after which a scenario counts as stuck."""
PARTITIONS_OF_WORKER = 2

DAGS = """
from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

for dag_id, sources in {dags!r}.items():
    with DAG(dag_id, schedule=None, default_args={{"retries": 3, "retry_delay": timedelta(seconds=3)}}) as dag:
        BulkSmsOperator.partial(
            task_id="send", message={message!r}, campaign=dag_id, chunk_size={chunk}, concurrency={requests},
        ).expand(source=sources)
    globals()[dag_id] = dag
"""


@dataclass(frozen=True)
class Scenario:
    """Something that befalls a send.

    :param play: disturbs the send of a :class:`Stage`.
    :param requests: how many requests may be unknown at the end.
    :param settings: environment variables of all workers in this scenario.
    :param kinds: kinds of links with which it can be played.
    """

    name: str
    play: Callable[[Any], None]
    requests: int = 0
    settings: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ("relays", "namespaces")

    @property
    def id(self):
        return self.play.__name__


SCENARIOS: list[Scenario] = []
OF_WORKER = CONCURRENCY * REQUESTS
"""Requests that a worker may have in flight."""


def scenario(name, *, requests=0, kinds=("relays", "namespaces"), **settings):
    """Register a scenario.

    :param settings: environment variables of all workers.
    """

    def add(play):
        SCENARIOS.append(Scenario(name, play, requests, tuple(settings.items()), kinds))
        return play

    return add


@dataclass(frozen=True)
class Played:
    """What a scenario came to.

    :param twice: messages that people got beyond the first.
    :param lost: people who were neither texted nor called unknown, or wrongly called texted.
    :param unknown: people who were called unknown.
    :param allowed: how many may be.
    :param seconds: from the disturbance to the end of each task, the longest last; None for one that had not ended.
    :param quiet: seconds from the disturbance until no task had a process any more; None where one was stuck.
    :param shown: what Airflow showed.
    """

    scenario: Scenario
    people: int
    twice: int
    lost: int
    unknown: int
    allowed: int
    seconds: tuple[float | None, ...]
    quiet: float | None
    shown: str

    @property
    def is_broken(self):
        return bool(self.twice or self.lost or self.unknown > self.allowed or None in (self.quiet, *self.seconds))


class Stage:
    """One campaign whose send is under way.

    :param engine: a running :class:`~support.machines.engine.Engine`.
    :param campaign: reader of the campaign's records in witness and ledger.
    """

    def __init__(self, engine, campaign):
        self.engine = engine
        self.services = engine.services
        self.campaign = campaign
        self.dag_id = campaign.name
        self.began = None
        self._later = []

    def trigger(self):
        """Start the run, and return once every worker sends, and a part of the people has been texted."""
        self.engine.trigger(self.dag_id, RUN)
        until(self._is_under_way, seconds=RUN_SECONDS, what="the send is under way", every=0.5)

    def _is_under_way(self):
        texted = len(self.campaign.taken())
        if texted == self.campaign.people or self._has_ended():
            raise RuntimeError("the send was over before anything befell it")
        return texted >= self.campaign.people / 8 and len(self.busy()) == len(self.engine.workers)

    def instances(self):
        """Return the task instances of the run."""
        return self.engine.instances(self.dag_id, RUN)

    def busy(self):
        """Return the workers whose tasks have sent something, by name."""
        with self.campaign.ledger.connect() as connection:
            rows = connection.exec_driver_sql(
                "SELECT DISTINCT k.host FROM sms_claimant k JOIN sms_request r ON r.claimant_id = k.id "
                f"WHERE k.dag_id = '{self.dag_id}'"
            )
            return {row[0] for row in rows}

    @property
    def worker(self):
        """The worker that something befalls."""
        return self.engine.workers["worker-1"]

    def disturb(self):
        """Note that the disturbance begins now."""
        self.began = time.time()

    def later(self, seconds, act):
        """Call a function in some seconds, while the stage waits for the end of the tasks."""
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        self._later.append(timer)

    def await_end(self):
        """Return once the run has ended, no process sends, and nothing of the disturbance is to come.

        :return: seconds from the disturbance until no task had a process; None where one was stuck.
        """
        quiet = None
        with suppress(TimeoutError):
            until(self._is_quiet, seconds=LONGEST, what="the run has ended", every=1.0)
            quiet = time.time() - self.began
        for timer in self._later:
            timer.join(CUT_SECONDS)
        # A process that was killed leaves its claims open until their deadline.
        with suppress(TimeoutError):
            until(self._has_no_claim, seconds=2 * CUT_SECONDS, what="no claim is open", every=1.0)
        return quiet

    def _is_quiet(self):
        return self._has_ended() and not any(worker.tasks() for worker in self.engine.workers.values())

    def _has_ended(self):
        with suppress(requests.RequestException):
            return self.engine.call("GET", f"/dags/{self.dag_id}/dagRuns/{RUN}")["state"] in ENDED
        return False

    def _has_no_claim(self):
        return "claimed" not in self.campaign.states().values()

    def figures(self):
        """Return what witness and ledger say now."""
        return judge(self.campaign.taken(), self.campaign.states(), self.campaign.expected)

    def judge(self, scenario, quiet):
        """Return what the scenario came to.

        :param quiet: as :meth:`await_end` returned it.
        """
        figures = self.figures()
        instances = self.instances()
        seconds = sorted(
            (_seconds(each["end_date"]) - self.began if each["state"] in ENDED else None for each in instances),
            key=lambda each: (each is None, each),
        )
        return Played(
            scenario=scenario,
            people=self.campaign.people,
            twice=figures.duplicates,
            lost=_lost(figures),
            unknown=figures.unknown,
            allowed=scenario.requests * CHUNK,
            seconds=tuple(seconds),
            quiet=quiet,
            shown=_shown(instances),
        )

    def judge_late(self, played):
        """Return the result with what processes still did that a cut had held, once the links are whole again."""
        for worker in self.engine.workers.values():
            worker.machine.mend()
        with suppress(TimeoutError):
            until(self._is_quiet, seconds=CUT_SECONDS, what="no process sends", every=1.0)
        late = self.figures()
        if not self._has_ended():
            # What is stuck must not take the slots of the next scenario.
            self.engine.call("PATCH", f"/dags/{self.dag_id}/dagRuns/{RUN}", state="failed")
        return replace(played, twice=max(played.twice, late.duplicates), lost=max(played.lost, _lost(late)))


def _lost(figures):
    return figures.lost + figures.wrongly_accepted + figures.wrongly_not_sent


def _seconds(date):
    return datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()


def _shown(instances):
    """Return how many tasks were in each state at the end, and after how many attempts."""
    found = Counter((each["state"] or "none", each["try_number"]) for each in instances)
    return ", ".join(f"{n} {state} (attempt {attempt})" for (state, attempt), n in sorted(found.items()))


def play(engine, scenarios, people=PEOPLE, announce=lambda _: None):
    """Play scenarios one after the other, and return what each came to.

    :param engine: a running :class:`~support.machines.engine.Engine`.
    :param people: number of people in each.
    :param announce: function to call with each result.
    """
    parts = PARTITIONS_OF_WORKER * len(engine.workers)
    tables = engine.folder / "tables"
    tables.mkdir(exist_ok=True)
    campaigns = {
        each.id: Campaign(each.id, number, people, parts, tables, engine.services.witness, engine.services.ledger)
        for number, each in enumerate(scenarios)
    }
    dags = {name: campaign.tables for name, campaign in campaigns.items()}
    engine.add_dags("campaigns.py", DAGS.format(dags=dags, message=MESSAGE, chunk=CHUNK, requests=REQUESTS))
    played = []
    for each in scenarios:
        stage = Stage(engine, campaigns[each.id])
        if played or each.settings:
            engine.restore(**dict(each.settings))
        stage.trigger()
        stage.disturb()
        each.play(stage)
        result = stage.judge(each, stage.await_end())
        played.append(stage.judge_late(result))
        announce(played[-1])
    return played


@scenario("nothing: the mapped example, over tables that overlap")
def nothing(_):
    pass


@scenario("a worker is killed with its tasks", requests=OF_WORKER)
def worker_killed(stage):
    stage.worker.kill()


@scenario("a worker vanishes without a word", requests=OF_WORKER)
def worker_vanishes(stage):
    stage.worker.machine.cut()


def _add_cuts():
    all_but = ("database", "pooler", "broker", "api")
    kinds = {
        "database": (("database", "pooler"), "PostgreSQL"),
        "broker": (("broker",), "the broker"),
        "api": (("api",), "the API server"),
        "all_but_messaging": (all_but, "all but the messaging service"),
        "messaging": (("messaging",), "the messaging service only"),
    }
    for key, (services, name) in kinds.items():

        def for_a_while(stage, services=services):
            stage.worker.machine.cut(*services)
            stage.later(CUT_SECONDS, lambda: stage.worker.machine.mend(*services))

        def for_good(stage, services=services):
            stage.worker.machine.cut(*services)

        for_a_while.__name__, for_good.__name__ = f"loses_{key}_60", f"loses_{key}"
        # Whether the service took a request whose response was cut off, nobody can know.
        lost = OF_WORKER if key == "messaging" else 0
        scenario(f"a worker loses {name} for {CUT_SECONDS:.0f} s", requests=lost)(for_a_while)
        scenario(f"a worker loses {name} for good", requests=OF_WORKER)(for_good)


_add_cuts()


@scenario(
    "Celery delivers again what still runs",
    AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT="5",
)
def visibility_timeout(_):
    pass


@scenario("workers are restarted one after the other, by warm shutdowns")
def rolling_restart(stage):
    for worker in stage.engine.workers.values():
        worker.stop()
        worker.start()
        worker.await_ready()


@scenario("the broker is restarted")
def broker_restarted(stage):
    stage.services.broker.kill()
    stage.services.broker.start()


@scenario("the scheduler is killed, and another started 20 s later")
def scheduler_killed(stage):
    stage.engine.kill("scheduler")
    stage.later(20, lambda: stage.engine.start("scheduler"))


@scenario("a second scheduler")
def two_schedulers(stage):
    stage.engine.start("scheduler")


@scenario("PostgreSQL is restarted at once")
def database_restarted(stage):
    stage.services.database.stop()
    stage.services.database.start()


@scenario("PostgreSQL is stopped for 60 s")
def database_stopped(stage):
    stage.services.database.stop()
    stage.later(CUT_SECONDS, stage.services.database.start)
