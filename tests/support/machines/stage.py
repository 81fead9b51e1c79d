"""A campaign whose mapped send is under way on several machines, and what came of it.

Several tables overlap, each has a task, and the tasks run on several workers, with one ledger. A scenario disturbs
that; the stage then waits until every task has ended by itself, and the service's witness judges.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from sqlalchemy import inspect

from airflow_provider_sms.ledger.model import UNKNOWN
from support.faults import partitions
from support.faults.campaigns import MESSAGE, Campaign
from support.faults.rest import ENDED, RUN_SECONDS, until
from support.faults.verdict import judge
from support.machines.engine import CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PEOPLE = 6_000
RUN = "first"
REQUESTS = 2
"""Requests that a task has in flight at once."""
CHUNK = 50
"""People of a request."""
PARTITIONS_OF_WORKER = 2
OF_WORKER = CONCURRENCY * REQUESTS
"""Requests that a worker may have in flight."""
OF_REQUESTS = "JOIN sms_request r ON r.attempt_id = k.id"
NOTED = re.compile(r"^(\S+Z) .*Task \S+\[([0-9a-f-]+)\] (received|succeeded|raised)", re.MULTILINE)
"""What Celery says of a task: when, which one, and what has become of it."""

TASK_SECONDS = 120.0
"""Seconds from the disturbance after which every task has ended by itself: what the project promises."""
LONGEST = 480.0
"""Seconds after which a scenario counts as stuck."""
LAPSE_SECONDS = 60.0
"""Seconds in which every claim lapses, and what a cut has held is passed on."""

DAG = """
from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator, SendWindow

with DAG({dag_id!r}, schedule=None, default_args={{"retries": 3, "retry_delay": timedelta(seconds=3)}}):
    BulkSmsOperator.partial(
        task_id="send", message={message!r}, campaign={dag_id!r}, chunk_size={chunk}, concurrency={requests}, {more}
    ).expand(source={sources!r})
