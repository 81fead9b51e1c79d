from __future__ import annotations

import json
import re
from contextlib import closing, suppress
from types import SimpleNamespace

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import AirflowException
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.airflow import run_task

from airflow_provider_sms.exceptions import LedgerBusyError
from airflow_provider_sms.execution import bulk
from airflow_provider_sms.hooks.ledger import open_ledger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import NOT_SENT
from airflow_provider_sms.ledger.requests import unknown_requests
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS

SENDS = ("bulk", "group")


def sent(sandbox):
    return [request for request in sandbox.state.requests if request.operation in SENDS]


def counts(ran):
    assert ran.summary["rows"] == sum(ran.summary[name] for name in COUNTS)
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def test_the_plan_is_told_before_anything_is_sent(send, people, sandbox):
    """A dry run reads the balance, makes the plan, and never calls a send operation."""
    ran = send(people(250), "It\N{RIGHT SINGLE QUOTATION MARK}s you, {first_name}", dry_run=True)
    plan = ran.xcoms["plan"]
    assert sent(sandbox) == []
    assert (plan["rows"], plan["to_send"], plan["requests"], plan["cost"], plan["balance"]) == (
        250,
        250,
        3,
        250,
        sandbox.state.balance,
    )
    assert plan["texts"]["forcing"][0]["code"] == "U+2019"
    assert "Plan " + plan["id"].partition("-")[0] in ran.log
    assert "U+2019 RIGHT SINGLE QUOTATION MARK" in ran.log
    assert counts(ran) == {"not_sent": 250}


def test_what_was_planned_is_what_happens(send, people, sandbox, ledger_path):
    """Repeats, rows that cannot be texted, suppressed numbers and what is sent already: the plan and the end agree."""
    frame = pd.read_parquet(people(300))
    send(frame.head(100), campaign="c")
    frame.loc[299, "destination"] = "x"
    rows = pd.concat([frame, frame.iloc[[200]]], ignore_index=True)
    ran = send(rows.to_dict("records"), campaign="c", on_invalid="skip", suppress=frame[["destination"]].iloc[150:160])
    plan = ran.xcoms["plan"]
    assert counts(ran) == {"accepted": 189, "invalid": 1, "duplicate": 1, "suppressed": 10, "already_sent": 100}
    assert (plan["to_send"], plan["duplicate"], plan["already_sent"]) == (189, 1, 100)
    assert (plan["suppressed"], sum(plan["invalid"].values())) == (10, 1)
    assert plan["parts"] == ran.summary["parts"]
    assert plan["cost"] == ran.summary["cost"]


def test_a_dry_run_plans_beside_rows_that_cannot_be_texted(send, people, sandbox):
    """The plan of the other rows comes first, and counts those; then the task fails on them, as a send does."""
    numbers = [str(27_820_000_000 + n) for n in range(29)]
    ran = send(people(30, destination=["0820001234", *numbers]), dry_run=True, limits={"max_cost": 1})
    plan = ran.xcoms["plan"]
    assert (ran.state, sent(sandbox)) == ("failed", [])
    assert (plan["rows"], plan["valid"], plan["to_send"], sum(plan["invalid"].values())) == (30, 29, 29, 1)
    assert ran.log.index(f"Plan {plan['id'].partition('-')[0]}") < ran.log.index("1 of 30 rows cannot be texted")
    assert ("0820*****34" in ran.log, "0820001234" in ran.log, "more than max_cost" in ran.log) == (True, False, False)
    assert counts(ran) == {"invalid": 1, "not_sent": 29}


def test_a_dry_run_needs_neither_ledger_nor_service(send, people, sandbox, ledger_path):
    """Without them the plan says less, and why is in the log."""
    ran = send(people(3), dry_run=True, sms_conn_id="nowhere")
    assert (ran.state, ran.xcoms["plan"]["balance"]) == ("success", None)
    assert "'nowhere' does not exist" in ran.log
    assert not ledger_path.exists()


