from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import Mock

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import AirflowException, BaseNotifier
from markdown_it import MarkdownIt
from support.airflow import run_task
from support.later import later
from support.people import NOBODY, latest_question, somebody_answers
from support.versions import ASKS_WITHOUT_TRIGGER
from support.windows import Closes, OpensLater

from airflow_provider_sms.exceptions import InputError, LedgerError, SourceUnavailableError
from airflow_provider_sms.execution import attempt, group_attempt
from airflow_provider_sms.execution.decision_rules import DecisionRules, QuestionOptions
from airflow_provider_sms.execution.human_input import (
    PlanDecision,
    ask_about_plan,
    ask_about_requests,
    read_plan_decision,
    read_request_decision,
)
from airflow_provider_sms.hooks.ledger import ledger_reader
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.approvals import SEND, STOP, PlanExtent, record_approval
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.ledger.request_queries import RequestRow, unknown_requests
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.monitoring.audit_log import latest_asked_plan
from airflow_provider_sms.monitoring.campaigns import find_campaign
from airflow_provider_sms.monitoring.reasons import reasons
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS

needs_an_answer = pytest.mark.skipif(
    not ASKS_WITHOUT_TRIGGER,
    reason="before Airflow 3.3 nobody can answer in dag.test(); acceptance/test_asking.py holds that a person is asked",
)


ANYBODY = DecisionRules(QuestionOptions())


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
def test_after_a_question_a_text_to_groups_may_have_been_sent(sms_default, ledger_path, sandbox, monkeypatch):
    """The error of a leg that cannot read its ledger does not say that nothing was sent."""
    sandbox.state.set_faults([{"kind": "drop_after"}])

    def lose_ledger():
        lost = LedgerError("The ledger has gone back. Nothing was sent")
        monkeypatch.setattr(group_attempt, "entered", Mock(side_effect=lost))
        return {}

    with somebody_answers(("Resend", lose_ledger)):
        ran = run_task(lambda: GroupSmsOperator(task_id="text", message="Hi", groups=["staff"], on_unknown="ask"))
    assert ran.state == "failed"
    assert "The ledger has gone back. Nothing more was sent" in ran.log


@needs_an_answer
def test_a_person_treats_a_text_to_groups_as_sent(sms_default, ledger_path, sandbox):
    """The attempt that sent it counts it as accepted, and not as sent by another one before."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    with somebody_answers("Treat as sent"):
        ran = run_task(lambda: GroupSmsOperator(task_id="text", message="Hi", groups=["staff"], on_unknown="ask"))
    with closing(sqlite3.connect(ledger_path)) as connection:
        query = "SELECT state, figures FROM sms_progress ORDER BY claimant_id DESC LIMIT 1"
        state, figures = connection.execute(query).fetchone()
    told = json.loads(figures)
    assert (ran.state, state) == ("success", "ended")
    assert {name: told[name] for name in ("accepted", "already_sent", "requests")} == {
        "accepted": 1,
        "already_sent": 0,
        "requests": 1,
    }
    assert "had sent this text to these groups already" not in ran.log


@pytest.mark.slow
@needs_an_answer
def test_what_an_earlier_attempt_lost_and_a_person_calls_sent_repeats_nothing(send, people, lost, witnessed):
    """A table without repeats has none in its summary: all of it was sent before, by decision or not."""
    source = people(1000)
    lost(1)
    assert counts(send(source, campaign="c", concurrency=1)) == {"accepted": 900, "unknown": 100}
    with somebody_answers("Treat as sent"):
        ran = send(source, campaign="c", on_unknown="ask")
    assert (ran.state, counts(ran)) == ("success", {"already_sent": 1000})
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
@needs_an_answer
def test_rows_that_repeat_a_message_of_before_the_wait_are_repeats(send, people, lost, tmp_path):
    """One row of each message that this attempt sent is accepted, each further one a repeat; others are sent before."""
    lost(1)
    send(people(100), campaign="c", concurrency=1)
    frame = pd.read_parquet(people(300))
    pd.concat([frame, frame]).to_parquet(tmp_path / "twice.parquet")
    with somebody_answers("Treat as sent"):
        ran = send(str(tmp_path / "twice.parquet"), campaign="c", on_unknown="ask")
    assert ran.state == "success"
    assert counts(ran) == {"accepted": 200, "duplicate": 200, "already_sent": 200}


@needs_an_answer
def test_other_tasks_that_failed_on_the_requests_are_named(send, people, lost):
    """Whoever answers sees in the log what else needs to be cleared."""
    source = people(200)
    lost(1)
    first = send(source, campaign="c", concurrency=1)
    with somebody_answers("Treat as sent"):
        ran = send(source, campaign="c", on_unknown="ask")
    assert (first.state, ran.state) == ("failed", "success")
    assert "clear it once this task has ended: task send of DAG dag_" in ran.log


@pytest.mark.slow
def test_what_the_command_closes_as_accepted_repeats_nothing(send, people, lost, ledger_path, witnessed):
    """Likewise where a person closes it by the command, and clears the task."""
    source = people(1000)
    lost(1)
    assert counts(send(source, campaign="c", concurrency=1)) == {"accepted": 900, "unknown": 100}
    with closing(open_sqlite(ledger_path)) as store:
        (unknown,) = unknown_requests(store)
        resolve(store, unknown.request_id, ACCEPTED, "ann")
    ran = send(source, campaign="c")
    assert (ran.state, counts(ran)) == ("success", {"already_sent": 1000})
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
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
    assert (ran.summary["requests"], ran.summary["parts"]) == (7, 450)
    assert ran.summary["cost_breakdown"] == {"Local": {"cost": 450.0, "quantity": 450}}


@needs_an_answer
def test_a_person_lets_the_task_fail(send, people, lost, ledger_path, witnessed):
    """The task fails without a retry, in words that name the person; the counts stay those before the answer."""
    lost(1)
    with somebody_answers("Fail"):
        ran = send(people(250), on_unknown="ask", retries=2, concurrency=1)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"accepted": 150, "unknown": 100})
    assert "ann decided that the task fails; 1 request stays unknown" in ran.log
    assert decisions(ledger_path) == [("unknown", "fail", "ann")]
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
@needs_an_answer
def test_what_is_lost_again_is_left_to_the_command_line(send, people, sandbox, ledger_path, witnessed):
    """Airflow would show the first question again, which is about another request: so the task fails, and says how."""
    sandbox.state.set_faults([{"kind": "drop_before"}, {"kind": "drop_after"}])
    with somebody_answers("Resend", "Resend", name="bob") as questions:
        ran = send(people(100), on_unknown="ask", concurrency=1, retries=1)
    assert (ran.state, ran.tries, counts(ran), len(questions)) == ("failed", 1, {"unknown": 100}, 1)
    assert ("airflow-sms ledger resolve" in ran.log, "request 2 may have been sent" in ran.log) == (True, True)
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
    assert question["subject"] == "Campaign `spring`: 200 messages may have been sent"
    assert question["body"].count("| 100 | 20") == 2
    assert "connection" in question["body"].lower()
    assert ("27820000" in question["body"], "Secretname" in question["body"]) == (False, False)


@needs_an_answer
@pytest.mark.slow
@pytest.mark.parametrize("how", ["opt out", "leave the source"])
def test_people_who_are_not_texted_again_are_asked_about_once(send, people, sandbox, tmp_path, how):
    """A person says to send again, and nobody of the request is to be texted now: the task fails, and asks no more."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    path, opted_out = people(200), tmp_path / "opted-out.parquet"
    frame = pd.read_parquet(path)
    frame.head(0).to_parquet(opted_out)

    def change():
        if how == "opt out":
            frame.head(100).to_parquet(opted_out)
        else:
            frame.tail(100).to_parquet(path)
        return {}

    with somebody_answers(("Resend", change)) as questions:
        ran = send(path, on_unknown="ask", concurrency=1, suppress=str(opted_out))
    assert (ran.state, len(questions)) == ("failed", 1)
    assert "100 messages in the ledger's request 1 may have been sent earlier by this task" in ran.log


