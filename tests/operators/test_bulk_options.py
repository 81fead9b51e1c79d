from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.common.compat.sdk import task as airflow_task

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator, PurgeLedgerOperator, SqlSource
from airflow_provider_sms.sensors.balance import BalanceSensor

PASS = (
    "pass a path or a URI of files, an asset, a list of these, a SqlSource, a DataFrame, a pyarrow Table or another "
    "object with Arrow's C stream interface, a list or an iterator of dicts, or a list of numbers"
)
NO_SOURCE = "recipients cannot be read from"


def bulk(**arguments):
    return BulkSmsOperator(**{"task_id": "t", "source": "s", "message": "m", **arguments})


REFUSED = [
    ({"on_unknown": "retry"}, "on_unknown must be one of fail, reconcile, resend, not the text 'retry'"),
    ({"send_options": "SenderId"}, "send_options must be a dict"),
    ({"send_options": {"Big": 2**70}}, "send_options cannot be written as JSON: Integer exceeds 64-bit range"),
    ({"campaign": "sale\x1fspring"}, "campaign has a control character"),
    ({"on_invalid": "drop"}, "on_invalid must be 'fail' or 'skip', not the text 'drop'"),
    ({"chunk_size": 101}, "chunk_size must be a whole number, 1 to 100, not 101"),
    ({"chunk_size": "100"}, "chunk_size must be a whole number, 1 to 100, not the text '100'"),
    ({"concurrency": 0}, "concurrency must be a whole number, 1 to 1000, not 0"),
    ({"limits": {"max_parts": 0}}, "limits: max_parts must be a whole number, at least 1"),
    ({"max_requests_per_second": 0}, "max_requests_per_second must be a number above 0"),
    ({"dry_run": "maybe"}, "dry_run must be true or false, not the text 'maybe'"),
    ({"limits": {"max_error_rate": 2}}, "limits: max_error_rate must be a share"),
    ({"limits": {"max_invalid": 5}}, "limits: max_invalid needs on_invalid='skip'"),
    ({"limits": {"max_invalid": "{{ params.share }}"}}, "limits: max_invalid needs on_invalid='skip'"),
    ({"report": " "}, "report must be the path or URI"),
    ({"report": "r.csv"}, "report is written as Parquet, so its name may not end with .csv: use a name that ends"),
    ({"on_low_balance": True}, "on_low_balance must be 'send', 'fail' or 'wait', not True"),
    ({"approved_plan": "0123456789ab-01234567-1-1-0"}, "approved_plan needs campaign"),
    ({"approved_plan": "5", "campaign": "c"}, "approved_plan must be the id of a plan"),
    ({"content_column": "text"}, "exactly one of message and content_column"),
    ({"content_column": "text", "message": "{{ params.text }}"}, "exactly one of message and content_column"),
    ({"message": None}, "exactly one of message and content_column"),
    ({"message": "Hi {first_name"}, "message is not a template"),
    ({"message": " "}, "message is empty"),
    ({"send_window": "08:00-20:00"}, "send_window must be a SendWindow, or None for any hours, not the text"),
    ({"message": "None"}, "message is 'None'"),
    ({"message": None, "content_column": 5}, "content_column must be the name of a column"),
    ({"destination_column": None}, "destination_column must be the name of a column"),
    ({"destination_column": "{{ params.column }}"}, "destination_column takes no template"),
    ({"key_columns": "order"}, r"key_columns is a list of column names: write \['order'\]"),
    ({"key_columns": {"order"}}, "key_columns is a list of column names"),
    ({"key_columns": ["order", "item", "order"]}, "key_columns names a column twice"),
    ({"default_region": "UK"}, "default_region must be a country .*, not 'UK'; did you mean 'GB'"),
    ({"cost_per_part": {"27": -1}}, r"cost_per_part\['27'\] is -1"),
    ({"message": "Hi \ud83d"}, r"message has half a character \(U\+D83D\) at position 4"),
    ({"source": None}, f"source: {NO_SOURCE} None: {PASS}"),
    ({"source": ["good.csv", " "]}, f"source: {NO_SOURCE} an empty text: {PASS}"),
    ({"source": b"people.csv"}, f"source: {NO_SOURCE} bytes: {PASS}"),
    ({"source": {"destination": ["27820000001"]}}, f"source: {NO_SOURCE} dict: {PASS}"),
    ({"suppress": ""}, f"suppress: {NO_SOURCE} an empty text: {PASS}"),
    ({"source": "None"}, "source is 'None': was there no value to render it from"),
    ({"suppress": "None"}, "suppress is 'None': was there no value to render it from"),
    ({"source": SqlSource("warehouse", " ")}, "source: the sql of a SqlSource must be a statement"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=str)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """Each argument by its name, and not at nine in the morning; the error stands alone, and shows no number."""
    with pytest.raises(InputError, match=f"^{words}") as caught:
        bulk(**arguments)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "27820000001" not in str(caught.value)


def test_each_argument_that_no_template_renders_is_refused_by_a_case():
    """So none is forgotten."""
    arguments = set(inspect.signature(BulkSmsOperator.__init__).parameters) - {"self", "kwargs"}
    refused = {name for case, _ in REFUSED for name in case}
    assert arguments - set(BulkSmsOperator.template_fields) <= refused


TEMPLATES = ["{{ ds }}", "{% if 1 %}a{% endif %}", ["a", "{{ ds }}"], {"a": "{{ ds }}"}, lambda context, jinja_env: 1]


@pytest.mark.parametrize("value", TEMPLATES, ids=["text", "block", "list", "dict", "function"])
def test_a_check_waits_for_a_template(value):
    """Whatever the template is, the DAG loads; of the rest, nothing waits with it."""
    assert bulk(campaign=value).campaign is value
    template = "{{ params.x }}"
    limits = {"max_cost": "{% if 1 %}5{% endif %}"}
    bulk(message=template, report=template, send_options=template, dry_run=template, limits=limits)
    bulk(source=SqlSource(template, template, template), suppress=[template], sms_conn_id=template)
    with pytest.raises(InputError, match="chunk_size"):
        bulk(campaign=value, chunk_size=0)


@pytest.mark.parametrize("name", ["source", "suppress", "sms_conn_id", "ledger_conn_id"])
def test_another_tasks_result_waits_for_the_task(name):
    """The DAG loads with it, and what takes its place, or is set later by a DAG's file, is checked by the task."""
    with DAG("d", schedule=None) as dag:
        task = bulk(**{name: airflow_task(task_id="upstream")(lambda: None)()})
    assert dag.get_task("t").upstream_task_ids == {"upstream"}
    setattr(task, name, 5)
    with pytest.raises(InputError, match=f"^{name}"):
        task.read_options()


def test_a_subclass_may_template_more():
    """An argument that it adds to ``template_fields`` waits, too."""

    class Sized(BulkSmsOperator):
        template_fields = (*BulkSmsOperator.template_fields, "chunk_size")

    assert Sized(task_id="t", source="s", message="m", chunk_size="{{ params.size }}").chunk_size == "{{ params.size }}"
    with pytest.raises(InputError, match="chunk_size"):
        Sized(task_id="t", source="s", message="m", chunk_size="5")


def test_options_hold_every_argument_of_the_operator():
    """An attempt is given each argument as it was rendered, or the value that is made of it, and never the operator."""
    task = bulk(limits={"max_rows": 5}, report="r.parquet")
    options = task.read_options()
    names = set(inspect.signature(BulkSmsOperator.__init__).parameters) - {"self", "kwargs"}
    assert names == set(type(options).model_fields)
    assert {name: getattr(options, name) for name in names - {"limits"}} == {
        name: getattr(task, name) for name in names - {"limits"}
    }
    assert options.limits.given == {"max_rows": 5}


# Other tasks


TASKS = {
    BulkSmsOperator: {"source": "people.csv", "message": "Hi"},
    GroupSmsOperator: {"groups": "staff", "message": "Hi"},
    BalanceSensor: {"min_balance": 5},
    PurgeLedgerOperator: {},
}
"""What has a connection → the arguments that it needs."""


@pytest.mark.parametrize("kind", [BulkSmsOperator, GroupSmsOperator, BalanceSensor])
@pytest.mark.parametrize("conn_id", [None, "", " ", 5], ids=repr)
def test_a_connection_has_an_id(kind, conn_id):
    """Of every task that calls the service; the error says what it may be."""
    with pytest.raises(InputError, match=r"^sms_conn_id must be the id of a connection of type sms, such as 'sms_def"):
        kind(task_id="t", **TASKS[kind], sms_conn_id=conn_id)
    assert kind(task_id="t", **TASKS[kind], sms_conn_id="{{ params.account }}").sms_conn_id


@pytest.mark.parametrize("kind", [BulkSmsOperator, GroupSmsOperator, PurgeLedgerOperator])
@pytest.mark.parametrize("conn_id", ["", " ", 5], ids=repr)
def test_a_ledger_has_an_id(kind, conn_id):
    """Of every task that opens one: an empty id would mean another ledger than was meant, and None is the default."""
    with pytest.raises(InputError, match=r"^ledger_conn_id must be the id of a connection of type postgres, or None"):
        kind(task_id="t", **TASKS[kind], ledger_conn_id=conn_id)
    assert kind(task_id="t", **TASKS[kind], ledger_conn_id=None).ledger_conn_id is None


@pytest.mark.slow
def test_checking_loads_nothing_heavy():
    """A DAG file is loaded every few seconds, with all arguments of all tasks."""
    program = """
import sys
from airflow.providers.common.compat.sdk import DAG
of_airflow = set(sys.modules)
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator, Limits
from airflow_provider_sms.sensors.balance import BalanceSensor
Stream = type("Stream", (), {"__arrow_c_stream__": None})
many = dict(source=Stream(), message="Hi {name:.2f}", default_region="za", cost_per_part={"27": 1, "": 2.5})
BulkSmsOperator(task_id="a", campaign="spring", send_options={"SenderId": "ACME"}, key_columns=["name"],
    suppress=["b.csv"], limits=Limits(max_rows=5), **many)
GroupSmsOperator(task_id="b", message="Hi", groups=["staff"], campaign="spring")
BalanceSensor(task_id="c", min_balance=5)
heavy = {"pandas", "pyarrow", "fastapi", "numpy", "uvicorn"}
print("heavy:", sorted(heavy & (set(sys.modules) - of_airflow)))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["heavy: []"]
