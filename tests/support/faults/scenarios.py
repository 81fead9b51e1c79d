"""Failures of a send in Airflow: each scenario is a function with its own campaign and people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.faults.rest import RUN_SECONDS, until

SLOW_SECONDS = 1.2
"""Seconds of each response in scenarios whose send must outlast the detection of a dead scheduler."""


@dataclass(frozen=True)
class Scenario:
    """One failure of a send.

    :param play: causes the failure on a :class:`Stage`; the summaries of all its runs count.
    :param partitions: how many tables the people are cut into, each with half of the next; 1 for a task that is not
        mapped.
    :param tries: minimum number of attempts in the ledger; with fewer, the failure did not happen.
    :param prompt: True for an Airflow that soon takes a silent scheduler or task for dead, as a busy one may be, too.
    :param options: further arguments of the operator.
    """

    name: str
    play: Any
    partitions: int = 1
    tries: int = 2
    prompt: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def dag_id(self):
        return self.play.__name__


SCENARIOS = []


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
        self.runs = []
        self._before = self._taken()

    def _taken(self):
        return len(self.service.accepted)

    def trigger(self, run_id="first"):
        """Start a run; what is done next is done to the last one."""
        self.airflow.trigger(self.dag_id, run_id)
        self.runs.append(run_id)

    def await_end(self):
        """Wait until every run has ended, and return their states."""
        return [self.airflow.await_end(self.dag_id, run_id) for run_id in self.runs]

    def clear(self):
        """Clear the run, and wait until it has ended."""
        self.airflow.clear(self.dag_id, self.runs[-1])
        self.await_end()

    def await_middle(self, share=0.25):
        """Wait until the service has accepted some of the campaign."""
        enough = self._before + self.campaign.people * share
        until(lambda: self._taken() >= enough, seconds=RUN_SECONDS, what="the send is under way")
        if self._taken() == self._before + self.campaign.people:
            raise RuntimeError("the send was over before anything befell it")

    def await_retry(self):
        """Wait until the only task of the run runs again."""

        def retries():
            (instance,) = self.airflow.instances(self.dag_id, self.runs[-1])
            return instance["state"] == "running" and instance["try_number"] > 1

        until(retries, seconds=RUN_SECONDS, what="the task runs again")

    def senders(self):
        """Return the living processes that entered the campaign's ledger."""
        entered = self.campaign.pids()
        return [process for process in self.airflow.processes() if process.pid in entered]

    def await_no_sender(self):
        until(lambda: not self.senders(), seconds=RUN_SECONDS, what="no process sends any more")


def _retried(stage, **fault):
    """Let a send meet a fault in the middle, until its retry runs."""
    stage.trigger()
    stage.await_middle()
    stage.service.set_faults([{"kind": "status", **fault, "persistent": True}])
    stage.await_retry()
    stage.service.set_faults([])
    stage.await_end()


@scenario("retry after an outage in mid-send")
def outage(stage):
    _retried(stage, status=503, retry_after="0")


@scenario("clear after a refusal in mid-send")
def refusal(stage):
    stage.trigger()
    stage.await_middle()
    stage.service.set_faults([{"kind": "status", "status": 401, "persistent": True}])
    stage.await_end()
    stage.service.set_faults([])
    stage.clear()


@scenario("retry where credit ran out in mid-send")
def credit(stage):
    _retried(stage, status=403)


@scenario("clear after success")
def clear_after(stage):
    stage.trigger()
    stage.await_end()
    stage.clear()


@scenario("clear while it runs")
def clear_running(stage):
    stage.trigger()
    stage.await_middle()
    stage.clear()


@scenario("task process killed, retry")
def task_killed(stage):
    stage.trigger()
    stage.await_middle()
    (sender,) = stage.senders()
    stage.airflow.kill(sender)
    stage.await_end()


@scenario("task process hangs past its deadline, goes on beside its retry, cleared", tries=3, prompt=True)
def task_hangs(stage):
    stage.trigger()
    stage.await_middle()
    (sender,) = stage.senders()
    with stage.airflow.frozen(sender):
        stage.await_end()
    stage.await_no_sender()
    stage.clear()


@scenario("scheduler killed and started again", prompt=True)
def scheduler_killed(stage):
    stage.service.set_faults([{"kind": "delay", "seconds": SLOW_SECONDS, "persistent": True}])
    stage.trigger()
    stage.await_middle(0.1)
    stage.airflow.replace("scheduler", whole=False)
    stage.await_end()
    stage.service.set_faults([])


@scenario("mapped tasks that overlap", partitions=4, tries=4)
def mapped(stage):
    stage.trigger()
    stage.await_end()


@scenario("two runs of one campaign")
def two_runs(stage):
    stage.trigger("one")
    stage.trigger("two")
    stage.await_end()


@scenario("marked failed in mid-send, then cleared")
def marked(stage):
    stage.trigger()
    stage.await_middle()
    stage.airflow.mark(stage.dag_id, stage.runs[-1], "send", "failed")
    stage.await_end()
    stage.clear()


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
    stage.service.post_paid = False
    stage.service.set_balance(BALANCE)
    stage.service.set_faults([{"kind": fates.get(number, "none")} for number in range(1, max(fates) + 1)])
    try:
        stage.trigger()
        (state,) = stage.await_end()
    finally:
        stage.service.post_paid = True
    if state != "success":
        raise RuntimeError(f"the task that reconciles ended as {state}")