def test_nothing_is_asked_when_all_is_known(send, people):
    """Where every answer came, nobody is bothered."""
    ran = send(people(150), on_unknown="ask")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 150})


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
    assert questions[0]["subject"] == "Campaign `c`: 1 message may have been sent"
    assert "so 1 message of campaign `c` was texted, or was not." in questions[0]["body"]
    assert (len(witnessed()), set(witnessed().values())) == (5, {1})


@pytest.mark.parametrize("event", [{}, {"chosen_options": []}, {"chosen_options": ["Other"]}, {"error": "x"}], ids=str)
def test_an_answer_that_is_none_of_the_options_is_refused(event):
    """Nothing is decided by an answer that cannot be read."""
    with pytest.raises(InputError, match="Resend, Treat as sent, Fail"):
        read_request_decision(event)


# A plan


def recorded(ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection:
        return connection.execute(
            "SELECT decision, decided_by, messages FROM sms_approval WHERE decision IS NOT NULL ORDER BY id"
        ).fetchall()


@needs_an_answer
def test_a_person_approves_the_plan(send, people, ledger_path, witnessed):
    """Nothing is sent until somebody has seen the plan; who it was stands in the ledger and in the XCom."""
    with somebody_answers("Send") as questions:
        ran = send(people(150), approve=True)
    (question,) = questions
    assert (ran.state, counts(ran), len(witnessed())) == ("success", {"accepted": 150}, 150)
    assert recorded(ledger_path) == [("send", "ann", 150)]
    approval = ran.xcoms["approval"]
    assert (approval["decision"], approval["by"], approval["plan"]) == ("send", "ann", ran.xcoms["plan"]["id"])
    assert question["options"] == ["Send", "Stop"]
    assert question["subject"].endswith("send 150 messages for about 150 credits?")


@needs_an_answer
def test_the_question_shows_the_plan_and_three_messages(send, people):
    """Numbers are masked, and the texts are shown as they are, not as Markdown."""
    with somebody_answers("Stop") as questions:
        send(people(150), "# Hi {first_name}\n*you*", approve=True)
    body = questions[0]["body"]
    assert "| to send | `150 messages in 2 requests` |" in body
    assert "    # Hi Name0\n    *you*" in body
    assert (body.count("    # Hi"), body.count("`2782")) == (3, 3)
    assert "27820000000" not in body


@needs_an_answer
def test_the_question_says_who_has_had_another_text(send, people):
    """In the plan, and once more below it; of a first send it says nothing of the kind."""
    with somebody_answers("Send", "Send") as questions:
        send(people(150), approve=True, campaign="spring")
        send(people(150), "Hello {first_name}", approve=True, campaign="spring")
    first, second = (question["body"] for question in questions)
    assert "| repeats | `150 people have had another text of this campaign, and get one more` |" in second
    assert (
        "**150 people have had another text of campaign `spring`.** If it is the same message in other words" in second
    )
    assert "another text" not in first


@needs_an_answer
def test_a_person_who_refuses_stops_the_task(send, people, ledger_path, sandbox):
    """Nobody is texted, there is no retry, and the refusal is on record."""
    with somebody_answers("Stop"):
        ran = send(people(150), approve=True, retries=2)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"not_sent": 150})
    assert sandbox.state.accepted == []
    assert recorded(ledger_path) == [("stop", "ann", 150)]
    assert "ann decided not to send campaign" in ran.log


@needs_an_answer
@pytest.mark.parametrize(("above", "asked"), [(150, 0), (149, 1), ({"cost": 149}, 1), ({"rows": 200, "cost": 150}, 0)])
def test_small_plans_need_no_approval(send, people, above, asked):
    """Only a plan beyond the threshold is asked about."""
    with somebody_answers("Send") as questions:
        ran = send(people(150), approve_above=above)
    assert (ran.state, len(questions)) == ("success", asked)


@needs_an_answer
def test_a_source_that_has_changed_is_asked_about_again(send, people, ledger_path, witnessed):
    """Who approves the first plan has not approved another one; who has seen that one names it in the form."""
    path = people(120)

    def change():
        frame = pd.read_parquet(path)
        pd.concat([frame, pd.DataFrame({"destination": ["27829999999"], "first_name": ["New"]})]).to_parquet(path)
        return {}

    with somebody_answers(("Send", change), "Send", ("Send", lambda: {"plan": latest_question()})) as questions:
        ran = send(path, approve=True)
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 121}, 3)
    assert recorded(ledger_path) == [("send", "ann", 120), ("send", "ann", 121)]
    assert "have changed since" in ran.log
    assert "into the field of the form" in ran.log
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
@needs_an_answer
def test_a_question_in_the_middle_of_a_send_does_not_say_that_nothing_was_sent(send, people, sandbox):
    """Airflow shows the first question again once the source has changed during a wait, and people were texted."""
    sandbox.state.set_balance(250)
    path = people(400)

    def change():
        frame = pd.read_parquet(path)
        pd.concat([frame, pd.DataFrame({"destination": ["27829999999"], "first_name": ["New"]})]).to_parquet(path)
        sandbox.state.set_balance(1000)

    waits = {"on_low_balance": "wait", "cost_per_part": 0.5}
    with (
        later(change, lambda: sum(request.operation == "balance" for request in sandbox.state.requests) > 2),
        somebody_answers("Send", "Send", "Stop") as questions,
    ):
        ran = send(path, approve=True, approval_timeout=3600, concurrency=1, **waits)
    assert (ran.state, counts(ran)["accepted"], len(questions)) == ("failed", 200, 3)
    for question in questions:
        assert question["body"].startswith("Plan ")
        assert "the task fails, and nothing more is sent." in question["body"].split("Without a decision")[1]
        assert "**Stop**: the task fails, and nothing more is sent." in question["body"]
    assert "it is plan" in ran.log
    assert "now. Nothing more was sent" in ran.log


