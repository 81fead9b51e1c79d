"""What befalls machines, links and services in mid-send: each scenario is a function, which disturbs a stage once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from support.machines import packages, versions
from support.machines.engine import CONCURRENCY
from support.machines.stage import CHUNK, OF_WORKER, Scenario, Stage

CUT_SECONDS = 60.0
OUT_SECONDS = 20.0
LOST_RESPONSES = 6
"""Responses that the service loses so that tasks ask: fewer than make a sender give up."""
RICH = 1_000_000
"""Credits of an account that has enough."""
AHEAD_SECONDS = 600
WINDOW_MINUTES = 2

SCENARIOS: list[Scenario] = []


def scenario(name, **details):
    """Register a scenario.

    :param details: of a :class:`~support.machines.stage.Scenario`.
    """

    def add(play):
        SCENARIOS.append(Scenario(name, play, **details))
        return play

    return add


@scenario("nothing: mapped tasks, over tables that overlap")
def nothing(_):
    pass


@scenario(
    "nothing: the example of mapped partitions as it stands, over tables that overlap",
    example=True,
    begins=Stage.busy,
    proves=Stage.require_several,
)
def example_sms_partitions(_):
    pass


@scenario("a worker is killed with its tasks", requests=OF_WORKER)
def worker_killed(stage):
    stage.worker.kill()


@scenario("a worker vanishes without a word", requests=OF_WORKER)
def worker_vanishes(stage):
    stage.worker.machine.cut()


QUEUED = {"engine": {"concurrency": 1}, "proves": Stage.require_begun_later}
"""One slot a worker, so that half the tasks wait in the queue at the disturbance."""


def _add_cuts():
    all_but = ("database", "pooler", "broker", "api")
    kinds = {
        "database": (("database", "pooler"), "PostgreSQL"),
        "broker": (("broker",), "the broker"),
        "api": (("api",), "the API server"),
        "all_but_messaging": (all_but, "all but the messaging service"),
        "messaging": (("messaging",), "only the messaging service,"),
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
        more = QUEUED if key == "broker" else {}
        scenario(f"a worker loses {name} for {CUT_SECONDS:.0f} s", requests=lost, **more)(for_a_while)
        # What the service answered lies on the worker's disk, where the ledger alone is out of reach.
        kept = key in ("database", "all_but_messaging")
        if key == "messaging":  # Airflow may give several attempts in a row to the worker that is cut off
            more = {"operator": lambda: "retries=9"}
        details = {"requests": OF_WORKER, "recovers": kept, **more}
        scenario(f"a worker loses {name} for good", **details)(for_good)


_add_cuts()


def _deliver_again(stage):
    if not stage.services.broker.deliver_again():
        raise RuntimeError("no task was delivered again")


ROOMY = {"concurrency": 2 * CONCURRENCY}
"""Twice as many slots as tasks: with fewer, a copy waits for a slot until the task that it is a copy of has ended."""


@scenario(
    "visibility_timeout is shorter than a send, so Celery delivers tasks again that still run",
    engine=ROOMY,
    settings={
        f"AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__{name}": value
        # Seconds; and how often a worker looks, which is every 100 s by default.
        for name, value in (
            ("VISIBILITY_TIMEOUT", "5"),
            ("UNACKED_RESTORE_INTERVAL", "1"),
            ("UNACKED_RESTORE_THROTTLE", "1"),
        )
    },
    begins=Stage.is_sending,
    proves=Stage.require_copies,
)
def visibility_timeout(_):
    pass


@scenario("workers are restarted one after the other, by warm shutdowns")
def rolling_restart(stage):
    for worker in stage.engine.workers.values():
        worker.stop()
        worker.start()
        worker.await_ready()


@scenario(
    "the broker is restarted, and delivers tasks again that still run",
    engine=ROOMY,
    begins=Stage.is_sending,
    proves=Stage.require_copies,
)
def broker_restarted(stage):
    stage.services.broker.kill()
    stage.services.broker.start()
    _deliver_again(stage)


@scenario(
    f"the scheduler is killed, and another started {OUT_SECONDS:.0f} s later",
    engine=QUEUED["engine"],
    proves=Stage.require_adopted,
)
def scheduler_killed(stage):
    stage.engine.kill("scheduler")
    stage.later(OUT_SECONDS, lambda: stage.engine.start("scheduler"))


def _add_scheduler(stage):
    stage.engine.start("scheduler")
    stage.engine.await_schedulers(2)


@scenario("two schedulers", before=_add_scheduler)
def two_schedulers(stage):
    stage.engine.await_schedulers(2)


@scenario("PostgreSQL is restarted at once", proves=Stage.require_in_flight)
def database_restarted(stage):
    stage.services.database.stop()
    stage.services.database.start()


@scenario(f"PostgreSQL is stopped for {CUT_SECONDS:.0f} s")
def database_stopped(stage):
    stage.services.database.stop()
    stage.later(CUT_SECONDS, stage.services.database.start)


@scenario(
    f"the clock of a worker is {AHEAD_SECONDS // 60} minutes ahead",
    first_worker=lambda _: packages.clock_ahead(AHEAD_SECONDS),
)
def clock_ahead(_):
    pass


@scenario(
    "a worker still has the version before",
    first_worker=versions.before,
    proves=lambda stage: versions.require_used(stage.engine.folder),
)
def version_before(_):
    pass


def _lose_responses(stage):
    stage.service.set_faults([{"kind": "drop_after", "times": LOST_RESPONSES}])


@scenario(
    "tasks that asked a person go on on other workers",
    before=_lose_responses,
    begins=Stage.is_waiting,
    operator=lambda: "on_unknown='ask'",
)
def ask_elsewhere(stage):
    stage.worker.kill()
    stage.answer("Treat as sent")
    stage.require_moved()


def _give_half_the_credit(stage):
    stage.service.set_post_paid(False)
    stage.service.set_balance(stage.campaign.people // (2 * CHUNK) * CHUNK)


@scenario(
    "tasks that waited for credit go on on other workers",
    before=_give_half_the_credit,
    begins=Stage.is_waiting,
    operator=lambda: "wait_for_credit=True, credit_interval=2.0",
)
def credit_elsewhere(stage):
    stage.worker.kill()
    stage.service.set_balance(RICH)
    stage.await_run()
    stage.service.set_post_paid(True)
    stage.require_moved()


def _opens_soon():
    now = datetime.now(timezone.utc)
    start, end = now + timedelta(minutes=WINDOW_MINUTES), now - timedelta(minutes=1)
    return f"send_window=SendWindow('{start:%H:%M}', '{end:%H:%M}', 'UTC')"


@scenario(
    "tasks that waited for their hours go on on other workers",
    begins=Stage.is_waiting,
    operator=_opens_soon,
    seconds=None,
)
def window_elsewhere(stage):
    stage.worker.kill()
    stage.await_run()
    stage.require_moved()


POOLED = {"pooler": True}


@scenario("pgbouncer, in transaction mode, is restarted", engine=POOLED, proves=Stage.require_in_flight)
def pooler_restarted(stage):
    stage.services.pooler.stop()
    stage.services.pooler.start()


@scenario(
    "PostgreSQL fails over to a synchronous standby",
    engine={"standby": "synchronous"},
    proves=Stage.require_in_flight,
)
def fails_over_synchronous(stage):
    stage.services.fail_over()


@scenario(
    "PostgreSQL fails over to an asynchronous standby",
    engine={"standby": "asynchronous"},
    proves=Stage.require_in_flight,
)
def fails_over_asynchronous(stage):
    stage.services.fail_over()