def test_the_plan_holds_no_number_and_no_text(send, people):
    """No XCom and no log quotes anybody; a person reads figures and the template, and what others wrote is code."""
    ran = send(people(5), "Secret words for {first_name} **now**", campaign="a | b")
    shown = ran.xcoms["plan"].pop("markdown")
    assert "    Secret words for {first_name} **now**" in shown
    assert re.search("^      to send +5 messages in 1 request$", shown, re.MULTILINE)
    assert "of campaign a | b" in shown
    told = json.dumps(ran.xcoms) + ran.log
    assert ["27820000" in shown + told, "Name0" in shown + told, "Secret" in told] == [False] * 3


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"limits": {"max_rows": 99}}, "more rows than max_rows=99. Nothing"),
        ({"limits": {"max_cost": 99.5}}, "about 100 credits, more than max_cost=99.5"),
        ({"limits": {"max_invalid": 0}, "on_invalid": "skip"}, "1 of 101 rows cannot be texted"),
    ],
    ids=["rows", "cost", "invalid"],
)
def test_a_plan_beyond_a_limit_sends_nothing(send, people, sandbox, tmp_path, limit, words):
    """The task fails before the first text and without retries; counts, plan and report are there all the same."""
    frame = pd.read_parquet(people(100))
    if "on_invalid" in limit:
        frame.loc[100] = ["x", "bad"]
    path = tmp_path / "report.parquet"
    ran = send(frame, retries=2, report=str(path), **limit)
    assert (ran.state, ran.tries, sent(sandbox)) == ("failed", 1, [])
    assert words in ran.log
    if "max_rows" in limit["limits"]:
        assert (ran.xcoms, path.exists()) == ({}, False)
        return
    assert ran.summary["not_sent"] == 100
    report = pd.read_parquet(path)
    assert report["status"].value_counts().to_dict() == counts(ran)
    assert "on_invalid" in limit or words in report["reason"][0]


WARNED = "100 people have had another text of campaign spring, and one more is in the plan"


def test_another_wording_in_the_same_campaign_is_warned_of(send, people, sandbox):
    """In the log and in the plan, of a dry run as well; the same wording, and another campaign, are silent.

    So is another message by its key columns, such as the next invoice: nobody would read a daily warning.
    """
    source = people(100)
    send(source, campaign="spring")
    for campaign, message, dry_run, repeats in (
        ("spring", "Hi {first_name}", False, 0),
        ("summer", "Hello {first_name}", True, 0),
        ("spring", "Hello {first_name}", True, 100),
        ("spring", "Hello {first_name}", False, 100),
    ):
        ran = send(source, message, campaign=campaign, dry_run=dry_run)
        assert (ran.state, ran.xcoms["plan"]["repeats"], WARNED in ran.log) == ("success", repeats, repeats > 0)
    assert sum(request.response["Messages"] for request in sent(sandbox)) == 200
    for name in ("Ann", "Thandi"):
        ran = send(people(100, first_name=[name] * 100), campaign="invoices", key_columns=["first_name"])
    assert (ran.state, ran.xcoms["plan"]["repeats"], "and one more is in the plan" in ran.log) == (
        "success",
        100,
        False,
    )


def test_a_campaign_that_is_sent_is_looked_at_once(send, people, sms_default, tmp_path):
    """Where the plan finds nothing left to send, the counts are the plan's, and the service is not needed."""
    frame = pd.read_parquet(people(120))
    rows = [*frame.to_dict("records"), {"destination": "x", "first_name": "y"}]
    arguments = {"campaign": "c", "on_invalid": "skip", "suppress": [{"destination": frame.destination[0]}]}
    send(rows, **arguments)
    sms_default(host="http://127.0.0.1:9/v1")
    path = str(tmp_path / "report.parquet")
    ran = send(rows, report=path, retries=1, on_low_balance="fail", **arguments)
    assert (ran.state, ran.tries, ran.xcoms["responses"]) == ("success", 1, [])
    assert counts(ran) == {"already_sent": 119, "invalid": 1, "suppressed": 1}
    assert pd.read_parquet(path).status.tolist() == ["suppressed", *["already_sent"] * 119, "invalid"]