@pytest.mark.slow
@needs_an_answer
def test_an_approval_is_of_no_more_people_than_were_shown(send, people, tmp_path, ledger_path, witnessed):
    """Where the list of those not to be texted has shrunk meanwhile, the person is asked again."""
    frame = pd.read_parquet(people(120))
    opted_out = tmp_path / "opted-out.parquet"
    frame.head(20).to_parquet(opted_out)

    def shrink():
        frame.head(5).to_parquet(opted_out)
        return {}

    def click():
        """Airflow goes on showing 100 messages, and the form names these."""
        return {"plan": questions[0]["params"]["plan"]["value"]}

    named = ("Send", lambda: {"plan": latest_question()})
    with somebody_answers(("Send", shrink), ("Send", click), "Send", named) as questions:
        ran = send(people(120), approve=True, suppress=str(opted_out))
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 115, "suppressed": 5}, 4)
    assert f"put {latest_question()} into the field of the form" in ran.log
    assert recorded(ledger_path) == [("send", "ann", 100), ("send", "ann", 100), ("send", "ann", 115)]
    assert "it would text 115 people now, some of whom it left out then" in ran.log


@pytest.mark.slow
@needs_an_answer
def test_an_answer_about_some_messages_is_none_about_as_many_others(send, people, tmp_path, witnessed):
    """The list swaps people twice: what the form named then does not mean those whom nobody has seen."""
    frame = pd.read_parquet(people(12))
    opted_out = tmp_path / "opted-out.parquet"
    frame.iloc[[0, 1, 2]].to_parquet(opted_out)
    seen = {}

    def hold_back(*places):
        frame.iloc[list(places)].to_parquet(opted_out)
        return seen

    def answer_about_the_second_plan():
        seen["plan"] = latest_question()
        return hold_back(1, 2)

    answers = (lambda: hold_back(0, 1), answer_about_the_second_plan, lambda: seen)
    with somebody_answers(*(("Send", each) for each in answers)) as questions:
        ran = send(people(12), approve=True, suppress=str(opted_out))
    assert (len(questions), ran.state, len(witnessed())) == (4, "failed", 0)


@pytest.fixture
def misses_a_question(monkeypatch):
    """Let Airflow not take the first question, so that it shows the one of the retry first."""
    from airflow.sdk.execution_time import hitl

    real, calls = hitl.upsert_hitl_detail, []

    def upsert(**question):
        calls.append(question)
        if len(calls) == 1:
            raise RuntimeError("the API server is restarted")
        return real(**question)

    monkeypatch.setattr(hitl, "upsert_hitl_detail", upsert)


@pytest.mark.slow
@needs_an_answer
@pytest.mark.usefixtures("misses_a_question")
def test_a_question_that_never_reached_airflow_is_not_the_first_one(send, people, tmp_path, sandbox):
    """The retry has another plan: whoever approves what Airflow shows is not asked again."""
    frame = pd.read_parquet(people(120))
    opted_out = tmp_path / "opted-out.parquet"
    frame.head(20).to_parquet(opted_out)
    retry = {"retries": 1, "on_retry_callback": lambda _: frame.head(5).to_parquet(opted_out)}
    with somebody_answers(("Send", lambda: {"plan": latest_question()}), "Stop") as questions:
        ran = send(people(120), approve=True, suppress=str(opted_out), **retry)
    assert "send 115 messages" in questions[0]["subject"]
    assert questions[0]["params"]["plan"]["value"] == latest_question()
    assert (ran.state, len(questions), len(sandbox.state.accepted)) == ("success", 1, 115)


@pytest.mark.slow
@needs_an_answer
@pytest.mark.usefixtures("misses_a_question")
@pytest.mark.parametrize("has_field", [True, False])
def test_nobody_is_texted_whom_the_question_that_airflow_shows_left_out(send, people, tmp_path, sandbox, has_field):
    """Airflow did not take a question about more people, who are in the plan again once the answer is there."""
    frame = pd.read_parquet(people(120))
    opted_out = tmp_path / "opted-out.parquet"
    frame.head(5).to_parquet(opted_out)

    def shrink():
        frame.head(5).to_parquet(opted_out)
        return {"plan": latest_question()} if has_field else {}

    retry = {"retries": 1, "on_retry_callback": lambda _: frame.head(20).to_parquet(opted_out)}
    with somebody_answers(("Send", shrink), "Stop") as questions:
        ran = send(people(120), approve=True, suppress=str(opted_out), **retry)
    assert "send 100 messages" in questions[0]["subject"]
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 2, [])


@needs_an_answer
def test_what_a_person_writes_into_the_field_is_not_logged(send, people):
    """It may be a number or a text; and it does not mean that the recipients have changed."""
    with somebody_answers(("Send", {"plan": "27820000001"}), "Stop"):
        ran = send(people(10), approve=True)
    assert ("27820000001" in ran.log, "have changed since" in ran.log) == (False, False)
    assert "ann approved a plan, but the field of the form names none that this task asked about" in ran.log


@pytest.mark.slow
@needs_an_answer
@pytest.mark.parametrize("listed", [range(0), range(10)], ids=["an empty list", "a list of the people texted"])
def test_an_approval_is_of_none_of_the_people_whom_the_list_held_back(send, people, tmp_path, listed, witnessed):
    """They are not in the approved number, even after so many of the others were texted that their places are free."""
    frame = pd.read_parquet(people(20))
    opted_out = tmp_path / "opted-out.parquet"
    frame.tail(10).to_parquet(opted_out)
    with somebody_answers("Send"):
        ran = send(people(20), approve=True, campaign="c", suppress=str(opted_out))
    assert counts(ran) == {"accepted": 10, "suppressed": 10}
    frame.iloc[list(listed)].to_parquet(opted_out)
    with somebody_answers("Stop") as questions:
        ran = send(people(20), approve=True, campaign="c", suppress=str(opted_out))
    assert (ran.state, len(questions), len(witnessed())) == ("failed", 1, 10)


@pytest.mark.slow
@needs_an_answer
def test_an_approval_is_of_no_second_text_under_another_key(send, people, witnessed):
    """Other key columns make every message of an approved campaign a new one: the person is asked about these."""
    with somebody_answers("Send"):
        assert send(people(20), approve=True, campaign="c").state == "success"
    with somebody_answers("Stop") as questions:
        ran = send(people(20), approve=True, campaign="c", key_columns=["first_name"])
    assert (ran.state, len(questions), set(witnessed().values())) == ("failed", 1, {1})


