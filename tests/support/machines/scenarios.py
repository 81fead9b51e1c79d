"""What befalls machines, links and services in mid-send: each scenario is a function, which disturbs a stage once."""

from __future__ import annotations

from support.machines import packages
from support.machines.engine import CONCURRENCY
from support.machines.stage import CHUNK, OF_WORKER, Scenario, Stage

CUT_SECONDS = 60.0
LONG_CUT_SECONDS = 200.0
OUT_SECONDS = 20.0
RICH = 1_000_000
"""Credits of an account that has enough."""
AHEAD_SECONDS = 600

SCENARIOS: list[Scenario] = []


def scenario(name, **details):
    """Register a scenario.

    :param details: of a :class:`~support.machines.stage.Scenario`.
    """

    def add(play):
        SCENARIOS.append(Scenario(name, play, **details))
        return play

    return add


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


# What was answered within the ledger's patience is recorded, and whoever waits for it fails retryably at most: with the
# patience that is the default, and retries that last as long.
@scenario(f"a worker loses PostgreSQL for {CUT_SECONDS:.0f} s", operator=lambda: "retry_delay=timedelta(seconds=30)")
def loses_database_60(stage):
    stage.cut_for(CUT_SECONDS, "database", "pooler")


@scenario(
    f"a worker loses PostgreSQL for {LONG_CUT_SECONDS:.0f} s",
    seconds=None,
    proves=Stage.require_in_flight,
    settings={"AIRFLOW__SMS__LEDGER_PATIENCE": "300"},
    operator=lambda: "retry_delay=timedelta(seconds=120)",
)
def loses_database_200(stage):
    stage.cut_for(LONG_CUT_SECONDS, "database", "pooler")


@scenario("a worker loses PostgreSQL for good", requests=OF_WORKER)
def loses_database(stage):
    stage.worker.machine.cut("database", "pooler")


@scenario("a worker loses the broker for good", **QUEUED)
def loses_broker(stage):
    stage.worker.machine.cut("broker")


@scenario("a worker loses the API server for good", requests=OF_WORKER)
def loses_api(stage):
    stage.worker.machine.cut("api")


@scenario("a worker loses all but the messaging service for good", requests=OF_WORKER)
def loses_all_but_messaging(stage):
    stage.worker.machine.cut("database", "pooler", "broker", "api")


# Whether the service took a request whose response was cut off, nobody can know.
@scenario(f"a worker loses only the messaging service, for {CUT_SECONDS:.0f} s", requests=OF_WORKER)
def loses_messaging_60(stage):
    stage.cut_for(CUT_SECONDS, "messaging")


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
    f"the scheduler is killed, and another started {OUT_SECONDS:.0f} s later",
    engine=QUEUED["engine"],
    proves=Stage.require_adopted,
)
def scheduler_killed(stage):
    stage.engine.kill("scheduler")
    stage.later(OUT_SECONDS, lambda: stage.engine.start("scheduler"))


@scenario(f"PostgreSQL is stopped for {CUT_SECONDS:.0f} s")
def database_stopped(stage):
    stage.services.database.stop()
    stage.later(CUT_SECONDS, stage.services.database.start)


@scenario("PostgreSQL is restarted", proves=Stage.require_first_tries)
def database_restarted(stage):
    stage.services.database.stop()
    stage.services.database.start()


@scenario(
    f"the clock of a worker is {AHEAD_SECONDS // 60} minutes ahead",
    first_worker=lambda _: packages.clock_ahead(AHEAD_SECONDS),
)
def clock_ahead(_):
    pass


def _give_half_the_credit(stage):
    stage.service.set_post_paid(False)
    stage.service.set_balance(stage.campaign.people // (2 * CHUNK) * CHUNK)


@scenario(
    "tasks that waited for credit go on on other workers",
    before=_give_half_the_credit,
    begins=Stage.is_waiting,
    operator=lambda: 'on_low_balance="wait"',
)
def credit_elsewhere(stage):
    stage.worker.kill()
    stage.service.set_balance(RICH)
    stage.await_run()
    stage.service.set_post_paid(True)
    stage.require_moved()


@scenario("pgbouncer, in transaction mode, is restarted", engine={"pooler": True}, proves=Stage.require_in_flight)
def pooler_restarted(stage):
    stage.services.pooler.stop()
    stage.services.pooler.start()


@scenario(
    "PostgreSQL fails over to a synchronous standby",
    engine={"standby": True},
    proves=Stage.require_in_flight,
)
def fails_over(stage):
    stage.services.fail_over()
