from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.decision_rules import Approver, QuestionOptions
from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.bulk_options import read_bulk_options
from airflow_provider_sms.operators.question_options import read_question_options
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator

NOTIFIER = SmsNotifier(to="27820000001")


def bulk(**arguments):
    return BulkSmsOperator(task_id="t", source="s", message="m", **arguments)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"approvers": "ann"}, "approvers must be a list with the id"),
        ({"approvers": []}, "approvers must be a list with the id"),
        ({"approvers": [3]}, "approvers must be a list with the id"),
        ({"approvers": [" "]}, "approvers must be a list with the id"),
        ({"approvers": [{"id": "3"}]}, "approvers must be a list with the id"),
        ({"four_eyes": "yes"}, "four_eyes must be True or False"),
        ({"approval_notifiers": SmsNotifier}, "approval_notifiers must be one of Airflow's notifiers"),
        ({"approval_notifiers": [NOTIFIER, "ann"]}, "approval_notifiers must be one of Airflow's notifiers"),
        ({"approval_timeout": 0}, "approval_timeout must be a number of seconds above 0"),
        ({"approval_timeout": True}, "approval_timeout must be a number of seconds above 0"),
        ({"approval_timeout": float("nan")}, "approval_timeout must be a number of seconds above 0"),
        ({"approval_timeout": timedelta(0)}, "approval_timeout must be a number of seconds above 0"),
        ({"approval_timeout": 1e300}, "approval_timeout must be a number of seconds above 0"),
    ],
)
def test_arguments_that_cannot_be_obeyed_are_refused(argument, words):
    """Each by its name, when the DAG is loaded."""
    with pytest.raises(InputError, match=words):
        bulk(approve=True, **argument)


@pytest.mark.parametrize("argument", [{"approvers": ["ann"]}, {"four_eyes": True}, {"approval_notifiers": NOTIFIER}])
@pytest.mark.parametrize(
    "make", [bulk, lambda **more: GroupSmsOperator(task_id="t", message="m", groups=["g"], **more)]
)
def test_an_argument_about_a_question_that_is_never_asked_is_refused(make, argument):
    """It would protect nothing, and somebody relies on it."""
    (name,) = argument
    with pytest.raises(InputError, match=f"{name} needs a question"):
        make(**argument)
    assert read_question_options(make(on_unknown="ask", **argument)) != QuestionOptions()


def test_only_the_question_about_a_plan_has_a_time_limit():
    """What is unknown stays unknown for as long as nobody decides."""
    with pytest.raises(InputError, match="approval_timeout needs approve=True or approve_above"):
        bulk(on_unknown="ask", approval_timeout=60)
    for timeout in (60, 60.0, timedelta(minutes=1)):
        assert read_question_options(bulk(approve_above=9, approval_timeout=timeout)).timeout == timedelta(minutes=1)


def test_the_arguments_reach_the_attempt():
    """Users by their id alone, or by id and name; one notifier, or several."""
    task = bulk(
        approve=True,
        approvers=["ann", {"id": "3", "name": "bob"}],
        four_eyes=True,
        approval_notifiers=NOTIFIER,
        approval_timeout=timedelta(hours=2),
    )
    approvers = (Approver("ann", "ann"), Approver("3", "bob"))
    assert read_bulk_options(task).question == QuestionOptions(
        approvers, four_eyes=True, notifiers=(NOTIFIER,), timeout=timedelta(hours=2)
    )