@pytest.mark.slow
@needs_an_answer
def test_a_list_that_swaps_people_is_asked_about(send, people, sandbox, tmp_path, witnessed):
    """As many people are left out as before, and one of the people who were left out then would be texted."""
    frame = pd.read_parquet(people(150))
    opted_out = tmp_path / "opted-out.parquet"
    frame.tail(1).to_parquet(opted_out)
    refused = {"kind": "status", "status": 403, "body": '{"errorCode": "InsufficientCredits"}'}
    sandbox.state.set_faults([{"kind": "none"}, refused])
    options = {"approve": True, "campaign": "c", "suppress": str(opted_out), "concurrency": 1}
    with somebody_answers("Send"):
        ran = send(people(150), **options)
    assert counts(ran) == {"accepted": 100, "not_sent": 49, "suppressed": 1}
    frame.iloc[[120]].to_parquet(opted_out)
    with somebody_answers("Stop") as questions:
        ran = send(people(150), **options)
    assert (len(questions), len(witnessed())) == (1, 100)


@pytest.mark.slow
@needs_an_answer
def test_an_approval_is_of_nobody_who_was_unknown(send, people, sandbox, witnessed):
    """The plan showed them as people who may have been texted, and not among the messages to send."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    frame = pd.read_parquet(people(200))
    assert send(frame.head(100), campaign="c", concurrency=1).state == "failed"
    with somebody_answers("Send"):
        ran = send(people(200), campaign="c", approve=True)
    assert counts(ran) == {"accepted": 100, "unknown": 100}
    with somebody_answers("Stop") as questions:
        ran = send(people(200), campaign="c", approve=True, on_unknown="resend")
    assert (len(questions), set(witnessed().values())) == (1, {1})


@needs_an_answer
def test_an_approval_holds_while_more_people_opt_out(send, people, sandbox, tmp_path):
    """A retry texts the rest of the approved people, without the people who opted out since, and asks nobody."""
    frame = pd.read_parquet(people(150))
    opted_out = tmp_path / "opted-out.parquet"
    frame.tail(10).to_parquet(opted_out)
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "status", "status": 500}])
    with somebody_answers("Send"):
        ran = send(people(150), approve=True, campaign="c", suppress=str(opted_out), concurrency=1)
    assert ran.state == "failed"
    # One person who was texted, and one who was not.
    pd.concat([frame.head(1), frame.tail(11)]).to_parquet(opted_out)
    with somebody_answers() as questions:
        ran = send(people(150), approve=True, campaign="c", suppress=str(opted_out), on_unknown="resend")
    assert (ran.state, questions) == ("success", [])
    assert counts(ran) == {"accepted": 39, "already_sent": 99, "suppressed": 12}


@needs_an_answer
def test_nothing_but_the_approved_plan_is_sent(send, people, sandbox, witnessed, balance_tells_later, short_claims):
    """The balance shows that 100 unknown people were not texted: the plan did not have them, so the next one does."""
    sandbox.state.set_faults([{"kind": "drop_before"}])
    frame = pd.read_parquet(people(105))
    assert send(frame.head(100), campaign="c", concurrency=1).state == "failed"
    options = {"approve": True, "on_unknown": "reconcile"}
    with somebody_answers("Send"):
        ran = send(people(105), campaign="c", concurrency=1, **options)
    assert (ran.state, counts(ran), len(witnessed())) == ("failed", {"accepted": 5, "not_sent": 100}, 5)
    assert "100 messages may be sent now, and could not when the plan was made" in ran.log
    reader = ledger_reader()
    told = reasons(find_campaign(reader, 1), time.time(), latest_asked_plan(reader, 1))
    assert "100 rows not sent. Clear the task: it sends what was approved, and asks about the rest" in told[-1]
    with somebody_answers("Send") as questions:
        ran = send(people(105), campaign="c", **options)
    assert (ran.state, len(questions)) == ("success", 1)
    assert counts(ran) == {"accepted": 100, "already_sent": 5}


@needs_an_answer
def test_after_a_no_a_small_plan_is_asked_about_too(send, people, witnessed):
    """Else a retry after a process that was killed, or a table that shrank, would send what a person stopped."""
    options = {"approve_above": 100, "campaign": "c"}
    with somebody_answers("Stop"):
        assert send(people(120), **options).state == "failed"
    with somebody_answers("Send") as questions:
        ran = send(people(10), **options)
    assert (ran.state, len(questions), len(witnessed())) == ("success", 1, 10)
    with somebody_answers() as questions:
        ran = send(people(15), **options)
    assert (ran.state, questions, len(witnessed())) == ("success", [], 15)


@needs_an_answer
def test_a_plan_without_messages_is_no_approval_of_later_ones(send, people, witnessed, ledger_path):
    """Everybody was texted too recently when it was made; an interval that ends since makes it no other plan."""
    cap = {"campaign_group": "g", "min_interval": timedelta(days=7)}
    assert send(people(10), "first", campaign="one", **cap).state == "success"

    class Hours(OpensLater):
        def closed_until(self, now, destination=None):
            with closing(sqlite3.connect(ledger_path)) as connection:
                connection.execute("UPDATE sms_contact SET claimed_at = claimed_at - 8 * 86400")
                connection.commit()

    ran = send(people(10), "second", campaign="two", approve=True, max_cost=1, send_window=Hours(seconds=2), **cap)
    assert set(witnessed().values()) == {1}
    assert not [text for _, text in witnessed() if text == "second"]
    assert sum(counts(ran).values()) == 10


@needs_an_answer
def test_a_no_counts_whatever_has_become_of_the_source(send, people, ledger_path, sandbox):
    """Also where the plan has since become too small to be asked about: it is on record for the plan that was shown."""
    path = people(120)

    def shrink():
        pd.read_parquet(path).head(10).to_parquet(path)
        return {}

    with somebody_answers(("Stop", shrink)) as questions:
        ran = send(path, approve_above=100)
    assert (ran.state, sandbox.state.accepted) == ("failed", [])
    assert recorded(ledger_path) == [("stop", "ann", 120)]
    assert f"Plan `{ran.xcoms['approval']['plan']}`:" in questions[0]["body"]


@needs_an_answer
@pytest.mark.parametrize("named", [True, False])
def test_a_no_is_on_record_for_the_plan_that_the_form_named(send, people, ledger_path, named):
    """Or else for the first one that the task asked about."""
    path = people(120)

    def shrink():
        pd.read_parquet(path).head(110).to_parquet(path)
        return {}

    stop = ("Stop", lambda: {"plan": latest_question() if named else "the old one"})
    with somebody_answers(("Send", shrink), stop):
        send(path, approve=True)
    assert recorded(ledger_path) == [("send", "ann", 120), ("stop", "ann", 110 if named else 120)]


FAILURES = {
    "the ledger": ("entered", LedgerError("The ledger is locked")),
    "Airflow": ("pull_own", AirflowException("The API server is restarted")),
}
"""What an attempt calls, and the error with which that ends, by what fails."""


@pytest.mark.slow
@needs_an_answer
@pytest.mark.parametrize("no", ["Stop", NOBODY])
@pytest.mark.parametrize("fails", FAILURES)
def test_a_no_counts_even_if_the_leg_after_it_fails_before_its_plan(send, people, sandbox, ledger_path, fails, no):
    """No retry follows, which would send a table that has become too small to be asked about."""
    path = people(120)

    class Fail(BaseNotifier):
        def notify(self, context):
            pd.read_parquet(path).head(10).to_parquet(path)
            name, error = FAILURES[fails]
            patch.setattr(f"airflow_provider_sms.execution.attempt.{name}", Mock(side_effect=error))

    options = {"approve_above": 100, "approval_timeout": 3600, "approval_notifiers": Fail()}
    with pytest.MonkeyPatch.context() as patch, somebody_answers(no):
        ran = send(path, **options, retries=1, on_retry_callback=lambda _: patch.undo())
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "No retry follows, since nobody approved the plan" in ran.log
    assert recorded(ledger_path) == []


@needs_an_answer
@pytest.mark.parametrize(("answer", "tries", "sent"), [("Send", 2, 120), ("Stop", 1, 0)])
def test_an_answer_holds_although_the_balance_cannot_be_read_after_it(
    send, people, sandbox, ledger_path, answer, tries, sent
):
    """A retry would ask the same person again."""

    def unreadable():
        sandbox.state.set_faults([{"kind": "status", "status": 503, "on": "balance"}])
        return {}

    with somebody_answers((answer, unreadable), "Send") as questions:
        ran = send(people(120), approve=True, on_low_balance="fail", retries=1)
    assert (ran.state, ran.tries, len(questions)) == ("success" if sent else "failed", tries, 1)
    assert len(sandbox.state.accepted) == sent
    assert recorded(ledger_path) == [(answer.lower(), "ann", 120)]


@needs_an_answer
def test_an_approval_holds_although_the_source_cannot_be_read_after_it(send, people, sandbox, ledger_path, monkeypatch):
    """A retry would ask the same person again."""
    open_scan, scans = attempt.open_scan, []

    def fail_once(*arguments, **options):
        scans.append(arguments)
        if len(scans) == 2:
            raise SourceUnavailableError("the database is restarted")
        return open_scan(*arguments, **options)

    monkeypatch.setattr(attempt, "open_scan", fail_once)
    with somebody_answers("Send", "Send") as questions:
        ran = send(people(20), approve=True, retries=1)
    assert (ran.state, ran.tries, len(questions), len(sandbox.state.accepted)) == ("success", 2, 1, 20)
    assert recorded(ledger_path) == [("send", "ann", 20)]


@needs_an_answer
def test_another_plan_than_the_approved_one_is_asked_about_however_small(send, people, sandbox):
    """Ann said yes to others: nobody is texted whom she was not shown."""
    path = people(20)

    def change():
        pd.DataFrame({"destination": ["27840000001"], "first_name": ["New"]}).to_parquet(path)
        return {}

    with somebody_answers(("Send", change), "Stop") as questions:
        ran = send(path, approve_above=10)
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 2, [])


def replace_people(path, count):
    """Put other people into a file."""
    numbers = [str(27_830_000_000 + each) for each in range(count)]
    pd.DataFrame({"destination": numbers, "first_name": "New"}).to_parquet(path)
    return {}


@needs_an_answer
@pytest.mark.parametrize("answer", ["Send", "Stop"])
def test_after_a_decision_that_does_not_count_a_small_plan_is_asked_about_too(send, people, sandbox, answer):
    """Bob may not decide: the question is still open, however small the table has become."""
    path = people(20)
    with somebody_answers((answer, lambda: replace_people(path, 5), "bob"), ("Stop", {}, "ann")) as questions:
        ran = send(path, approve_above=10, approvers=["ann"])
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 2, [])
    assert "The decision of bob does not count" in ran.log


@pytest.mark.slow
@needs_an_answer
def test_another_plan_after_a_wait_is_asked_about_however_small(send, people, witnessed, sandbox):
    """Ann said yes to 150 people; these were replaced while the task waited for its hours in the middle of the send."""
    path = people(150)
    hours = Closes(sandbox, lambda: replace_people(path, 90), requests=1)
    with somebody_answers("Send", ("Stop", lambda: {"plan": latest_question()})) as questions:
        ran = send(path, approve_above=100, send_window=hours, concurrency=1)
    assert (ran.state, len(questions), len(witnessed())) == ("failed", 2, 100)
    assert counts(ran) == {"not_sent": 90}
    assert "ann decided not to send more of campaign" in ran.log


@needs_an_answer
@pytest.mark.parametrize("place", ["close_earlier", "Preflight.read_account", "plan_send"])
def test_an_approval_is_on_record_before_anything_else_can_fail(send, people, monkeypatch, place):
    """A leg that fails right after it, anywhere, is no reason to ask again."""
    holder, _, name = place.rpartition(".")
    owner = getattr(attempt, holder) if holder else attempt
    real = getattr(owner, name)

    class Fail(BaseNotifier):
        def notify(self, context):
            def fails(*arguments, **named):
                monkeypatch.setattr(owner, name, real)
                raise LedgerError("The ledger is locked")

            monkeypatch.setattr(owner, name, fails)

    with somebody_answers("Send") as questions:
        ran = send(people(20), approve=True, approval_notifiers=Fail(), retries=1, on_unknown="reconcile")
    assert (ran.state, ran.tries, len(questions), counts(ran)) == ("success", 2, 1, {"accepted": 20})


@needs_an_answer
def test_nobody_is_asked_again_where_the_service_refuses_the_account(send, people, sandbox):
    """A second question about a table that has changed could lead to no text."""
    path = people(20)

    def change():
        sandbox.state.set_faults([{"kind": "status", "on": "balance", "status": 401}])
        return replace_people(path, 5)

    with somebody_answers(("Send", change)) as questions:
        ran = send(path, approve=True)
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 1, [])
    assert "HTTP 401" in ran.log


@needs_an_answer
def test_an_approval_holds_for_the_tries_after_it(send, people, sandbox, ledger_path):
    """A retry sends the rest of what was approved, and asks nobody."""
    sandbox.state.set_faults([{"kind": "status", "status": 403, "body": '{"errorCode": "InsufficientCredits"}'}])
    with somebody_answers("Send") as questions:
        ran = send(people(150), approve=True, retries=1, concurrency=1)
    assert (ran.state, ran.tries, len(questions)) == ("success", 2, 1)
    assert ran.xcoms["approval"]["by"] == "ann"


@needs_an_answer
def test_nothing_to_send_needs_no_approval(send, people):
    """A campaign that is sent already is not asked about again."""
    path = people(20)
    send(path, campaign="c")
    with somebody_answers() as questions:
        ran = send(path, campaign="c", approve=True)
    assert (ran.state, counts(ran), questions) == ("success", {"already_sent": 20}, [])


@needs_an_answer
def test_a_source_that_is_empty_after_the_approval_is_no_success(send, people, ledger_path, sandbox):
    """A person approved messages, and none of them was sent: the task fails, and a retry does not hide it.

    The approval stays on record: it holds once the source has its rows again.
    """
    path = people(2)

    def empty():
        pd.read_parquet(path).head(0).to_parquet(path)
        return {}

    with somebody_answers(("Send", empty)) as questions:
        ran = send(path, approve=True, retries=1)
    assert (ran.state, ran.tries, len(questions), sandbox.state.accepted) == ("failed", 1, 1, [])
    assert "has no message to send, so nothing more was sent" in ran.log
    assert recorded(ledger_path) == [("send", "ann", 2)]


@pytest.mark.slow
@needs_an_answer
def test_a_source_that_is_empty_after_a_wait_for_approved_hours_is_no_success(send, people, ledger_path, sandbox):
    """The approval was given before the task waited once more: the source can lose its rows in that wait, too."""
    path = people(2)

    class Hours(OpensLater):
        def closed_until(self, now, destination=None):
            pd.read_parquet(path).head(0).to_parquet(path)
            return super().closed_until(now, destination)

    with somebody_answers("Send"):
        ran = send(path, approve=True, retries=1, send_window=Hours(seconds=2))
    assert (ran.state, ran.tries, sandbox.state.accepted) == ("failed", 1, [])
    assert "has no message to send, so nothing more was sent" in ran.log
    assert recorded(ledger_path) == [("send", "ann", 2)]


@pytest.mark.slow
@needs_an_answer
@pytest.mark.parametrize("is_emptied", [False, True])
def test_what_is_decided_about_another_mapped_copy_says_nothing_of_this_one(
    send, people, ledger_path, sandbox, is_emptied
):
    """The copies share a campaign: an approval holds, whatever plan of the campaign was approved after it."""
    path = people(2)

    class Hours(OpensLater):
        def closed_until(self, now, destination=None):
            with closing(open_sqlite(ledger_path)) as store:
                record_approval(store, "c", PlanExtent("f0f0f0f0f0f0", 5), SEND, "bob")
            if is_emptied:
                pd.read_parquet(path).head(0).to_parquet(path)
            return super().closed_until(now, destination)

    with somebody_answers("Send") as questions:
        ran = send(path, campaign="c", approve=True, retries=1, send_window=Hours(seconds=2))
    assert (ran.state, len(questions)) == ("failed" if is_emptied else "success", 1)
    assert len(sandbox.state.accepted) == (0 if is_emptied else 2)
    assert ("has no message to send, so nothing more was sent" in ran.log) is is_emptied


@needs_an_answer
def test_after_a_stop_an_earlier_approval_is_asked_for_again(send, people, ledger_path, sandbox):
    """A person who stops the campaign does not expect that a task of it goes on by what was approved before."""
    path = people(150)
    sandbox.state.set_faults([{"kind": "status", "status": 403, "body": '{"errorCode": "InsufficientCredits"}'}])
    with somebody_answers("Send"):
        assert send(path, campaign="c", approve=True, concurrency=1).state == "failed"
    with closing(open_sqlite(ledger_path)) as store:
        record_approval(store, "c", PlanExtent("f0f0f0f0f0f0", 5), STOP, "bob")
    with somebody_answers("Stop") as questions:
        ran = send(path, campaign="c", approve=True)
    assert (ran.state, len(questions)) == ("failed", 1)


@needs_an_answer
def test_an_approved_plan_of_which_nobody_is_left_is_done(send, people, tmp_path):
    """Where all of its people have opted out meanwhile, there is nothing to fail for."""
    opted_out = tmp_path / "opted-out.parquet"
    frame = pd.read_parquet(people(2))
    frame.head(0).to_parquet(opted_out)

    def opt_out():
        frame.to_parquet(opted_out)
        return {}

    with somebody_answers(("Send", opt_out)):
        ran = send(people(2), approve=True, suppress=str(opted_out))
    assert (ran.state, counts(ran)) == ("success", {"suppressed": 2})


@needs_an_answer
def test_an_error_about_an_approved_plan_does_not_say_that_the_source_is_empty(send, people, tmp_path):
    """All of its people are in the source and have opted out, as has a person who was added."""
    path, opted_out = people(10), tmp_path / "opted-out.parquet"
    frame = pd.read_parquet(path)
    frame.head(0).to_parquet(opted_out)

    def change():
        more = pd.concat([frame, pd.DataFrame({"destination": ["27829999999"], "first_name": ["New"]})])
        more.to_parquet(path)
        more.to_parquet(opted_out)
        return {}

    with somebody_answers(("Send", change)):
        ran = send(path, approve=True, suppress=str(opted_out))
    assert (ran.state, counts(ran)) == ("failed", {"suppressed": 11})
    assert f"and plan {ran.xcoms['plan']['id']} has no message to send" in ran.log


@needs_an_answer
def test_a_report_does_not_say_that_an_approved_plan_was_not_approved(send, people, tmp_path):
    """Only people who were texted too recently are left of it: the report has the task's error."""
    report, path = tmp_path / "report.parquet", people(12)
    cap = {"campaign_group": "g", "min_interval": timedelta(days=7)}
    frame = pd.read_parquet(path)
    assert send(frame.head(2), "first", campaign="one", **cap).state == "success"

    def leave():
        frame.head(2).to_parquet(path)
        return {}

    with somebody_answers(("Send", leave)):
        ran = send(path, campaign="two", approve=True, report=str(report), **cap)
    assert ran.state == "failed"
    (reason,) = set(pd.read_parquet(report)["reason"])
    assert "ann approved plan" in reason