"""


@dataclass(frozen=True)
class Scenario:
    """Something that befalls a send.

    :param play: disturbs the send of a :class:`Stage`.
    :param requests: how many requests may be unknown at the end.
    :param seconds: how long tasks may take from the disturbance on; None means that the scenario itself takes long.
    :param engine: arguments of :func:`~support.machines.engine.running_engine` for an engine of its own.
    :param settings: environment variables of all workers.
    :param first_worker: function that gives more of them, for the first worker, from the engine's folder.
    :param operator: function that gives more arguments of the operator, as Python text.
    :param before: prepares the services before the run begins.
    :param begins: returns whether it is time for the disturbance, of a stage.
    :param proves: raises, once all tasks have ended, where what the scenario is about has not happened.
    :param example: whether the DAG is the example of mapped partitions as it stands, whose id the scenario then has.
    """

    name: str
    play: Callable[[Any], None]
    requests: int = 0
    seconds: float | None = TASK_SECONDS
    engine: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    first_worker: Callable[[Any], Mapping[str, str]] = lambda _: {}
    operator: Callable[[], str] = str
    before: Callable[[Any], None] = lambda _: None
    begins: Callable[[Any], bool] | None = None
    proves: Callable[[Any], None] = lambda _: None
    example: bool = False

    @property
    def id(self):
        return self.play.__name__


@dataclass(frozen=True)
class Played:
    """What a scenario came to.

    :param twice: messages that people got beyond the first.
    :param lost: people who were neither texted nor called unknown, or wrongly called texted.
    :param unknown: people who were called unknown.
    :param allowed: how many may be.
    :param seconds: from the disturbance to the end of each task, the longest last; None for one that had not ended.
    :param quiet: seconds from the disturbance until no task had a process any more; None where one was stuck.
    :param unexcused: tasks that did not succeed, though nobody in their table was unknown.
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
    unexcused: int
    shown: str

    @property
    def is_broken(self):
        """Whether a promise was broken: a task may fail on unknown people of its own table only."""
        bound = self.scenario.seconds or LONGEST
        late = any(each is None or each > bound for each in self.seconds) or self.quiet is None
        return bool(self.twice or self.lost or self.unknown > self.allowed or late or self.unexcused)


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
        self._ends = {}
        self._later = []

    @property
    def worker(self):
        """The worker that something befalls."""
        return self.engine.workers["worker-1"]

    @property
    def service(self):
        """The messaging service's account and faults."""
        return self.services.messaging.state

    def trigger(self, begins=None):
        """Start the run, and return once it is time for the disturbance.

        :param begins: returns whether it is; None means once every worker sends and some people have been texted.
        """
        # What the example asks for; the other DAGs have no params.
        tables = Path(self.campaign.tables[0]).parent
        self.engine.trigger(self.dag_id, RUN, directory=str(tables), campaign=self.campaign.name)
        ready = begins or Stage.is_under_way
        until(lambda: ready(self), seconds=RUN_SECONDS, what="it is time for the disturbance", every=0.5)
        self.began = time.time()

    def is_under_way(self):
        """Return whether every worker sends, and a part of the people has been texted."""
        return self._has_begun() and len(self.busy()) == len(self.engine.workers)

    def is_sending(self):
        """Return whether every task sends, on whichever worker, and a part of the people has been texted."""
        sending = {attempt for attempt, _ in self._hosts(OF_REQUESTS)}
        return self._has_begun() and len(sending) == len(self.campaign.tables)

    def _has_begun(self):
        texted = len(self.campaign.taken())
        if texted == self.campaign.people or self.has_ended():
            raise RuntimeError("the send was over before anything befell it")
        return texted >= self.campaign.people / 8

    def is_waiting(self):
        """Return whether tasks wait without a slot, and no other has a process."""
        if self.has_ended():
            raise RuntimeError("no task waits")
        return any(each["state"] == "deferred" for each in self.instances()) and self.is_idle()

    def instances(self):
        """Return the task instances of the run."""
        return self.engine.instances(self.dag_id, RUN)

    def await_run(self):
        """Return once the run has ended."""
        until(self.has_ended, seconds=RUN_SECONDS, what="the run has ended", every=1.0)

    def busy(self):
        """Return the workers whose tasks have sent something, by name."""
        return {host for _, host in self._hosts(OF_REQUESTS)}

    def require_several(self):
        """Check that tasks have sent on more than one machine.

        :raises RuntimeError: all did on the same one.
        """
        if len(self.busy()) < 2:
            raise RuntimeError("all tasks sent on one machine")

    def require_moved(self):
        """Check that an attempt went on, after it had waited, on another machine than it had begun on.

        :raises RuntimeError: every attempt went on where it had begun.
        """
        machines = Counter(attempt for attempt, _ in self._hosts())
        if max(machines.values()) == 1:
            raise RuntimeError("no task went on on another machine")

    def require_copies(self):
        """Check that a worker received a copy of a task while the task ran.

        :raises RuntimeError: none did, so nothing was tried.
        """
        said = "\n".join(worker.output.read_text(errors="replace") for worker in self.engine.workers.values())
        if not copies(said):
            raise RuntimeError("no worker received a copy of a task while the task ran")

    def require_in_flight(self):
        """Check that tasks had requests in flight at the disturbance, and recorded them over other connections.

        :raises RuntimeError: none had, so no session of the ledger was in use.
        """
        query = (
            "SELECT count(DISTINCT r.attempt_id) FROM sms_request r JOIN sms_attempt k ON k.id = r.attempt_id "
            f"WHERE k.dag_id = '{self.dag_id}' AND r.state = 'accepted' "
            f"AND r.claimed_at < {self.began} AND r.finished_at > {self.began}"
        )
        with self.campaign.ledger.connect() as connection:
            if not connection.exec_driver_sql(query).scalar():
                raise RuntimeError("no request was in flight at the disturbance")

    def require_first_tries(self):
        """Check that no attempt failed while a request was in flight.

        :raises RuntimeError: one did.
        """
        self.require_in_flight()
        if any(each["try_number"] != 1 for each in self.instances()):
            raise RuntimeError("an attempt failed")

    def require_begun_later(self):
        """Check that tasks began after the disturbance, so that a queue was needed.

        :raises RuntimeError: all had begun before.
        """
        query = f"SELECT count(*) FROM sms_attempt WHERE dag_id = '{self.dag_id}' AND started_at > {self.began}"
        with self.campaign.ledger.connect() as connection:
            if not connection.exec_driver_sql(query).scalar():
                raise RuntimeError("no task began after the disturbance")

    def require_adopted(self):
        """Check that a scheduler has adopted tasks of one that died.

        :raises RuntimeError: it has adopted none.
        """
        latest = "SELECT max(id) FROM job WHERE job_type = 'SchedulerJob'"
        if not self.engine.ask_metadata(
            f"SELECT count(*) FROM task_instance WHERE dag_id = '{self.dag_id}' AND queued_by_job_id = ({latest})"
        ):
            raise RuntimeError("the new scheduler has adopted no task")

    def _hosts(self, joined=""):
        """Return the machines of each attempt, in the ledger.

        :param joined: what they are joined with.
        """
        query = f"SELECT DISTINCT k.map_index, k.try_number, k.host FROM sms_attempt k {joined}"
        with self.campaign.ledger.connect() as connection:
            if not inspect(connection).has_table("sms_attempt"):
                return []  # the first task makes it
            rows = connection.exec_driver_sql(f"{query} WHERE k.dag_id = '{self.dag_id}'")
            return [((map_index, try_number), host) for map_index, try_number, host in rows]

    def cut_for(self, seconds, *services):
        """Let the worker lose some services, and have them again in some seconds."""
        self.worker.machine.cut(*services)
        self.later(seconds, lambda: self.worker.machine.mend(*services))

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
            timer.join(LAPSE_SECONDS)
        # A process that was killed leaves its claims open until their deadline.
        with suppress(TimeoutError):
            until(self._has_no_claim, seconds=2 * LAPSE_SECONDS, what="no claim is open", every=1.0)
        return quiet

    def _is_quiet(self):
        self.engine.revive()
        with suppress(requests.RequestException):
            for each in self.instances():
                # Not the end that Airflow shows: a worker tells it, by its own clock.
                if each["state"] in ENDED:
                    self._ends.setdefault(each["map_index"], time.time() - self.began)
        return self.has_ended() and self.is_idle()

    def is_idle(self):
        """Return whether no task has a process."""
        return not any(worker.tasks() for worker in self.engine.workers.values())

    def has_ended(self):
        """Return whether the run has ended, as far as the API server tells."""
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
        ends = [self._ends.get(each["map_index"]) if each["state"] in ENDED else None for each in instances]
        return Played(
            scenario=scenario,
            people=self.campaign.people,
            twice=figures.duplicates,
            lost=_lost(figures),
            unknown=figures.unknown,
            allowed=scenario.requests * CHUNK,
            seconds=tuple(sorted(ends, key=lambda each: (each is None, each))),
            quiet=quiet,
            unexcused=unexcused(instances, self.campaign),
            shown=_shown(instances),
        )

    def judge_late(self, played):
        """Return the result with what processes still did that a cut had held, once the links are whole again."""
        for worker in self.engine.workers.values():
            worker.machine.mend()
        with suppress(TimeoutError):
            until(self._is_quiet, seconds=LAPSE_SECONDS, what="no process sends", every=1.0)
        late = self.figures()
        if not self.has_ended():
            # What is stuck must not take the slots of the next scenario.
            self.engine.call("PATCH", f"/dags/{self.dag_id}/dagRuns/{RUN}", state="failed")
        return replace(
            played,
            twice=max(played.twice, late.duplicates),
            lost=max(played.lost, _lost(late)),
        )


