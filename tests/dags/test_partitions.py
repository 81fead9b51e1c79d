from __future__ import annotations

import re
from collections import Counter

import pendulum
import pytest
from airflow.providers.common.compat.sdk import ParamValidationError
from support import tables
from support.postgres import connection_of

DAG_ID, TASK_ID = "example_sms_partitions", "text_partition"


@pytest.fixture
def run_partitions(run_example, postgres_url, monkeypatch):
    """Run the example, with a ledger of this test's own on a server."""
    monkeypatch.setenv("AIRFLOW_CONN_SMS_LEDGER", connection_of(postgres_url))
    return lambda **params: run_example(DAG_ID, pendulum.now("UTC"), **params)


def write(path, numbers):
    destinations = [f"082{number:07}" for number in numbers]
    names = [f"Name{number}" for number in numbers]
    amounts, cities = [99.5] * len(names), ["Durban"] * len(names)
    tables.write(path, destination=destinations, first_name=names, amount=amounts, city=cities)


def counts(ran, *names):
    return [tuple(summary[name] for name in names) for summary in ran.mapped[TASK_ID]["return_value"]]


def test_partitions_that_overlap_text_each_person_once(run_partitions, sandbox, tmp_path):
    """One task for each partition, one campaign for all: who is in two of them is texted by one."""
    for part in range(3):
        write(tmp_path / f"part-{part}.parquet", range(part * 200, part * 200 + 300))
    ran = run_partitions(directory=str(tmp_path), campaign="spring")
    assert ran.state == "success"
    # Which of two neighbours comes first is Airflow's affair.
    rows, accepted, already_sent = zip(*counts(ran, "rows", "accepted", "already_sent"), strict=True)
    assert (rows, sum(accepted), sum(already_sent)) == ((300, 300, 300), 700, 200)
    assert {"spring"} == {summary["campaign"] for summary in ran.mapped[TASK_ID]["return_value"]}
    texted = Counter(message.destination for message in sandbox.state.accepted)
    assert (700, {1}) == (len(texted), set(texted.values()))


@pytest.mark.slow
def test_files_and_folders_are_partitions_and_notes_are_not(run_partitions, sandbox, tmp_path):
    """What others leave beside them is none; a new file in the same campaign texts only people who are new.

    A directory that is empty, perhaps not the right one, fails the run; it is not passed over.
    """
    empty = run_partitions(directory=str(tmp_path), campaign="spring")
    assert (empty.state, empty.mapped, sandbox.state.accepted) == ("failed", {}, [])
    write(tmp_path / "b.parquet", [1])
    write(tmp_path / "country=ZA" / "part-0.parquet", [2])
    write(tmp_path / "_temporary" / "part-0.parquet", [3])
    write(tmp_path / ".c.parquet", [4])
    for name in ("_SUCCESS", "notes.csv"):
        (tmp_path / name).touch()
    ran = run_partitions(directory=str(tmp_path), campaign="spring")
    listed = ran.xcoms["list_partitions"]["return_value"]
    assert [path.rsplit("/", 1)[-1] for path in listed] == ["b.parquet", "country=ZA"]
    assert counts(ran, "accepted") == [(1,), (1,)]
    write(tmp_path / "a.parquet", [1, 5])
    ran = run_partitions(directory=str(tmp_path), campaign="spring")
    assert counts(ran, "accepted", "already_sent") == [(1, 1), (0, 1), (0, 1)]
    assert {1} == set(Counter(sandbox.state.accepted_messages).values())


def test_the_campaign_must_be_named(run_partitions, sandbox):
    """A run that names no campaign does not begin."""
    # The latter in 3.2 alone.
    with pytest.raises((ParamValidationError, ValueError), match="param campaign"):
        run_partitions()
    assert sandbox.state.accepted == []


def test_the_pool_and_the_rate_are_as_the_example_says(bag):
    """What the words say of the pool and its rate is what the task has."""
    dag = bag.dags[DAG_ID]
    task = dag.get_task(TASK_ID)
    rate, slots, total = task.partial_kwargs["max_requests_per_second"], 4, 20
    words = re.sub(r"\s+", " ", dag.doc_md)
    assert f"`airflow pools set {task.pool} {slots} " in words
    assert f"{rate} requests a second" in words
    assert f"{slots} slots make {total} a second" in words
    assert total == slots * rate