def test_a_decision_names_its_plan():
    """An answer without the form's field names none."""
    event = {"chosen_options": ["Send"], "responded_by_user": {"name": "ann"}, "params_input": {"plan": " ab "}}
    assert read_plan_decision(event, ANYBODY) == PlanDecision(send=True, by="ann", plan="ab")
    assert read_plan_decision({**event, "params_input": {}}, ANYBODY).plan is None
    with pytest.raises(InputError, match="must be one of Send, Stop"):
        read_plan_decision({**event, "chosen_options": []}, ANYBODY)


# Who may decide, who hears of it, and for how long


@needs_an_answer
def test_a_person_who_may_not_decide_sends_nothing(send, people, ledger_path, witnessed):
    """Neither their yes nor their no counts: the task asks again, and the ledger has the approver alone."""
    with somebody_answers(("Send", {}, "eve"), ("Stop", {}, "eve"), ("Send", {}, "ann")) as questions:
        ran = send(people(150), approve=True, approvers=["ann", {"id": "9", "name": "bob`"}])
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 150}, 3)
    assert questions[0]["assignees"] == [{"id": "ann", "name": "ann"}, {"id": "9", "name": "bob`"}]
    assert "Only these may decide: `ann`, `` bob` ``." in questions[0]["body"]
    assert ran.log.count("The decision of eve does not count, since that user is not one of approvers") == 2
    assert "their ids in Airflow, which does not check that they exist: ann, 9\n" in ran.log
    assert (recorded(ledger_path), set(witnessed().values())) == ([("send", "ann", 150)], {1})


