from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowSkipException, Asset, task
from support.airflow import as_shown, run_task, serialized

from airflow_provider_sms.decorators.bulk_sms import bulk_sms_task
from airflow_provider_sms.reporting.summary import COUNTS

ANN, BEN = {"destination": "27820000001", "first_name": "Annabel"}, {"destination": "27820000002", "first_name": "Ben"}


def counts(ran):
    summary = ran.summary
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


def returning(value):
    return lambda: value


@pytest.fixture
def text(sms_default, ledger_path):
    """Run a function as a task that texts, on a ledger of its own; what upstream functions return, it receives."""

    def text(recipients, *upstream, message="Hi {first_name}", retries=0, **arguments):
        def make():
            given = [
                task(task_id=f"upstream_{number}", show_return_value_in_logs=False)(function)()
                for number, function in enumerate(upstream)
            ]
            return task.bulk_sms(task_id="send", message=message, **arguments)(recipients)(*given).operator

        return run_task(make, retries=retries)

    return text


def test_a_function_may_yield_the_recipients(text, witnessed):
    """Each attempt calls the function anew, so what can be read once is read by each."""

    def people():
        yield ANN
        yield BEN

    def reader():
        return pa.Table.from_pylist([ANN, BEN]).to_reader()

    assert counts(text(people, campaign="one")) == {"accepted": 2}
    assert counts(text(people, campaign="one")) == counts(text(reader, campaign="one")) == {"already_sent": 2}
    assert set(witnessed().values()) == {1}


def test_the_task_returns_the_summary(text, sandbox):
    """One XCom with the operator's summary, though a dict is said to be returned; its templated fields are rendered."""

    def recipients() -> dict:
        return [ANN, BEN]

    ran = text(recipients, dry_run="{{ task.task_id != 'send' }}")
    dag_id = ran.summary["campaign"].partition("/")[0]
    assert set(ran.xcoms) == {"return_value", "responses", "plan"}
    assert (counts(ran), ran.summary["campaign"]) == ({"accepted": 2}, f"{dag_id}/send/{ran.run_id}")
    ran = text(recipients, dry_run="{{ task.task_id == 'send' }}")
    assert (ran.state, counts(ran), len(sandbox.state.accepted)) == ("success", {"not_sent": 2}, 2)


def test_a_function_receives_what_upstream_tasks_return_and_airflow_shows_none_of_it(text, witnessed):
    """A DataFrame, dicts and a text arrive as they are; in rendered fields and the log is their kind alone."""

    def recipients(frame, rows, number, *, ds=None, ti):
        assert (type(frame), type(rows), type(number)) == (pd.DataFrame, list, str)
        assert ti.task_id == "send"
        return [*frame.to_dict("records"), *rows, {"destination": number, "first_name": "Cy{{ ds }}"}]

    ran = text(recipients, returning(pd.DataFrame([ANN])), returning([BEN]), returning("27820000003"))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 3})
    assert as_shown(ran.rendered["op_args"]) == ["DataFrame", "list of 1 row", "str"]
    assert ("27820000003", "Hi Cy{{ ds }}") in witnessed()
    shown = f"{ran.log}{ran.rendered}{ran.summary}"
    assert [word for word in ("2782000000", "Annabel", "Ben") if word in shown] == []


def test_templates_among_the_arguments_are_rendered(text):
    """Texts, and what is nested in literals beside other tasks' results, reach the function rendered."""
    seen = []

    def recipients(task_id, nested, *, number=5):
        seen.append((task_id, nested, number))
        return [ANN]

    def make():
        rows = task(task_id="rows", show_return_value_in_logs=False)(returning([ANN]))()
        arguments = ("{{ task.task_id }}", {"of": ["{{ 1 + 1 }}", rows], "is": None})
        return bulk_sms_task(task_id="send", message="Hi")(recipients)(*arguments).operator

    ran = run_task(make)
    assert seen == [("send", {"of": ["2", [ANN]], "is": None}, 5)]
    assert as_shown(ran.rendered["op_args"]) == ["str", "dict"]


