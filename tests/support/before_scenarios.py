"""Interruptions of a send before its last text: each scenario is a function that yields once its task waits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.before_sending import RUN_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable

PEOPLE = 1000
PLENTY = 1_000_000
LARGE, SUPPRESSED_EACH = 100_000, 50
"""Rows of the large table, and the distance between opted-out numbers in it."""
IN_FLIGHT = 4
CLOSED = timedelta(seconds=15)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Scenario:
    """One interruption of a send before its last text.

    :param play: a generator with one step before the wait, and one after it.
    :param balance: initial balance of its service.
    :param options: returns further arguments of the operator, by the stage.
    """

    play: Callable[[Any], Any]
    people: int
    balance: int
    options: Callable[[Any], dict[str, Any]]

    @property
    def dag_id(self):
        return self.play.__name__


SCENARIOS: list[Scenario] = []


def scenario(*, people=PEOPLE, balance=PLENTY, options=None, **same):
    """Register a scenario."""

    def add(play):
        SCENARIOS.append(Scenario(play, people, balance, options or (lambda _: dict(same))))
        return play

    return add


# The estimate is half of the cost, so the balance runs out in mid-send.
WAIT_FOR_CREDIT = {"on_low_balance": "wait", "cost_per_part": 0.5}


@scenario(balance=650, concurrency=1, **WAIT_FOR_CREDIT)
def credit_refused(stage):
    """After six requests the balance is too low, and the service refuses the seventh."""
    stage.trigger()
    stage.await_wait()
    yield
    stage.service.set_balance(PLENTY)
    stage.await_end()
    stage.seen["responses"] = stage.xcom("responses")


@scenario(balance=500, concurrency=2, chunk_size=10, **WAIT_FOR_CREDIT)
def credit_killed(stage):
    """The process that resumes after the wait is killed."""
    stage.trigger()
    stage.await_wait()
    yield
    stage.be_late(0.3)
    stage.service.set_balance(PLENTY)
    stage.await_taken(stage.waited[0][1] + 50)
    stage.airflow.kill(stage.pid())
    stage.seen["killed"] = stage.taken()
    stage.service.set_faults([])
    stage.await_end()


def hours_of_file(stage):
    return {"hours_of": str(stage.folder / "hours.txt"), "chunk_size": 20, "concurrency": 2}


@scenario(options=hours_of_file)
def hours_end(stage):
    """The send window closes in mid-send, and opens again soon."""
    stage.be_late(0.3)
    stage.trigger()
    stage.await_taken(PEOPLE // 5)
    opening = datetime.now(timezone.utc) + CLOSED
    new = stage.folder / "hours.new"
    new.write_text(opening.isoformat())
    os.replace(new, stage.folder / "hours.txt")  # noqa: PTH105  # whole, or not there
    stage.await_wait()
    stage.service.set_faults([])
    yield
    stage.await_end()
    stage.seen["opening"] = opening


def closed_now(stage):
    opening = (datetime.now(timezone.utc) + 3 * HOUR).replace(second=0, microsecond=0)
    stage.seen["opening"] = opening
    return {"hours": {"start": f"{opening:%H:%M}", "end": f"{opening + HOUR:%H:%M}", "timezone": "UTC"}}


@scenario(people=10, options=closed_now)
def hours_closed(stage):
    """The send window opens in some hours, and a person does not wait for it."""
    stage.trigger()
    stage.await_wait()
    yield
    stage.seen["later"] = stage.instance()["state"]
    stage.airflow.mark(stage.dag_id, "once", "send", "failed")
    stage.await_end()


@scenario(chunk_size=5, concurrency=IN_FLIGHT, max_requests_per_second=40)
def paused(stage):
    """One command pauses the campaign in mid-send, and another one resumes it."""
    stage.be_late(0.8)
    stage.trigger()
    stage.await_taken(50)
    stage.seen["said"] = stage.command("pause").stderr
    stage.seen["at_once"] = len(stage.requests())
    yield
    until(lambda: not stage.under_way(), seconds=RUN_SECONDS, what="nothing is under way")
    stage.seen["under_way_ended"] = len(stage.requests())
    stage.seen["status"] = stage.status()
    stage.seen["later"] = len(stage.requests()), stage.instance()["state"]
    stage.service.set_faults([])
    stage.command("resume")
    stage.await_end()


def opted_out(stage):
    path = stage.folder / "opted_out.parquet"
    stage.seen["suppressed"] = stage.people[::SUPPRESSED_EACH]
    # Numbers as people write them, and not in the table's order.
    written = [f"+{number[:2]} {number[2:4]} {number[4:]}" for number in reversed(stage.seen["suppressed"])]
    pq.write_table(pa.table({"destination": written}), path)
    stage.seen["report"] = stage.folder / "report.parquet"
    return {"suppress": str(path), "report": str(stage.seen["report"])}


@scenario(people=LARGE, options=opted_out)
def large(stage):
    """A large table, in which some people have opted out."""
    stage.trigger()
    yield
    stage.await_end()
