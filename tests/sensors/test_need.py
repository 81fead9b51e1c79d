from __future__ import annotations

import json
import threading

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import DAG
from support.airflow import run_task, serialized

from airflow_provider_sms.sensors.balance import BalanceSensor

MODES = {
    "poke": {"mode": "poke", "deferrable": False},
    "reschedule": {"mode": "reschedule", "deferrable": False},
    "deferrable": {"deferrable": True},
}


@pytest.fixture
def source(tmp_path):
    people = pd.DataFrame({"destination": [str(27_820_000_000 + n) for n in range(120)], "name": ["Ann"] * 120})
    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    return str(path)


def wait(**arguments):
    return run_task(lambda: BalanceSensor(task_id="wait", **{"poke_interval": 0.05, "timeout": 20, **arguments}))


def looks(sandbox):
    return sum(request.operation == "balance" for request in sandbox.state.requests)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_it_waits_for_what_the_recipients_cost(sms_default, sandbox, source, mode):
    """A text of two parts to 120 people needs 240 credits: with one less the DAG is delayed."""
    sandbox.state.set_balance(239)
    ended = threading.Event()

    def top_up():
        while looks(sandbox) < 2 and not ended.wait(0.01):
            pass
        sandbox.state.set_balance(240)

    thread = threading.Thread(target=top_up)
    thread.start()
    try:
        ran = wait(source=source, message="Hi {name} " + "x" * 160, **mode)
    finally:
        ended.set()
        thread.join()
    assert (ran.state, ran.summary) == ("success", {"balance": 240.0, "post_paid": False})
    assert "120 messages cost about 240 credits" in ran.log


def test_prices_are_by_prefix(sms_default, sandbox, source):
    """As of the operator that is to send."""
    sandbox.state.set_balance(60)
    ran = wait(source=source, message="Hi", cost_per_part={"27": "0.5"})
    assert (ran.state, looks(sandbox)) == ("success", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": [{"destination": "27820000001"}], "message": "Hi {name{{ '!r' }}}"}, "has a conversion"),
        ({"source": [{"number": "27820000001"}], "message": "Hi"}, "'destination'"),
    ],
    ids=["no text", "no column"],
)
def test_a_need_that_cannot_be_told_fails_at_once(sms_default, sandbox, arguments, words):
    """The error names the argument, and nothing is waited for."""
    ran = wait(**arguments)
    assert (ran.state, looks(sandbox)) == ("failed", 0)
    assert words in ran.log


def test_an_error_of_a_source_is_told_without_its_words(sms_default, sandbox):
    """They may quote a row."""
    words = "no consent for 27829999999 (Thandi)"

    def rows():
        yield {"destination": "27820000001"}
        raise ValueError(words)

    ran = wait(source=rows(), message="Hi")
    assert ("ValueError (see the log above)" in ran.log, "Thandi" in ran.log, "7829999999" in ran.log) == (
        True,
        False,
        False,
    )


def test_recipients_are_kept_out_of_sight(sms_default, sandbox):
    """Rows in memory do not reach what Airflow stores and shows, nor the log."""
    ran = wait(source=[{"destination": "27829999999"}], message="Hi")
    assert ran.state == "success"
    assert ran.rendered["source"] == "list of 1 row"
    assert "27829999999" not in str(ran.rendered) + ran.log


@pytest.mark.parametrize(
    "rows",
    [["27829999999"], [{"destination": "27829999999"}], pd.DataFrame({"destination": ["27829999999"]})],
    ids=["numbers", "rows", "frame"],
)
def test_recipients_of_a_mapped_sensor_are_kept_out_of_sight(sms_default, sandbox, rows):
    """The serialised DAG holds no number that is written in partial(…), and each mapped task reads the rows."""

    def make():
        return BalanceSensor.partial(task_id="wait", source=rows, message="Hi").expand(cost_per_part=[1, 2])

    with DAG("d", schedule=None) as dag:
        make()
    assert "27829999999" not in json.dumps(serialized(dag), default=str)
    assert str(run_task(make, only=None).state) == "success"
