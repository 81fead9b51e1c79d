from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.bulk import BulkSmsOperator
from airflow_provider_sms.operators.checks import (
    Check,
    check_loaded,
    check_rendered,
    is_number,
    is_rendered_later,
    require_flag,
    require_whole,
)
from airflow_provider_sms.operators.group import GroupSmsOperator
from airflow_provider_sms.operators.purge import PurgeLedgerOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

TASKS = {
    BulkSmsOperator: {"source": "people.csv", "message": "Hi"},
    GroupSmsOperator: {"groups": "staff", "message": "Hi"},
    BalanceSensor: {"min_balance": 5},
    PurgeLedgerOperator: {},
}
"""What has a connection → the arguments that it needs."""
TEMPLATES = ["{{ ds }}", "{% if 1 %}a{% endif %}", ["a", "{{ ds }}"], {"a": "{{ ds }}"}, lambda context, jinja_env: 1]


def refuse(task):
    raise InputError("refused")


def made(value, name="campaign", **more):
    arguments = {"campaign": None, "message": None, name: value, **more}
    return SimpleNamespace(**arguments, given_arguments=frozenset(), template_fields=("campaign", "message"))


@pytest.mark.parametrize("value", TEMPLATES, ids=["text", "block", "list", "dict", "function"])
def test_a_check_waits_for_a_template(value):
    """Of an argument that it reads; the task checks it then."""
    assert is_rendered_later(made(value), "campaign")
    check_loaded(made(value), [Check(refuse, ("campaign",))])
    with pytest.raises(InputError, match="refused"):
        check_rendered(made(value), [Check(refuse, ("campaign",))])


@pytest.mark.parametrize("value", ["spring", None, 5, ["a"], {"a": "b"}, True], ids=str)
def test_a_check_does_not_wait_for_a_value(value):
    """What no template renders stays as it is."""
    with pytest.raises(InputError, match="refused"):
        check_loaded(made(value), [Check(refuse, ("campaign",))])


def test_a_template_in_an_argument_that_is_not_templated_is_a_value():
    """Airflow renders it nowhere."""
    assert not is_rendered_later(made("{{ ds }}", "chunk_size"), "chunk_size")


def test_the_text_of_a_file_is_a_message_alone():
    """A message that names a file has its text later; a campaign of that name is one."""
    assert is_rendered_later(made("welcome.txt", "message"), "message")
    assert not is_rendered_later(made("welcome.txt"), "campaign")


def test_a_value_does_not_vanish():
    """An argument that was given and is None once it is rendered is refused; one that was left out is its default."""
    task = made("{{ params.it }}", message=None)
    check_loaded(task, [])
    check_rendered(task, [])
    task.campaign = None
    with pytest.raises(InputError, match=r"^campaign is None, once its template is rendered"):
        check_rendered(task, [])


def test_copies_of_a_mapped_task_are_checked_by_themselves():
    """Airflow makes them where they run, and would retry an error from there."""
    check_loaded(made(5, _BaseOperator__from_mapped=True), [Check(refuse)])


def test_values_are_read_strictly():
    """A bool is no number, and a number no bool."""
    assert [is_number(each) for each in (1, 0.5, True, "1", None, float("nan"))] == [True, True] + [False] * 4
    require_flag(made(value=False), "campaign")
    require_whole(made(5), "campaign", 1, 5)
    for value in (1, "True", None):
        with pytest.raises(InputError, match="campaign must be True or False"):
            require_flag(made(value), "campaign")
    for value in (6, 0, 1.0, True, "5", None):
        with pytest.raises(InputError, match="campaign must be a whole number, 1 to 5, not"):
            require_whole(made(value), "campaign", 1, 5)


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
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor
many = dict(source="a.parquet", message="Hi {name:.2f}", default_region="za", cost_per_part={"27": 1, "": 2.5})
BulkSmsOperator(task_id="a", campaign="spring", send_options={"SenderId": "ACME"}, key_columns=["name"],
    suppress=["b.csv"], max_rows=5,
    **many)
GroupSmsOperator(task_id="b", message="Hi", groups=["staff"], campaign="spring")
BalanceSensor(task_id="c", **many)
Stream = type("Stream", (), {"__arrow_c_stream__": None})
BulkSmsOperator(task_id="d", **{**many, "source": Stream()}, suppress=iter([]))
for wrong in (None, "", 5, Stream):
    try:
        BulkSmsOperator(task_id="e", **{**many, "source": wrong})
    except ValueError:
        print("refused")
heavy = {"pandas", "pyarrow", "fastapi", "numpy", "phonenumbers", "uvicorn"}
print("heavy:", sorted(heavy & (set(sys.modules) - of_airflow)))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-5:] == ["refused"] * 4 + ["heavy: []"]