def test_bad_answers_stop_the_send(send, people, sandbox):
    """The service leaves out opted-out numbers, more than is allowed: sending stops, and says what was seen."""
    sandbox.state.opted_out = frozenset(str(27_820_000_000 + n) for n in range(0, 1000, 3))
    ran = send(people(1000), limits={"max_error_rate": 0.2}, concurrency=1, retries=2)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "more than max_error_rate=0.2" in ran.log
    assert (ran.summary["accepted"], ran.summary["left_out"]) == (100, 34)
    assert ran.summary["rows"] == sum(ran.summary[name] for name in COUNTS)


def test_a_suppressed_number_that_cannot_be_read_stops_the_task(send, people, sandbox):
    """Whoever is meant could be texted; the error masks the number, and skip passes over it."""
    listed = [{"destination": "27820000001"}, {"destination": "2782-abc-99"}]
    ran = send(people(3), suppress=listed)
    assert (ran.state, sent(sandbox)) == ("failed", [])
    assert ("1 of 2 rows of suppress cannot be read" in ran.log, "2782-abc-99" in ran.log) == (True, False)
    ran = send(people(3), suppress=listed, on_invalid="skip")
    assert counts(ran) == {"accepted": 2, "suppressed": 1}


def test_an_earlier_report_suppresses(send, people, tmp_path, witnessed):
    """Whom one campaign reports, another one leaves out; the report says why."""
    first, second = str(tmp_path / "first.parquet"), str(tmp_path / "second.parquet")
    frame = pd.read_parquet(people(10))
    send(frame.head(4), report=first)
    ran = send(frame, "Again {first_name}", suppress=first, report=second)
    assert counts(ran) == {"accepted": 6, "suppressed": 4}
    report = pd.read_parquet(second)
    assert report.status.tolist() == ["suppressed"] * 4 + ["accepted"] * 6
    assert report.reason[0] == "the number is on a list of numbers that must not be texted"
    assert len(witnessed()) == 10


def test_a_ledger_that_cannot_be_read_for_a_moment_lifts_no_limit(send, people, witnessed, monkeypatch):
    """The attempt fails before anything is sent; without the ledger it would not know whom the campaign has texted."""
    assert send(people(50), "first wording", campaign="c").state == "success"
    made, failed = CampaignReader.look, []

    def once(self, *args, **kwargs):
        if not failed:
            failed.append(True)
            raise LedgerBusyError("The ledger cannot be read: it is busy")
        return made(self, *args, **kwargs)

    monkeypatch.setattr(CampaignReader, "look", once)
    ran = send(people(50), "second wording", campaign="c", limits={"max_repeats": 0})
    assert (ran.state, ran.xcoms, len(witnessed())) == ("failed", {}, 50)
    assert "The ledger cannot be read: it is busy" in ran.log


def test_what_becomes_free_after_the_plan_obeys_the_limit_of_parts(send, people, sandbox, witnessed, short_claims):
    """The balance shows that long texts were not sent: the plan did not have them, so they passed no limit."""
    sandbox.state.set_faults([{"kind": "drop_before"}])
    frame = pd.read_parquet(people(105))
    frame["text"] = ["long " * 80] * 100 + ["short"] * 5
    own_text = {"message": None, "content_column": "text", "campaign": "c", "concurrency": 1}
    assert send(frame.head(100), **own_text).state == "failed"
    ran = send(frame, **own_text, limits={"max_parts": 1}, on_unknown="reconcile")
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 5, "not_sent": 100})
    assert {text for _, text in witnessed()} == {"short"}


def planned_id(send, source, **options):
    return send(source, campaign="c", dry_run=True, **options).xcoms["plan"]["id"]


