from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import task
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

PEOPLE = ["27820000001", "27820000002"]


def mapped_operator(**arguments):
    BulkSmsOperator.partial(task_id="send", source=PEOPLE, **arguments).expand(message=["Hi"])


def mapped_function(**arguments):
    task.bulk_sms(task_id="send", message="Hi", **arguments)(lambda copy: PEOPLE).expand(copy=[1])


@pytest.mark.parametrize("make", [mapped_operator, mapped_function])
@pytest.mark.parametrize(
    ("defaults", "texted"),
    [({"suppress": PEOPLE[:1]}, PEOPLE[1:]), ({"dry_run": True}, []), ({"destination_column": "to"}, PEOPLE)],
    ids=["suppress", "dry run", "column"],
)
def test_defaults_of_a_mapped_task_count(airflow_home, sms_sandbox, make, defaults, texted):
    """Airflow would drop them, and people be texted whom the task leaves out."""
    run = run_task(lambda: make(default_args={"retries": 1, **defaults}), only=None)
    assert (str(run.state), list(sms_sandbox.texts())) == ("success", texted)


def test_arguments_prevail_over_defaults(airflow_home):
    """A function returns the recipients itself, so it takes no source from defaults that are for other tasks, too."""
    defaults = {"source": ["27820000009"], "message": "Ho"}
    operator = BulkSmsOperator.partial(task_id="a", source="a.parquet", default_args=defaults).expand(suppress=["b"])
    assert (operator.partial_kwargs["source"], operator.partial_kwargs["message"]) == ("a.parquet", "Ho")
    assert task.bulk_sms(message="Hi", default_args=defaults)(lambda: PEOPLE).kwargs["message"] == "Hi"
    assert "source" not in task.bulk_sms(default_args=defaults)(lambda: PEOPLE).kwargs


def test_defaults_of_other_mapped_tasks_count(airflow_home):
    """Those of an operator's bases, too, and none that the class does not know."""
    defaults = {"sms_conn_id": "other", "timeout": 5, "limits": {"min_rows": 1}}
    group = GroupSmsOperator.partial(task_id="a", message="Hi", default_args=defaults).expand(groups=["staff"])
    sensor = BalanceSensor.partial(task_id="b", default_args=defaults).expand(min_balance=[1])
    assert group.partial_kwargs["sms_conn_id"] == "other"
    assert {name: sensor.partial_kwargs[name] for name in ("sms_conn_id", "timeout")} == {
        "sms_conn_id": "other",
        "timeout": 5,
    }
    assert not {"timeout", "limits"} & group.partial_kwargs.keys()


def test_rows_in_memory_are_not_a_label(sms_default, ledger_path):
    """Airflow shows the labels of mapped tasks to whoever sees the task: rows are only counted."""

    def make():
        mapped = BulkSmsOperator.partial(task_id="send", message="Hi", map_index_template="{{ task.source }}")
        mapped.expand(source=[[{"destination": number} for number in PEOPLE]])

    (ti,) = run_task(make, only=None).get_task_instances()
    assert (str(ti.state), ti.rendered_map_index) == ("success", "list of 2 rows")