def test_mapped_copies_are_redacted_each(sms_default, ledger_path, witnessed):
    """Mapped over other tasks' results, each copy gets its own, as it is, and Airflow's database shows none of them."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def make():
        def result(task_id, value):
            return task(task_id=task_id, show_return_value_in_logs=False)(returning(value))()

        row = result("rows", [ANN, {**BEN, "first_name": "Ben{{ ds }}"}])
        number = result("numbers", ["27820000003", "27820000004"])
        everybody = result("everybody", [{"destination": "27820000005", "first_name": "Di"}])

        @task.bulk_sms(message="Hi {first_name}")
        def send(row, number, word, rows):
            assert word == "send"
            return [row, *rows, {"destination": number, "first_name": "Cy"}]

        return send.partial(word="{{ task.task_id }}", rows=everybody).expand(row=row, number=number).operator

    run = run_task(make, only=None)
    with create_session() as session:
        where = select(RenderedTaskInstanceFields).filter_by(run_id=run.run_id, task_id="send")
        rendered = [row.rendered_fields for row in session.scalars(where)]
    assert (str(run.state), sorted(witnessed().values())) == ("success", [1] * 5)
    assert ("27820000002", "Hi Ben{{ ds }}") in witnessed()
    hidden = {"row": "dict", "number": "str", "word": "str", "rows": "list of 1 row"}
    assert [as_shown(fields["op_kwargs"]) for fields in rendered] == [hidden] * 4


def test_rows_among_the_arguments_are_not_copied_into_the_dag(sms_default, ledger_path, witnessed):
    """The serialised DAG holds no number, nor those that mapped tasks suppress; the tasks depend on each other."""

    def make():
        send = task.bulk_sms(task_id="copies", message="Hi", suppress=[ANN["destination"]])(lambda copy: [ANN, BEN])
        return send.expand(copy=[1, 2]).operator

    with DAG("d", schedule=None) as dag:
        upstream = task(task_id="first")(lambda: 1)()
        send = bulk_sms_task(task_id="send", message="Hi")(lambda *given, **named: [*given, named])
        send([ANN], pd.DataFrame([ANN]), "27820000001", upstream, row=ANN, more=[upstream])
        make()
    assert "2782" not in json.dumps(serialized(dag), default=str)
    assert dag.get_task("send").upstream_task_ids == {"first"}
    run = run_task(make, only=None)
    assert (str(run.state), witnessed()) == ("success", {("27820000002", "Hi"): 1})


def test_an_asset_among_the_arguments_is_an_inlet(sms_default, ledger_path):
    """As with every decorated task: the function gets the asset, and the task is known to read it."""
    asset, tasks = Asset("x-crm://members"), []

    def recipients(members, *, task):
        tasks.append(task)
        return [{**ANN, "first_name": members.uri}]

    ran = run_task(lambda: bulk_sms_task(task_id="send", message="Hi")(recipients)(asset).operator)
    assert (ran.state, [task.inlets for task in tasks]) == ("success", [[asset]])


def test_a_retry_calls_the_function_again_and_sends_the_rest(text, sandbox, witnessed, ledger_path):
    """Each try is in the ledger before it asks the function, which may fail: else the next one would be refused."""
    sandbox.state.set_balance(200)
    seen, number = [], "27820000009"

    def recipients():
        with closing(sqlite3.connect(ledger_path)) as ledger:
            seen.append([row[0] for row in ledger.execute("SELECT try_number FROM sms_attempt ORDER BY id")])
        if len(seen) == 1:
            raise ValueError(f"{number} is not in the book")
        return [{"destination": str(27_820_000_000 + n), "first_name": "Ann"} for n in range(500)]

    def top_up(context):
        sandbox.state.set_balance(200 if len(seen) == 1 else 10_000)

    ran = text(recipients, retries=2, concurrency=1, on_retry_callback=top_up)
    assert (ran.state, ran.tries, seen) == ("success", 3, [[1], [1, 2], [1, 2, 3]])
    assert counts(ran) == {"already_sent": 200, "accepted": 300}
    assert set(witnessed().values()) == {1}
    # Its words may quote a row: the log has its kind, and the line.
    assert ("ValueError" in ran.log, "recipients" in ran.log, number in ran.log) == (True, True, False)


def test_a_function_may_skip_the_task(text, sandbox):
    """Airflow's own exceptions go through as they are."""

    def recipients():
        raise AirflowSkipException("nobody to text")

    ran = text(recipients)
    assert (ran.state, ran.xcoms, sandbox.state.accepted) == ("skipped", {}, [])


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (None, "recipients cannot be read from None: pass a path or a URI"),
        (27820000001, "recipients cannot be read from int: pass"),
        ("[{'destination': '27820000001'}]", "the text of rows, which cannot be read back"),
        ({"27820000001"}, "recipients cannot be read from set: pass"),
    ],
    ids=str,
)
def test_a_function_that_returns_something_else_is_named(text, sandbox, returned, what):
    """It fails at once, in words that say what to return, shows nothing of what it was, and sends nothing."""

    def find_people():
        return returned

    ran = text(find_people, retries=2)
    assert (ran.state, ran.tries, ran.xcoms, sandbox.state.requests) == ("failed", 1, {}, [])
    assert what in ran.log
    assert "27820000001" not in ran.log


def test_the_report_is_not_written_over_what_the_function_returns(text, tmp_path, sandbox):
    """Where the source is known only when the function has run, the report is still kept away from it."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.Table.from_pylist([ANN]), path)
    before = path.read_bytes()
    ran = text(lambda: str(path), report=str(path))
    assert (ran.state, "would be written over the source" in ran.log) == ("failed", True)
    assert (path.read_bytes(), sandbox.state.requests) == (before, [])


@pytest.mark.parametrize(
    ("argument", "says"), [("source", "the function returns it"), ("multiple_outputs", "the task returns one summary")]
)
def test_arguments_that_cannot_be_are_refused_at_once(argument, says):
    """The DAG does not load, in words that say why."""
    with pytest.raises(TypeError, match=says):
        bulk_sms_task(message="Hi", **{argument: True})
