"""Failures of a send in Airflow: each scenario is a function with its own campaign and people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from support.faults.rest import RUN_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable
SLOW_SECONDS = 1.2
"""Seconds of each response in scenarios whose send must outlast the detection of a dead scheduler."""


@dataclass(frozen=True)
class Scenario:
    """One failure of a send.

    :param play: causes the failure on a :class:`Stage`, and returns the runs whose summaries count.
    :param partitions: how many tables the people are cut into, each with half of the next; 1 for a task that is not
        mapped.
    :param tries: minimum number of attempts in the ledger; with fewer, the failure did not happen.
    :param prompt: True for an Airflow that soon takes a silent scheduler or task for dead, as a busy one may be, too.
    :param options: further arguments of the operator.
    """

    name: str
    play: Callable[[Any], list[str]]
    partitions: int = 1
    tries: int = 2
    prompt: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def dag_id(self):
        return self.play.__name__


SCENARIOS: list[Scenario] = []


def scenario(name, *, partitions=1, tries=2, prompt=False, **options):
    """Register a scenario."""

    def add(play):
        SCENARIOS.append(Scenario(name, play, partitions, tries, prompt, tuple(options.items())))
        return play

    return add


class Stage:
    """The environment of one scenario.

    :param airflow: a running :class:`Standalone`.
    :param service: the sandbox's memory; earlier scenarios have ended.
    :param campaign: reader of the campaign's records in witness and ledger.
    """

    def __init__(self, airflow, service, dag_id, campaign):
        self.airflow = airflow
        self.service = service
        self.dag_id = dag_id
        self.campaign = campaign
        self._before = self._taken()

    def _taken(self):
        return len(self.service.accepted)

    def trigger(self, run_id="first"):
        self.airflow.trigger(self.dag_id, run_id)
        return run_id

    def await_end(self, *run_ids):
        return [self.airflow.await_end(self.dag_id, run_id) for run_id in run_ids]

    def await_middle(self, share=0.25):
        """Wait until the service has accepted some of the campaign."""
        enough = self._before + self.campaign.people * share
        until(lambda: self._taken() >= enough, seconds=RUN_SECONDS, what="the send is under way")
        if self._taken() == self._before + self.campaign.people:
            raise RuntimeError("the send was over before anything befell it")

    def await_tries(self, run_id, state, tries=1):
        """Wait until the only task of a run is in a state, in a given attempt or a later one."""

        def there():
            (instance,) = self.airflow.instances(self.dag_id, run_id)
            return instance["state"] == state and instance["try_number"] >= tries

        until(there, seconds=RUN_SECONDS, what=f"the task is {state} in try {tries}")

    def senders(self):
        """Return the living processes that entered the campaign's ledger."""
        alive = {process.pid for process in self.airflow.processes()}
        return [pid for pid in self.campaign.pids() if pid in alive]

    def await_no_sender(self):
        until(lambda: not self.senders(), seconds=RUN_SECONDS, what="no process sends any more")


def _retried(stage, **fault):
    """Let a send meet a fault in the middle, until its retry runs."""
    run = stage.trigger()
    stage.await_middle()
    stage.service.set_faults([{"kind": "status", **fault, "persistent": True}])
    stage.await_tries(run, "running", tries=2)
    stage.service.set_faults([])
    stage.await_end(run)
    return [run]


@scenario("retry after an outage in mid-send")
def outage(stage):
    return _retried(stage, status=503, retry_after="0")


@scenario("clear after a refusal in mid-send")
def refusal(stage):
    run = stage.trigger()
    stage.await_middle()
    stage.service.set_faults([{"kind": "status", "status": 401, "persistent": True}])
    stage.await_end(run)
    stage.service.set_faults([])
    stage.airflow.clear(stage.dag_id, run)
    stage.await_end(run)
    return [run]


@scenario("retry where credit ran out in mid-send")
def credit(stage):
    return _retried(stage, status=403)


@scenario("clear after success")
def clear_after(stage):
    run = stage.trigger()
    stage.await_end(run)
    stage.airflow.clear(stage.dag_id, run)
    stage.await_end(run)
    return [run]


@scenario("clear while it runs")
def clear_running(stage):
    run = stage.trigger()
    stage.await_middle()
    stage.airflow.clear(stage.dag_id, run)
    stage.await_end(run)
    return [run]


@scenario("task process killed, retry")
def task_killed(stage):
    run = stage.trigger()
    stage.await_middle()
    (sender,) = stage.senders()
    stage.airflow.kill(psutil.Process(sender))
    stage.await_end(run)
    return [run]


@scenario("task process hangs past its deadline, goes on beside its retry, cleared", tries=3, prompt=True)
def task_hangs(stage):
    run = stage.trigger()
    stage.await_middle()
    (sender,) = stage.senders()
    with stage.airflow.frozen(sender):
        stage.await_end(run)
    stage.await_no_sender()
    stage.airflow.clear(stage.dag_id, run)
    stage.await_end(run)
    return [run]


@scenario("scheduler killed and started again", prompt=True)
def scheduler_killed(stage):
    stage.service.set_faults([{"kind": "delay", "seconds": SLOW_SECONDS, "persistent": True}])
    run = stage.trigger()
    stage.await_middle(0.1)
    stage.airflow.kill_scheduler()
    stage.airflow.start_scheduler()
    stage.await_end(run)
    stage.service.set_faults([])
    return [run]


@scenario("mapped tasks that overlap", partitions=4, tries=4)
def mapped(stage):
    run = stage.trigger()
    stage.await_end(run)
    return [run]


@scenario("two runs of one campaign")
def two_runs(stage):
    runs = [stage.trigger("one"), stage.trigger("two")]
    stage.await_end(*runs)
    return runs


@scenario("marked failed in mid-send, then cleared")
def marked(stage):
    run = stage.trigger()
    stage.await_middle()
    stage.airflow.mark(stage.dag_id, run, "send", "failed")
    stage.await_end(run)
    stage.airflow.clear(stage.dag_id, run)
    stage.await_end(run)
    return [run]


TAKEN_AND_LOST, LOST_FIRST = (2, 6, 11), (4, 9)
"""The requests whose response is lost, from 1: they were taken, or they were not and are posted again."""
BALANCE = 999_999
"""Credits of the account, more than a scenario costs.

In the other scenarios it is post-paid, with a balance of 1,000,000. A larger fall from there would be one that no
request explains, and nothing near it in time would be proved.
"""


@scenario("answers lost, closed by what the balance proves", tries=1, on_unknown="reconcile")
def reconcile(stage):
    fates = {**dict.fromkeys(TAKEN_AND_LOST, "drop_after"), **dict.fromkeys(LOST_FIRST, "drop_before")}
    stage.service.set_post_paid(False)
    stage.service.set_balance(BALANCE)
    stage.service.set_faults([{"kind": fates.get(number, "none")} for number in range(1, max(fates) + 1)])
    try:
        run = stage.trigger()
        (state,) = stage.await_end(run)
    finally:
        stage.service.set_post_paid(True)
    if state != "success":
        raise RuntimeError(f"the task that reconciles ended as {state}")
    return [run]