@needs_an_answer
def test_an_approval_on_record_counts_only_if_it_is_an_approvers(send, people, ledger_path, sandbox):
    """A task of the same campaign whom anybody may answer does not open one with approvers."""
    path = people(150)
    sandbox.state.set_faults([{"kind": "status", "status": 403, "body": '{"errorCode": "InsufficientCredits"}'}])
    with somebody_answers(("Send", {}, "eve")):
        assert send(path, campaign="c", approve=True, concurrency=1).state == "failed"
    with somebody_answers("Stop", name="ann") as questions:
        ran = send(path, campaign="c", approve=True, approvers=["7"])
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 1, [])
    assert "eve has approved plan" in ran.log
    assert [who for _, who, _ in recorded(ledger_path)] == ["eve", "ann"]


@needs_an_answer
def test_a_person_who_may_not_decide_leaves_requests_unknown(send, people, lost, ledger_path, witnessed):
    """The question about unknown requests is asked again, and nothing is texted again meanwhile."""
    lost(1)
    with somebody_answers(("Resend", {}, "eve"), ("Treat as sent", {}, "ann")) as questions:
        ran = send(people(150), on_unknown="ask", concurrency=1, approvers=["ann"])
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 150}, 2)
    assert (decisions(ledger_path), set(witnessed().values())) == ([("accepted", "accepted", "ann")], {1})


