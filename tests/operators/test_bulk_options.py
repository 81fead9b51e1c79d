from __future__ import annotations

import inspect

import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.common.compat.sdk import task as airflow_task

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.sms import BulkSmsOperator, SqlSource


def bulk(**arguments):
    return BulkSmsOperator(**{"task_id": "t", "source": "s", "message": "m", **arguments})


REFUSED = [
    ({"on_unknown": "retry"}, "on_unknown must be one of fail, reconcile, resend, not the text 'retry'"),
    ({"send_options": "SenderId"}, "send_options must be a dict"),
    ({"send_options": {"Big": 2**70}}, "send_options cannot be written as JSON: Integer exceeds 64-bit range"),
    ({"campaign": ""}, "campaign is empty"),
    ({"campaign": 5}, "campaign must be text"),
    ({"campaign": "sale\x1fspring"}, "campaign has a control character"),
    ({"on_invalid": "drop"}, "on_invalid must be 'fail' or 'skip', not the text 'drop'"),
    ({"chunk_size": 101}, "chunk_size must be a whole number, 1 to 100, not 101"),
    ({"chunk_size": "100"}, "chunk_size must be a whole number, 1 to 100, not the text '100'"),
    ({"concurrency": 0}, "concurrency must be a whole number, 1 to 1000, not 0"),
    ({"concurrency": 2.5}, "concurrency must be a whole number"),
    ({"limits": {"max_parts": 0}}, "limits: max_parts must be a whole number, at least 1"),
    ({"max_requests_per_second": 0}, "max_requests_per_second must be a number above 0"),
    ({"max_requests_per_second": "5"}, "max_requests_per_second must be a number"),
    ({"limits": {"max_error_rate": 2}}, "limits: max_error_rate must be a share"),
    ({"limits": {"max_invalid": 5}}, "limits: max_invalid needs on_invalid='skip'"),
    ({"limits": {"max_invalid": "{{ params.share }}"}}, "limits: max_invalid needs on_invalid='skip'"),
    ({"report": " "}, "report must be the path or URI"),
    ({"on_low_balance": True}, "on_low_balance must be 'send', 'fail' or 'wait', not True"),
    ({"approved_plan": "0123456789ab-01234567-1-1-0"}, "approved_plan needs campaign"),
    ({"approved_plan": "5", "campaign": "c"}, "approved_plan must be the id of a plan"),
    ({"send_window": "08:00-20:00"}, "send_window must be a SendWindow"),
    ({"content_column": "text"}, "exactly one of message and content_column"),
    ({"content_column": "text", "message": "{{ params.text }}"}, "exactly one of message and content_column"),
    ({"message": None}, "exactly one of message and content_column"),
    ({"message": "Hi {first_name"}, "message is not a template"),
    ({"message": "Hi {first_name!r}"}, "has a conversion; only a format is allowed"),
    ({"message": " "}, "message is empty"),
    ({"message": "None"}, "message is 'None'"),
    ({"message": None, "content_column": 5}, "content_column must be the name of a column"),
    ({"destination_column": None}, "destination_column must be the name of a column"),
    ({"destination_column": "{{ params.column }}"}, "destination_column takes no template"),
    ({"key_columns": "order"}, r"key_columns is a list of column names: write \['order'\]"),
    ({"key_columns": [5]}, "key_columns is a list of column names"),
    ({"key_columns": {"order"}}, "key_columns is a list of column names"),
    ({"key_columns": ["order", "item", "order"]}, "key_columns names a column twice"),
    ({"default_region": "Atlantis"}, "default_region must be a country"),
    ({"default_region": "XX"}, "default_region must be a country"),
    ({"cost_per_part": {"27": -1}}, r"cost_per_part\['27'\] is -1"),
    ({"message": "Hi \ud83d"}, r"message has half a character \(U\+D83D\) at position 4"),
    ({"source": "None"}, "source is 'None': was there no value to render it from"),
    ({"suppress": "None"}, "suppress is 'None': was there no value to render it from"),
    ({"source": SqlSource("warehouse", " ")}, "source: the sql of a SqlSource must be a statement"),
    ({"suppress": SqlSource("warehouse", None)}, "suppress: the sql of a SqlSource must be a statement"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=str)
def test_what_no_template_renders_is_refused_when_the_dag_is_loaded(arguments, words):
    """Each argument by its name, and not at nine in the morning."""
    with pytest.raises(InputError, match=f"^{words}" if "conversion" not in words else words):
        bulk(**arguments)


def test_each_argument_that_no_template_renders_is_refused_by_a_case():
    """So none is forgotten."""
    arguments = set(inspect.signature(BulkSmsOperator.__init__).parameters) - {"self", "kwargs"}
    refused = {name for case, _ in REFUSED for name in case}
    assert arguments - set(BulkSmsOperator.template_fields) <= refused


@pytest.mark.parametrize("name", ["on_unknown", "chunk_size", "on_low_balance", "default_region"])
def test_an_argument_that_was_changed_later_is_refused_by_the_task(name):
    """A DAG file may set an attribute of a task, which no ``__init__`` sees."""
    task = bulk()
    setattr(task, name, "nonsense")
    with pytest.raises(InputError, match=f"^{name}"):
        task.read_options()


def test_what_a_template_renders_waits_for_the_task():
    """Whatever the template is, the DAG loads; of the rest, nothing waits with it."""
    template = "{{ params.x }}"
    task = bulk(message=template, campaign=template, report=template, send_options=template)
    assert task.campaign == template
    bulk(source=SqlSource(template, template, template))
    bulk(source=template, suppress=[template], sms_conn_id=template, ledger_conn_id=template)
    with pytest.raises(InputError, match="chunk_size"):
        bulk(message=template, chunk_size=0)


@pytest.mark.parametrize("name", ["source", "suppress", "sms_conn_id", "ledger_conn_id"])
def test_another_tasks_result_waits_for_the_task(name):
    """The DAG loads with it, and the value that takes its place is checked as one in the DAG's file is."""
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


def test_defaults_of_a_dag_are_checked_as_arguments_are():
    """``default_args`` reach every argument, and a wrong one is refused."""
    defaults = {
        "on_unknown": "resend",
        "sms_conn_id": "other",
        "retries": 2,
    }
    with DAG("d", schedule=None, default_args=defaults):
        task = bulk()
        assert (task.on_unknown, task.sms_conn_id, task.retries) == ("resend", "other", 2)
    with DAG("e", schedule=None, default_args={"on_unknown": "retry"}), pytest.raises(InputError, match="on_unknown"):
        bulk()


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