def test_the_approved_plan_is_sent_and_nothing_else(send, people, sandbox, tmp_path):
    """Whoever was texted or has opted out since does not matter; another table, campaign, option or price does."""
    approved = planned_id(send, people(20))
    listed = pd.read_parquet(people(20))[["destination"]].iloc[15:]
    assert counts(send(pd.read_parquet(people(20)).head(5), campaign="c")) == {"accepted": 5}
    for options, words in (
        ({"source": people(21)}, "the recipients or their texts have changed since"),
        ({"campaign": "d"}, "the campaign or send_options have another value"),
        ({"send_options": {"SenderId": "A"}}, "the campaign or send_options have another value"),
        ({"cost_per_part": 2}, "it would cost about 30 now, and 20 was approved"),
    ):
        given = {"source": people(20), "campaign": "c", "approved_plan": approved, **options}
        ran = send(given.pop("source"), retries=2, **given)
        assert (ran.state, ran.tries, len(sandbox.state.accepted)) == ("failed", 1, 5), options
        assert words in ran.log
        assert "Clear the plan task" in ran.log
    ran = send(people(20), campaign="c", approved_plan=approved, suppress=listed)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 10, "suppressed": 5, "already_sent": 5})


class Freed(BulkSmsOperator):
    """Fails at first, on what another task lost; a person calls that not sent, and lets the task try again."""

    def execute(self, context):
        if context["ti"].try_number > 1:
            return super().execute(context)
        with suppress(AirflowException):
            super().execute(context)
        with closing(open_ledger(None)) as store:
            (lost,) = unknown_requests(store)
            resolve(store, lost.request_id, NOT_SENT, "ann")
        raise AirflowException("once more")


def test_the_attempts_of_a_task_send_no_more_than_was_approved(send, people, sandbox, witnessed):
    """What an earlier one has sent counts, where as many messages as were approved have become free since."""
    sandbox.state.set_faults([{"kind": "drop_before"}])
    assert counts(send(pd.read_parquet(people(20)).head(10), campaign="c")) == {"unknown": 10}
    arguments = {"source": people(20), "message": "Hi {first_name}", "campaign": "c"}
    approved = planned_id(send, people(20))
    ran = run_task(lambda: Freed(task_id="send", approved_plan=approved, **arguments), retries=2)
    assert (ran.state, ran.tries, len(witnessed())) == ("failed", 2, 10)
    assert "20 messages would be sent now with 10 messages that this task has sent since, and 10 were" in ran.log
    again = send(people(20), campaign="c", approved_plan=planned_id(send, people(20)))
    assert (again.state, len(witnessed())) == ("success", 20)


class GroupFailsOnce(GroupSmsOperator):
    """Sends, and fails when its first try has sent everything."""

    def execute(self, context):
        super().execute(context)
        if context["ti"].try_number == 1:
            raise AirflowException("after everything was sent")


def test_a_group_is_not_texted_again_under_another_name(sms_default, ledger_path, sandbox):
    """A name with the time in it makes every try a campaign of its own: the second one refuses."""
    ran = run_task(
        lambda: GroupFailsOnce(task_id="send", groups=["staff"], message="Hi", campaign="sale-{{ ti.try_number }}"),
        retries=3,
    )
    posts = [request for request in sandbox.state.requests if request.operation == "group"]
    assert (ran.state, ran.tries, len(posts)) == ("failed", 2, 1)


# The plan for a person


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ACTIVE = "`|\\![](){}<>*_~#&;:/@.+-=^\"' \t\n\r\u2028\u2029\u0085\u202e\u2066\x00\x1b"
TEXTS = st.text(st.one_of(st.sampled_from(ACTIVE), st.characters(exclude_categories=("Cs",))), max_size=40)


def shown(text):
    """Return a plan for a person, whose message has this template."""
    return bulk._in_markdown(SimpleNamespace(table=lambda: "the plan"), SimpleNamespace(message=text or "-"))


@given(TEXTS)
def test_any_text_stays_in_its_block(text):
    """A plan is one block of code, whatever its message holds: no image is fetched, and nothing becomes a link."""
    tokens = PARSER.parse(f"{shown(text)}\n\nafter")
    assert [each.type for each in tokens] == ["code_block", "paragraph_open", "inline", "paragraph_close"]
    assert [each.content for each in tokens if each.type == "inline"] == ["after"]
