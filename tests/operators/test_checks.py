from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.checks import check_loaded
from airflow_provider_sms.operators.options import GroupOptions
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator, PurgeLedgerOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

TASKS = {
    BulkSmsOperator: {"source": "people.csv", "message": "Hi"},
    GroupSmsOperator: {"groups": "staff", "message": "Hi"},
    BalanceSensor: {"min_balance": 5},
    PurgeLedgerOperator: {},
}
"""What has a connection → the arguments that it needs."""
TEMPLATES = ["{{ ds }}", "{% if 1 %}a{% endif %}", ["a", "{{ ds }}"], {"a": "{{ ds }}"}, lambda context, jinja_env: 1]


def made(**changes):
    return GroupSmsOperator(task_id="t", groups="staff", message="Hi", **changes)


@pytest.mark.parametrize("value", TEMPLATES, ids=["text", "block", "list", "dict", "function"])
def test_a_check_waits_for_a_template(value):
    """The task checks it then."""
    assert made(campaign=value).campaign is value


@pytest.mark.parametrize("value", [5, ["a"], {"a": "b"}, True], ids=str)
def test_a_check_does_not_wait_for_a_value(value):
    """What no template renders stays as it is."""
    with pytest.raises(InputError, match="campaign"):
        made(campaign=value)


def test_a_template_in_an_argument_that_is_not_templated_is_a_value():
    """Airflow renders it nowhere."""
    with pytest.raises(InputError, match="on_unknown must be"):
        made(on_unknown="{{ ds }}")


def test_copies_of_a_mapped_task_are_checked_by_themselves():
    """Airflow makes them where they run, and would retry an error from there."""
    copy = SimpleNamespace(campaign=5, template_fields=(), _BaseOperator__from_mapped=True)
    check_loaded(copy, GroupOptions)


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
many = dict(source="a.parquet", message="Hi {name:.2f}", default_region="za", cost_per_part={"27": 1, "": 2.5})
BulkSmsOperator(task_id="a", campaign="spring", send_options={"SenderId": "ACME"}, key_columns=["name"],
    suppress=["b.csv"], limits=Limits(max_rows=5),
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
heavy = {"pandas", "pyarrow", "fastapi", "numpy", "uvicorn"}
print("heavy:", sorted(heavy & (set(sys.modules) - of_airflow)))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-5:] == ["refused"] * 4 + ["heavy: []"]
