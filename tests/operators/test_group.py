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
        str(request.event_id),
        request.accepted,
    )
    assert ran.xcoms["responses"] == [ran.summary]
    assert request.send_options == {"SenderId": "ACME"}


def test_a_campaign_texts_a_group_once(text, sandbox):
    """Run again, nobody is texted: the order of groups is no matter, nor are blanks that nobody sees."""
    first = text(groups=["staff", "customers"], campaign="spring")
    again = text("All\u00a0hands ", groups=["customers", "staff", "staff"], campaign="spring")
    assert (again.state, again.summary, len(sends(sandbox))) == ("success", first.summary, 1)
    assert "it was not sent again" in again.log


def test_a_group_that_was_texted_already_costs_no_look_at_the_balance(text, sandbox):
    """The balance is read before a send, so that a charge can be seen; where nothing is sent, it would tell nothing."""

    def looks():
        return len([request for request in sandbox.state.requests if request.operation == "balance"])

    text(campaign="spring")
    before = looks()
    again = text(campaign="spring")
    assert (again.state, before, looks()) == ("success", 1, 1)


def test_another_text_or_group_is_another_message(text, sandbox):
    """Within a campaign each text goes to each set of groups once."""
    text(campaign="spring")
    text("Another text", campaign="spring")
    text(groups=["customers"], campaign="spring")
    assert len(sends(sandbox)) == 3


def test_a_lost_answer_fails_and_is_not_sent_again(text, sandbox):
    """A group whose answer was lost is never texted twice by itself."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = text(campaign="spring", retries=2)
    again = text(campaign="spring")
    assert (ran.state, ran.tries, again.state, len(sends(sandbox))) == ("failed", 1, "failed", 1)
    assert "1 message in the ledger's request 1 may have been sent" in ran.log


@pytest.mark.slow
def test_resending_is_possible(text, sandbox):
    """Asked for, a send whose answer was lost is posted again."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = text(on_unknown="resend")
    assert (ran.state, len(sends(sandbox))) == ("success", 2)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "posts"), [("drop_after", 1), ("drop_before", 2)])
def test_a_lost_answer_is_closed_by_the_balance(text, sandbox, short_claims, fault, posts):
    """A group that was charged for was texted, and one that was not is texted by the same attempt."""
    sandbox.state.set_faults([{"kind": fault}])
    ran = text(campaign="spring", on_unknown="reconcile")
    again = text(campaign="spring", on_unknown="reconcile")
    assert (ran.state, again.state, len(sends(sandbox))) == ("success", "success", posts)
    assert len(sandbox.state.accepted) == len({message.destination for message in sandbox.state.accepted})
    assert "request 1" in ran.log


def test_a_later_attempt_closes_a_lost_answer_by_the_balance(text, sandbox):
    """What the balance was before and after is in the ledger, so a task that reconciles closes it later, too."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    lost = text(campaign="spring")
    found = text(campaign="spring", on_unknown="reconcile")
    assert (lost.state, found.state, len(sends(sandbox))) == ("failed", "success", 1)


def test_an_unknown_group_is_refused_in_the_services_words(text, sandbox):
    """The service's refusal fails the task without retries."""
    ran = text(groups=["nobody"], retries=2)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "EntityNotFound.Group" in ran.log


def test_a_send_that_took_nobody_fails(text, sandbox):
    """With the reasons of the service, and no word of a table that there is not."""
    body = {"Cost": 0, "RemainingBalance": 10, "EventId": 5, "Messages": 0, "Parts": 0}
    sandbox.state.set_faults([{"kind": "status", "status": 200, "body": json.dumps(body)}])
    ran = text()
    assert (ran.state, "the service took nothing of a request (it gave no reason" in ran.log) == ("failed", True)
    assert "suppress" not in ran.log


def test_a_host_that_is_no_url_is_not_retried(text, sms_default, sandbox):
    """Not with ``allow_http`` either: only a person can change it."""
    sms_default({"allow_http": True}, host="https://[rest.example.com/v1")
    ran = text(retries=1)
    assert (ran.state, ran.tries, "'sms_default': host is not a URL" in ran.log) == ("failed", 1, True)


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
        ({"send_options": "SenderId"}, "send_options must be a dict"),
        ({"campaign": " "}, "campaign is empty"),
        ({"message": "Hi \ud83d"}, r"message has half a character \(U\+D83D\) at position 4"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, says):
    """An argument that cannot be obeyed is refused when the DAG is loaded, in words that name it."""
    with pytest.raises(InputError, match=says):
        GroupSmsOperator(**{"task_id": "text", "message": "All hands", "groups": "staff", **arguments})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"groups": ["staff{{ ' ' }}"]}, "blanks around the name"),
        ({"groups": "{{ ['staff', 'customers'] }}"}, "a list was rendered into the text of one name"),
        ({"message": "{{ none }}"}, "was there no value to render it from"),
        ({"send_options": "{{ 'SenderId' }}"}, "send_options must be a dict"),
    ],
    ids=str,
)
def test_wrong_rendered_arguments_fail_the_task(text, sandbox, arguments, says):
    """What a template renders is refused before anything is sent, and no retry is spent."""
    ran = text(**arguments, retries=1)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 1, [])
    assert says in ran.log


def test_one_group_is_named_without_a_list(text, sandbox):
    """As in the hook, and it is the same message as the list of one."""
    text(groups="staff", campaign="spring")
    text(groups=["staff"], campaign="spring")
    assert len(sends(sandbox)) == 1