@needs_an_answer
def test_of_groups_only_approvers_decide_too(sms_default, ledger_path, sandbox, witnessed):
    """A text to groups is not sent again by the decision of anybody else."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    with somebody_answers(("Resend", {}, "eve"), ("Fail", {}, "ann")) as questions:
        ran = run_task(
            lambda: GroupSmsOperator(
                task_id="text", message="Hi all", groups=["staff"], on_unknown="ask", approvers=["ann"]
            )
        )
    assert (ran.state, len(questions), set(witnessed().values())) == ("failed", 2, {1})
    assert decisions(ledger_path) == [("unknown", "fail", "ann")]


@needs_an_answer
def test_a_plan_that_nobody_decides_about_in_time_is_not_sent(send, people, ledger_path, sandbox, tmp_path):
    """The task fails without a retry and says so; the rows are in the report, and no decision is on record."""
    report = tmp_path / "report.parquet"
    with somebody_answers(NOBODY) as questions:
        ran = send(people(150), campaign="c", approve=True, approval_timeout=3600, retries=2, report=str(report))
    assert (ran.state, ran.tries, counts(ran), sandbox.state.accepted) == ("failed", 1, {"not_sent": 150}, [])
    assert "Nobody decided about campaign c within approval_timeout, so nothing was sent" in ran.log
    assert "Without a decision within 1:00:00 (h:mm:ss), the task fails, and nothing" in questions[0]["body"]
    assert (questions[0]["timeout"] is not None, recorded(ledger_path), len(pd.read_parquet(report))) == (True, [], 150)


@needs_an_answer
def test_a_decision_that_does_not_count_leaves_the_time_as_it_was(send, people):
    """Who may not decide cannot keep a question open by answering it again and again."""
    with somebody_answers(("Send", {}, "bob"), "Stop") as questions:
        send(people(150), approve=True, approvers=[{"id": "7", "name": "ann"}], approval_timeout=3600)
    first, again = (each["resumes_with"] for each in questions)
    assert ("deadline" in str(first), first) == (True, again)


@pytest.mark.skipif(
    not ASKS_WITHOUT_TRIGGER, reason="before Airflow 3.3 a trigger waits, and takes the deadline as it is"
)
def test_a_question_that_is_asked_again_has_the_time_that_is_left(monkeypatch):
    """It is counted to the deadline, and not anew."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    monkeypatch.setattr("airflow.sdk.execution_time.hitl.upsert_hitl_detail", lambda **_: None)
    before = datetime.now(timezone.utc)
    deadline = before + timedelta(minutes=10)
    rules = DecisionRules(QuestionOptions(timeout=timedelta(hours=1)))
    plan = SimpleNamespace(campaign="c", id="1", to_send=1, cost=Decimal(1), lines=list, repeats=0)
    with pytest.raises(TaskAwaitingInput) as caught:
        ask_about_plan({"ti": SimpleNamespace(id="1")}, rules, plan, [], name="1-0", deadline=deadline)
    assert deadline - datetime.now(timezone.utc) <= caught.value.timeout <= deadline - before


@pytest.mark.skipif(
    not ASKS_WITHOUT_TRIGGER, reason="before Airflow 3.3 a trigger waits, and takes the deadline as it is"
)
def test_a_question_after_the_time_ends_at_once(monkeypatch):
    """Airflow takes no time below zero; a task may need longer than was left to ask again."""
    from airflow.sdk.exceptions import TaskAwaitingInput

    monkeypatch.setattr("airflow.sdk.execution_time.hitl.upsert_hitl_detail", lambda **_: None)
    past = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rules = DecisionRules(QuestionOptions(timeout=timedelta(hours=1)))
    context = {"ti": SimpleNamespace(id="1")}
    plan = SimpleNamespace(campaign="c", id="1", to_send=1, cost=Decimal(1), lines=list, repeats=0)
    with pytest.raises(TaskAwaitingInput) as caught:
        ask_about_plan(context, rules, plan, [], name="1-0", deadline=past)
    assert (caught.value.timeout, caught.value.kwargs) == (timedelta(seconds=1), {"deadline": past.isoformat()})


def test_a_decision_after_the_time_does_not_count():
    """Airflow takes one for as long as its scheduler has not looked."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    event = {"chosen_options": ["Send"], "responded_by_user": {"id": "1", "name": "ann"}, "responded_at": at}
    assert read_plan_decision(event, ANYBODY, at).send
    late = read_plan_decision(event, ANYBODY, at - timedelta(seconds=1))
    assert (late.send, late.expired) == (False, True)
    assert read_plan_decision({**event, "responded_at": None}, ANYBODY, at).expired


@needs_an_answer
def test_those_who_are_notified_find_the_question(send, people, ledger_path):
    """Each notifier is called once for a question, after it was asked; one that fails stops nothing."""
    seen = []

    class Tell(BaseNotifier):
        template_fields = ("campaign", "task")

        def __init__(self, campaign, error=None):
            super().__init__()
            self.campaign, self.task, self.error = campaign, "{{ ti.task_id }}", error

        def notify(self, context):
            seen.append((self.campaign, self.task, context["ti"].xcom_pull(key="plan", task_ids="send")["to_send"]))
            if self.error is not None:
                raise self.error

    notifiers = [Tell("{{ run_id }}", RuntimeError("27820000001")), Tell("second")]
    with somebody_answers("Send") as questions:
        ran = send(people(150), approve=True, approval_notifiers=notifiers)
    assert (ran.state, len(questions), len(seen)) == ("success", 1, 2)
    assert seen[1] == ("second", "send", 150)
    assert "Tell failed with RuntimeError: nobody was notified by it" in ran.log


@needs_an_answer
def test_with_four_eyes_the_person_who_triggered_the_run_sends_nothing(send, people, ledger_path, sandbox):
    """Their approval does not count, and somebody else's does."""
    myself = "dag_test"  # whom dag.test() names
    with somebody_answers(("Send", {}, myself), ("Stop", {}, "ann")) as questions:
        ran = send(people(150), approve=True, four_eyes=True)
    assert (ran.state, len(questions), sandbox.state.accepted) == ("failed", 2, [])
    assert f"The decision of {myself} does not count, since that user triggered this run" in ran.log
    assert f"`{myself}` triggered this run, and may not decide." in questions[0]["body"]
    assert recorded(ledger_path) == [("stop", "ann", 150)]


