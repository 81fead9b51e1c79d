from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from support.airflow import run_task
from support.people import somebody_answers
from support.versions import CAN_ASK, PARKS_WHO_ASKS

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.human_input import read_answer
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS

needs_asking = pytest.mark.skipif(
    not CAN_ASK, reason="Airflow before 3.1 cannot ask a person; test_no_question.py holds that it refuses"
)
needs_an_answer = pytest.mark.skipif(
    not PARKS_WHO_ASKS,
    reason="before Airflow 3.3 nobody can answer in dag.test(); acceptance/test_asking.py holds that a person is asked",
)


def counts(ran):
    summary = ran.summary
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


def decisions(ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection:
        return connection.execute(
            "SELECT r.state, d.decision, d.decided_by FROM sms_decision d JOIN sms_request r ON r.id = d.request_id"
        ).fetchall()


@pytest.fixture
def lost(sandbox):
    """Lose the answers to that many requests, after the service has or has not taken them."""

    def lost(times, kind="drop_after"):
        sandbox.state.set_faults([{"kind": "none", "times": 1}, {"kind": kind, "times": times}])

    return lost


@needs_an_answer
def test_a_person_treats_what_is_unknown_as_sent(send, people, lost, ledger_path, witnessed):
    """The task waits, goes on, counts it as accepted, succeeds, and the ledger says who decided."""
    lost(2)
    with somebody_answers("Treat as sent") as questions:
        ran = send(people(450), on_unknown="ask", concurrency=1)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 450})
    assert decisions(ledger_path) == [("accepted", "accepted", "ann")] * 2
    assert set(witnessed().values()) == {1}
    assert (len(questions), ran.summary["requests"]) == (1, 5)


@needs_an_answer
def test_a_person_has_what_is_unknown_sent_again(send, people, lost, ledger_path, witnessed):
    """Exactly what was unknown is posted once more; the ledger keeps that it was a decision."""
    lost(2, "drop_before")
    with somebody_answers("Resend"):
        ran = send(people(450), on_unknown="ask", concurrency=1)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 450})
    assert (len(witnessed()), set(witnessed().values())) == (450, {1})
    assert decisions(ledger_path) == [("unknown", "resend", "ann")] * 2
    # Of the whole try: three at first, two after the answer.
    assert (ran.summary["requests"], ran.summary["parts"], len(ran.summary["event_ids"])) == (7, 450, 5)
    assert ran.summary["cost_breakdown"] == {"Local": {"cost": 450.0, "quantity": 450}}


@needs_an_answer
def test_a_person_lets_the_task_fail(send, people, lost, ledger_path, witnessed):
    """The task fails without a retry, in words that name the person; the counts stay those before the answer."""
    lost(1)
    with somebody_answers("Fail"):
        ran = send(people(250), on_unknown="ask", retries=2, concurrency=1)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"accepted": 150, "unknown": 100})
    assert "ann decided that the task fails" in ran.log
    assert decisions(ledger_path) == [("unknown", "fail", "ann")]
    assert set(witnessed().values()) == {1}


@needs_an_answer
def test_what_is_lost_again_is_left_to_the_command_line(send, people, sandbox, ledger_path, witnessed):
    """Airflow would show the first question again, which is about another request: so the task fails, and says how."""
    sandbox.state.set_faults([{"kind": "drop_before"}, {"kind": "drop_after"}])
    with somebody_answers("Resend", "Resend", name="bob") as questions:
        ran = send(people(100), on_unknown="ask", concurrency=1, retries=1)
    assert (ran.state, ran.tries, counts(ran), len(questions)) == ("failed", 1, {"unknown": 100}, 1)
    assert ("airflow-sms ledger resolve" in ran.log, "requests 2 may have been sent" in ran.log) == (True, True)
    assert decisions(ledger_path) == [("unknown", "resend", "bob")]
    assert set(witnessed().values()) == {1}


@needs_an_answer
def test_what_a_dead_process_left_is_asked_about(send, people, ledger_path):
    """A claim whose deadline has passed is unknown, and a question, though nobody had written that down."""
    source = people(100)
    send(source, campaign="c")
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute(
            "UPDATE sms_request SET state = 'claimed', response = NULL, deadline = ?", (time.time() + 1,)
        )
    with somebody_answers("Treat as sent") as questions:
        ran = send(source, campaign="c", on_unknown="ask")
    assert (ran.state, len(questions)) == ("success", 1)
    assert "deadline" in questions[0]["body"]


@needs_an_answer
def test_the_question_says_what_is_unknown(send, people, lost):
    """It names campaign, requests, messages, when and why, gives three options, and no number or text."""
    lost(2)
    with somebody_answers("Treat as sent") as questions:
        send(people(450, first_name="Secretname"), on_unknown="ask", campaign="spring", concurrency=1)
    (question,) = questions
    assert question["options"] == ["Resend", "Treat as sent", "Fail"]
    assert question["subject"] == "Campaign spring: 200 messages may have been sent"
    assert question["body"].count("| 100 | 20") == 2
    assert "connection" in question["body"].lower()
    assert ("2782" in question["body"], "Secretname" in question["body"]) == (False, False)


@needs_asking
def test_nothing_is_asked_when_all_is_known(send, people):
    """Where every answer came, nobody is bothered."""
    ran = send(people(150), on_unknown="ask")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 150})


@needs_asking
def test_an_error_comes_before_the_question(send, people, sandbox):
    """Where sending ended early the task fails; what is unknown is asked when the rest is done."""
    sandbox.state.set_faults([{"kind": "drop_after"}, {"kind": "status", "status": 400}])
    ran = send(people(450), on_unknown="ask", concurrency=1, retries=1)
    assert (ran.state, counts(ran)) == ("failed", {"unknown": 100, "not_sent": 350})


@needs_an_answer
def test_without_xcoms_the_task_goes_on_all_the_same(send, people, lost):
    """A task that pushes no XComs has only the summary of what came after the answer."""
    lost(1)
    with somebody_answers("Treat as sent"):
        assert send(people(250), on_unknown="ask", do_xcom_push=False).state == "success"


@needs_an_answer
def test_groups_are_asked_about_too(sms_default, ledger_path, sandbox, witnessed):
    """A text to groups whose answer was lost waits for a person in the same way."""
    sandbox.state.set_faults([{"kind": "drop_before"}])
    with somebody_answers("Resend") as questions:
        ran = run_task(
            lambda: GroupSmsOperator(task_id="text", message="Hi all", groups=["staff"], on_unknown="ask", campaign="c")
        )
    assert (ran.state, ran.xcoms["return_value"]["Messages"]) == ("success", 5)
    assert questions[0]["subject"] == "Campaign c: 1 message may have been sent"
    assert (len(witnessed()), set(witnessed().values())) == (5, {1})


@pytest.mark.parametrize("event", [{}, {"chosen_options": []}, {"chosen_options": ["Other"]}, {"error": "x"}], ids=str)
def test_an_answer_that_is_none_of_the_options_is_refused(event):
    """Nothing is decided by an answer that cannot be read."""
    with pytest.raises(InputError, match="Resend, Treat as sent, Fail"):
        read_answer(event)
