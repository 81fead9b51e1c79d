from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from support.airflow import stored_xcoms
from support.people import somebody_answers
from support.versions import CAN_ASK, PARKS_WHO_ASKS

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.execution.human_input import Verdict, read_verdict
from airflow_provider_sms.operators.bulk_options import check_bulk_arguments
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS

needs_an_answer = pytest.mark.skipif(
    not PARKS_WHO_ASKS,
    reason="before Airflow 3.3 nobody can answer in dag.test(); acceptance/test_asking.py holds that a person is asked",
)


def counts(ran):
    assert ran.summary["rows"] == sum(ran.summary[name] for name in COUNTS)
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def recorded(ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection:
        return connection.execute(
            "SELECT decision, decided_by, messages FROM sms_approval WHERE decision IS NOT NULL ORDER BY id"
        ).fetchall()


def latest_plan(task_id="send"):
    """Look at the XCom, as a person would."""
    rows = stored_xcoms(key="plan", task_id=task_id)
    return max(rows, key=lambda row: row[0].timestamp)[1]["id"]


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
    assert "| to send | 150 messages in 2 requests |" in body
    assert "    # Hi Name0\n    *you*" in body
    assert (body.count("    # Hi"), body.count("`2782")) == (3, 3)
    assert "27820000000" not in body


@needs_an_answer
def test_a_person_who_refuses_stops_the_task(send, people, ledger_path, sandbox):
    """Nobody is texted, there is no retry, and the refusal is on record."""
    with somebody_answers("Stop"):
        ran = send(people(150), approve=True, retries=2)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"not_sent": 150})
    assert sandbox.state.accepted == []
    assert recorded(ledger_path) == [("stop", "ann", 150)]
    assert "ann decided that campaign" in ran.log


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

    with somebody_answers(("Send", change), "Send", ("Send", lambda: {"plan": latest_plan()})) as questions:
        ran = send(path, approve=True)
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 121}, 3)
    assert recorded(ledger_path) == [("send", "ann", 121)]
    assert "have changed since" in ran.log
    assert "put its id" in ran.log
    assert set(witnessed().values()) == {1}


@needs_an_answer
def test_an_approval_is_of_no_more_people_than_were_shown(send, people, tmp_path, ledger_path, witnessed):
    """Where the list of those not to be texted has shrunk meanwhile, the person is asked again."""
    frame = pd.read_parquet(people(120))
    opted_out = tmp_path / "opted-out.parquet"
    frame.head(20).to_parquet(opted_out)

    def shrink():
        frame.head(5).to_parquet(opted_out)
        return {}

    with somebody_answers(("Send", shrink), "Send") as questions:
        ran = send(people(120), approve=True, suppress=str(opted_out))
    assert (ran.state, counts(ran), len(questions)) == ("success", {"accepted": 115, "suppressed": 5}, 2)
    assert recorded(ledger_path) == [("send", "ann", 115)]
    assert "it would text 115 people now and not 100: fewer are suppressed" in ran.log


@needs_an_answer
def test_a_no_counts_whatever_has_become_of_the_source(send, people, ledger_path, sandbox):
    """Also where the plan has since become too small to be asked about."""
    path = people(120)

    def shrink():
        pd.read_parquet(path).head(10).to_parquet(path)
        return {}

    with somebody_answers(("Stop", shrink)):
        ran = send(path, approve_above=100)
    assert (ran.state, sandbox.state.accepted) == ("failed", [])
    assert recorded(ledger_path) == [("stop", "ann", 10)]


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


@pytest.mark.skipif(not CAN_ASK, reason="this Airflow can ask nobody; test_plan.py holds that it refuses")
def test_one_task_asks_one_kind_of_question():
    """Airflow would show the first question for the second one."""
    task = BulkSmsOperator(task_id="t", source="s", message="m", approve=True, on_unknown="ask")
    with pytest.raises(InputError, match="approve=True and on_unknown='ask' cannot be in one task"):
        check_bulk_arguments(task)


def test_a_verdict_names_its_plan():
    """An answer without the form's field names none."""
    event = {"chosen_options": ["Send"], "responded_by_user": {"name": "ann"}, "params_input": {"plan": " ab "}}
    assert read_verdict(event) == Verdict(send=True, by="ann", plan_id="ab")
    assert read_verdict({**event, "params_input": {}}).plan_id is None
    with pytest.raises(InputError, match="must be one of Send, Stop"):
        read_verdict({**event, "chosen_options": []})