# Texts of others in a question

HOSTILE = r"![x](http://evil.example/x.png) | [Sign in](http://evil.example/) <b>`www.evil.example`\|" + chr(0x202E)


def rendered(question):
    """Return the kinds of everything in a question, as Markdown has them."""
    parser = MarkdownIt("gfm-like")
    tokens = [each for part in ("subject", "body") for each in parser.parse(question[part])]
    return {each.type for token in tokens for each in (token, *(token.children or ()))}


def rows_of(question):
    """Return the number of cells of each row in a question's table."""
    tokens = [each.type for each in MarkdownIt("gfm-like").parse(question["body"])]
    rows = " ".join(tokens).split("tr_open")[1:]
    return [row.split("tr_close")[0].count("_open") for row in rows]


@needs_an_answer
def test_texts_of_others_are_code_in_a_question_about_requests(send, people, sandbox):
    """The campaign's name and the service's words bring no image, no link and no HTML, and stay in their place."""
    body = json.dumps({"errorCode": "Broken", "errorMessage": HOSTILE})
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "status", "status": 500, "body": body}])
    with somebody_answers("Treat as sent") as questions:
        ran = send(people(250), on_unknown="ask", campaign=HOSTILE[:-1], concurrency=1)
    (question,) = questions
    assert (ran.state, question["body"].count("evil") > 3) == ("success", True)
    assert not rendered(question) & {"image", "link_open", "html_inline", "html_block"}
    assert rows_of(question) == [5, 5]


@needs_an_answer
def test_texts_of_others_are_code_in_a_question_about_a_plan(send, people):
    """So are the texts of its messages, and the characters that its table names."""
    with somebody_answers("Stop") as questions:
        send(people(9), HOSTILE.replace("{", "") + "\n\n# one\r- two", campaign=HOSTILE[:-1], approve=True)
    (question,) = questions
    assert not rendered(question) & {"image", "link_open", "html_inline", "html_block"}
    assert (chr(0x202E) in question["body"].split("Some of the messages")[0], set(rows_of(question))) == (False, {2})


# What the balance says


@pytest.fixture
def question_about(monkeypatch):
    """Return the question about requests, each with its id, its number of messages and its evidence."""

    def question_about(*asked):
        from airflow.sdk.exceptions import TaskAwaitingInput

        shown = {}
        monkeypatch.setattr("airflow.sdk.execution_time.hitl.upsert_hitl_detail", lambda **named: shown.update(named))
        rows = [
            RequestRow(number, "c", "bulk", "unknown", count, None, count, 0.0, 1.0, None, "lost", "d", "t", "r", -1, 1)
            for number, count, _ in asked
        ]
        rows = [row._replace(evidence=evidence) for row, (*_, evidence) in zip(rows, asked, strict=True)]
        with pytest.raises(TaskAwaitingInput):
            ask_about_requests({"ti": SimpleNamespace(id="1")}, ANYBODY, "c", sum(r.messages for r in rows), rows)
        return shown

    return question_about


def told(verdict, words):
    return KeptEvidence(verdict, words, 1_700_000_000.0)


@needs_an_answer
def test_a_question_shows_what_the_balance_says(question_about):
    """First of all the verdict of each request, then each sentence once; the service's list stays the second step."""
    both = told("charged", "The balance fell by 200: requests 4 and 6 were taken.")
    body = question_about((4, 100, both), (6, 100, both), (7, 50, told("undecided", "Not settled yet.")))["body"]
    assert "| 4 | `charged` | 100 | 1970-01-01 00:00:00 | `lost` |" in body
    assert "| 7 | `undecided` | 50 |" in body
    assert (body.count(both.words), "- `Not settled yet.`" in body) == (1, True)
    first, second = body.index("account's balance"), body.index("the service's own list of sent messages")
    assert first < second < body.index("| 4 |") < body.index(both.words)


@needs_an_answer
def test_a_balance_that_decides_nothing_is_not_the_first_step(question_about):
    """Its verdict is shown all the same, with the reason."""
    body = question_about((1, 9, told("undecided", "No balance is known before it.")), (2, 9, None))["body"]
    assert "Everything else is done. The service's own list of sent messages tells which." in body
    assert ("| 1 | `undecided` | 9 |" in body, "- `No balance is known before it.`" in body) == (True, True)


@needs_an_answer
def test_a_balance_that_may_tell_later_is_a_step(question_about):
    """Where none was read since the last moment at which the requests may be charged for."""
    waits = "It may be charged for until 21:13:34 UTC, and no later balance is known."
    body = question_about((1, 9, told("undecided", waits)))["body"]
    step = "`airflow-sms ledger unknown --read-balance` may tell after that time."
    assert body.index("service's own list") < body.index(step) < body.index(waits)
    assert step not in question_about((1, 9, None))["body"]


@needs_an_answer
def test_one_answer_for_requests_that_differ_is_warned_of(question_about):
    """It is for all of them; those that need another one can be closed before."""
    taken, lost = told("charged", "Taken."), told("not_charged", "Not taken.")
    warning = "If they need different answers, close some of them first"
    assert warning in question_about((1, 9, taken), (2, 9, lost))["body"]
    assert warning in question_about((1, 9, taken), (2, 9, None))["body"]
    assert warning not in question_about((1, 9, taken), (2, 9, taken))["body"]


@needs_an_answer
def test_a_question_without_evidence_is_as_ever(question_about):
    """A post-paid account gives none, so there is no empty column."""
    body = question_about((1, 9, None), (2, 9, None))["body"]
    assert "Everything else is done. The service's own list of sent messages tells which." in body
    assert ("balance" in body, "| 1 | 9 | 1970" in body) == (False, True)


@needs_an_answer
def test_the_words_of_evidence_are_code_in_a_question(question_about):
    """No text that comes out of the ledger is read as Markdown."""
    question = question_about((1, 9, told(HOSTILE, HOSTILE)))
    assert not rendered(question) & {"image", "link_open", "html_inline", "html_block"}
    assert rows_of(question) == [5, 5]


# An Airflow that cannot ask