def _lost(figures):
    return figures.lost + figures.wrongly_accepted + figures.wrongly_not_sent


def copies(said):
    """Return the ids of tasks of which a copy was received before the first one had ended.

    :param said: what the workers have printed.
    """
    received, ended = {}, {}
    for at, task, what in sorted(NOTED.findall(said)):
        if what == "received":
            received.setdefault(task, []).append(at)
        else:
            ended.setdefault(task, at)
    return {task for task, (_, *again) in received.items() if again and again[0] < ended.get(task, "9")}


def unexcused(instances, campaign):
    """Return how many tasks did not succeed, though nobody in their table is unknown.

    :param instances: as Airflow lists them; each has the table of its map index.
    """
    states = campaign.states()
    failed = [each["map_index"] for each in instances if each["state"] != "success"]
    return sum(all(states.get(key) != UNKNOWN for key in campaign.keys_of(index)) for index in failed)


def _shown(instances):
    """Return how many tasks were in each state at the end, and after how many attempts."""
    found = Counter((each["state"] or "none", each["try_number"]) for each in instances)
    return ", ".join(f"{n} {state} (attempt {attempt})" for (state, attempt), n in sorted(found.items()))


def _dag_of(scenario, campaign):
    known = {"message": MESSAGE, "chunk": CHUNK, "requests": REQUESTS, "more": scenario.operator()}
    return DAG.format(dag_id=scenario.id, sources=campaign.tables, **known)


def play(engine, scenarios, people=PEOPLE, announce=lambda _: None, first=0):
    """Play scenarios one after the other, and return what each came to.

    :param engine: a running :class:`~support.machines.engine.Engine`.
    :param people: number of people in each.
    :param announce: function to call with each result.
    :param first: number of the first scenario, whose people no other engine's scenario has.
    """
    parts = PARTITIONS_OF_WORKER * len(engine.workers)
    played = []
    for number, each in enumerate(scenarios, first):
        tables = engine.folder / "tables" / each.id
        tables.mkdir(parents=True)
        records = engine.services.witness, engine.services.ledger
        texts = {"message": partitions.MESSAGE, "same": partitions.SAME} if each.example else {}
        campaign = Campaign(each.id, number, people, parts, tables, *records, **texts)
        more = {name: dict(made(engine.folder)) for name, made in {"worker-1": each.first_worker}.items()}
        if played or each.settings or any(more.values()):
            engine.restore(more, **each.settings)
        stage = Stage(engine, campaign)
        each.before(stage)
        engine.add_dags(f"{each.id}.py", partitions.EXAMPLE.read_text() if each.example else _dag_of(each, campaign))
        stage.trigger(each.begins)
        each.play(stage)
        result = stage.judge(each, stage.await_end())
        each.proves(stage)
        played.append(stage.judge_late(result))
        announce(played[-1])
    return played
