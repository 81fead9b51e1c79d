"""Templates of a DAG that renders to Python's own objects."""

from __future__ import annotations

import pytest
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.service.client import SmsClient

PERSON = "27820000001"
# Each is a literal of Python: a number, a tuple, a text in quotes, bytes, a list, a name.
WRITTEN = ["1e5", "1,5", "'x'", '"Ann"', "0x1F", "1_000", "b'x'", "[1, 2]", "True"]


def native(make_task, **params):
    """Run a task in a DAG that renders to objects."""
    return run_task(make_task, render_template_as_native_obj=True, params=params)


def bulk(**arguments):
    rows = [{"destination": PERSON}]
    return lambda: BulkSmsOperator(task_id="send", **{"source": rows, "message": "Hi", **arguments})


def group(**arguments):
    return lambda: GroupSmsOperator(task_id="text", **{"groups": "staff", "message": "Hi", **arguments})


@pytest.fixture
def posted(monkeypatch):
    """Groups and Send Options of each request, as the client gets them."""
    requests, send = [], SmsClient.send_group

    def posting(self, message, groups, *, send_options=None):
        requests.append((groups, send_options))
        return send(self, message, groups, send_options=send_options)

    monkeypatch.setattr(SmsClient, "send_group", posting)
    return requests


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("make", [bulk, group])
def test_texts_and_options_go_out_as_they_were_written(sms_default, ledger_path, sandbox, make, written):
    """Of both operators: jinja reads no literal in a text without a template."""
    options = {"SenderId": "12345", "CostCentre": "{{ params.value }} in all", "More": [written]}
    ran = native(make(message=written, campaign=written, send_options=options), value=written)
    (request,) = [each for each in sandbox.state.requests if each.operation != "balance"]
    assert (ran.state, ran.rendered["campaign"]) == ("success", written)
    assert request.send_options == {"SenderId": "12345", "CostCentre": f"{written} in all", "More": [written]}
    assert {each.content for each in sandbox.state.accepted} == {written}


def test_lists_and_options_are_those_that_an_expression_has(sms_default, ledger_path, posted):
    """Groups and Send Options of the run's configuration need no text form, and names of digits stay names."""
    options = {"SenderId": "12345", "ValidityPeriod": 2}
    make = group(groups="{{ params.groups }}", send_options="{{ params.options }}")
    native(make, groups=["1e5", "7"], options=options)
    assert posted == [(["1e5", "7"], options)]


@pytest.mark.parametrize(
    "make",
    [
        bulk(message="{{ params.value }}"),
        bulk(campaign="{{ params.value }}"),
        group(message="{{ params.value }}"),
        group(groups=["staff", "{{ params.value }}"]),
    ],
    ids=["message", "campaign", "text", "groups"],
)
def test_a_value_that_lost_its_text_is_refused(sms_default, ledger_path, sandbox, make):
    """Nobody can tell whether 100000.0 was written 1e5: the error says so, names the argument, and nothing is sent."""
    ran = native(make, value=1e5)
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "must be text, not float. A value from another task, or from a template with" in ran.log
