from __future__ import annotations

import json

import pytest
from support.airflow import run_task

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.operators.sms import GroupSmsOperator


@pytest.fixture
def text(sms_default, ledger_path):
    """Run a GroupSmsOperator in Airflow."""

    def text(message="All hands", groups=("staff",), *, retries=0, **arguments):
        return run_task(
            lambda: GroupSmsOperator(task_id="text", message=message, groups=groups, **arguments), retries=retries
        )

    return text


def sends(sandbox):
    return [request for request in sandbox.state.requests if request.operation == "group"]


def test_a_group_is_texted_and_the_answer_returned(text, sandbox):
    """The answer is the task's result, and the only one in ``responses``."""
    ran = text(send_options={"SenderId": "ACME"})
    (request,) = sends(sandbox)
    assert (ran.state, ran.summary["EventId"], ran.summary["Messages"]) == (
        "success",
        str(request.response["EventId"]),
        request.response["Messages"],
    )
    assert ran.xcoms["responses"] == [ran.summary]
    assert request.send_options == {"SenderId": "ACME"}


def test_a_campaign_texts_a_group_once(text, sandbox):
    """Run again, nobody is texted, and no balance is read: the order of groups is no matter, nor are hidden blanks."""
    first = text(groups=["staff", "customers"], campaign="spring")
    asked = len(sandbox.state.requests)
    again = text("All\u00a0hands ", groups=["customers", "staff", "staff"], campaign="spring")
    assert (again.state, again.summary, len(sandbox.state.requests)) == ("success", first.summary, asked)
    assert "it was not sent again" in again.log
    for groups in ("staff", ["staff"]):
        text(groups=groups, campaign="spring")
    assert len(sends(sandbox)) == 2


def test_a_lost_answer_fails_and_is_not_sent_again(text, sandbox):
    """A group whose answer was lost is never texted twice by itself."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = text(campaign="spring", retries=2)
    again = text(campaign="spring")
    assert (ran.state, ran.tries, again.state, len(sends(sandbox))) == ("failed", 1, "failed", 1)
    assert "1 message in the ledger's request 1 may have been sent" in ran.log


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "posts"), [("drop_after", 1), ("drop_before", 2)])
def test_a_lost_answer_is_closed_by_the_balance(text, sandbox, short_claims, fault, posts):
    """A group that was charged for was texted, and one that was not is texted by the same attempt, or a later one."""
    for first, campaign in (("reconcile", "spring"), ("fail", "summer")):
        before = len(sends(sandbox))
        sandbox.state.set_faults([{"kind": fault}])
        ran = text(campaign=campaign, on_unknown=first)
        again = text(campaign=campaign, on_unknown="reconcile")
        assert (ran.state, again.state) == ("success" if first == "reconcile" else "failed", "success")
        assert (len(sends(sandbox)) - before, "request " in ran.log) == (posts, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"groups": ["nobody"]}, "EntityNotFound.Group"),
        ({"groups": ["staff{{ ' ' }}"]}, "blanks around the name"),
        ({"groups": "{{ ['staff', 'customers'] }}"}, "a list was rendered into the text of one name"),
        ({"campaign": "{{ none }}"}, "campaign is None"),
    ],
    ids=str,
)
def test_what_only_the_task_finds_fails_it_without_a_retry(text, sandbox, arguments, says):
    """What a template renders is refused before anything is sent; a group that there is not, by the service."""
    ran = text(**arguments, retries=1)
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert says in ran.log


def test_a_send_that_took_nobody_fails(text, sandbox):
    """With the reasons of the service, and no word of a table that there is not."""
    body = {"Cost": 0, "RemainingBalance": 10, "EventId": 5, "Messages": 0, "Parts": 0}
    sandbox.state.set_faults([{"kind": "status", "status": 200, "body": json.dumps(body)}])
    ran = text()
    assert (ran.state, "the service took nothing of a request (it gave no reason" in ran.log) == ("failed", True)
    assert "suppress" not in ran.log


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"groups": []}, "groups must be at least one"),
        ({"groups": [""]}, "groups must be at least one"),
        ({"groups": None}, "groups must be at least one"),
        ({"groups": "staff "}, "blanks around the name"),
        ({"groups": ["Staff", "staff"]}, "differ in capitals alone"),
        ({"message": " "}, "message is empty"),
        ({"message": " \u200b"}, "message is empty"),
        ({"message": "None"}, "was there no value to render it from"),
        ({"on_unknown": "retry"}, "on_unknown must be one of"),
        ({"message": "Hi \ud83d"}, r"message has half a character \(U\+D83D\) at position 4"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, says):
    """An argument that cannot be obeyed is refused when the DAG is loaded, in words that name it."""
    with pytest.raises(InputError, match=says):
        GroupSmsOperator(**{"task_id": "text", "message": "All hands", "groups": "staff", **arguments})
