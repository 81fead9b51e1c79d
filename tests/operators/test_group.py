from __future__ import annotations

import json
from contextlib import closing

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from support.airflow import run_task
from support.sending import claimant

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.execution import group
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.account import Account
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, Chunk, Outcome
from airflow_provider_sms.messages.keys import group_key
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox


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


class Failing(GroupSmsOperator):
    """An operator whose send fails with an error of the test."""

    def __init__(self, *, error, cause, **arguments):
        super().__init__(message="All hands", groups=["staff"], campaign="c", **arguments)
        self.error, self.cause = error, cause

    def send(self, task):
        raise self.error from self.cause


@pytest.mark.parametrize(
    ("error", "cause", "raised"),
    [
        (InputError("message is empty"), None, AirflowFailException),
        (LedgerError("The ledger cannot be opened"), OSError("no such host"), AirflowException),
    ],
    ids=["mistake", "driver"],
)
def test_an_error_is_told_once(airflow_home, error, cause, raised):
    """A mistake is one message, and not two in a chain with the same words; the error of a driver stays behind it."""
    with pytest.raises(raised, match=str(error)) as caught:
        Failing(error=error, cause=cause, task_id="text").execute({})
    assert caught.value.__cause__ is cause
    assert caught.value.__suppress_context__


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


def test_the_group_of_another_account_is_not_taken_for_this_one(text, sandbox, sms_sandbox):
    """A name belongs to an account: with one campaign for both, the second task would end green, and text nobody."""
    with running_sandbox(SandboxConfig(token="the-other-token", groups={"staff": ("27840000001",)})) as other:
        sms_sandbox.connect("sms_other", host=other.base_url, password="the-other-token")
        assert text(campaign="closed").state == "success"
        ran = text(campaign="closed", sms_conn_id="sms_other", on_unknown="resend")
        assert (ran.state, other.state.accepted_messages) == ("failed", [])
        assert "name a campaign for each account" in ran.log
        assert text(campaign="closed, too", sms_conn_id="sms_other").state == "success"
        assert [number for number, _ in other.state.accepted_messages] == ["27840000001"]


def test_the_group_of_another_account_that_is_texted_meanwhile_is_told_apart_too(text, sandbox, monkeypatch):
    """Mapped copies of one task run side by side: both begin before either has sent."""
    observe = group._observe

    def meanwhile(reconciliation):
        other = Account("0" * 32, Prices().of_request)
        chunk = Chunk([group_key("All hands", ["staff"])], [None])
        with closing(open_ledger(None)) as store:
            ledger = CampaignLedger(store, "closed", claimant(task_id="other"), kind="group", account=other)
            (claim,) = ledger.commit(chunks=[chunk], claim_seconds=60.0)
            taken = Outcome(claim.request_id, ACCEPTED, event_id=5, messages=1, response="{}")
            ledger.commit(outcomes=[taken])
        return observe(reconciliation)

    monkeypatch.setattr(group, "_observe", meanwhile)
    ran = text(campaign="closed")
    assert (ran.state, sends(sandbox)) == ("failed", [])
    assert "name a campaign for each account" in ran.log


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


def test_a_send_that_took_nobody_advises_about_the_groups(text, sandbox):
    """Nobody looks for a row of a table that there is not."""
    body = {"Cost": 0, "RemainingBalance": 10, "EventId": 5, "Messages": 0, "Parts": 0}
    sandbox.state.set_faults([{"kind": "status", "status": 200, "body": json.dumps(body)}])
    ran = text()
    assert (ran.state, "check at the service that the groups have members" in ran.log) == ("failed", True)
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
        ({"message": " "}, "message must be a text"),
        ({"message": " \u200b"}, "message must be a text"),
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
