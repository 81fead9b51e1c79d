from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pendulum
import pyarrow.parquet as pq
import pytest

DAGS = Path(__file__).parents[2] / "dags"
EXAMPLES = sorted(DAGS.glob("*.py"))


def test_every_example_loads(bag):
    """Without an error, by the name of its file, with words for the web page; none starts but by another example."""
    assert bag.import_errors == {}
    assert {path.stem for path in EXAMPLES} <= set(bag.dags)
    for dag_id, dag in bag.dags.items():
        assert dag_id.startswith(Path(dag.fileloc).stem)
        assert (bool(dag.doc_md), set(dag.tags)) == (True, {"example", "sms"})
        assert dag.schedule is None or isinstance(dag.schedule, list)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_parts_for_the_documentation_are_marked(path):
    """Every START has its END after it, under the same name, and no name is used twice."""
    marks = re.findall(r"# \[(START|END) (howto_\w+)\]", path.read_text())
    names = [name for kind, name in marks if kind == "START"]
    assert names
    assert [(kind, name) for name in names for kind in ("START", "END")] == marks
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_the_campaign_texts_each_person_once_a_day(run_example, sandbox):
    """Of 1,050 untidy rows all that can be texted are, in requests of 100, the staff last; a second run adds nobody."""
    ran = run_example("example_sms_campaign", pendulum.datetime(2026, 1, 5))
    summary = ran.xcoms["text_customers"]["return_value"]
    counts = ("rows", "accepted", "invalid", "duplicate", "unknown", "not_sent", "already_sent", "requests")
    assert ran.state == "success"
    assert tuple(summary[name] for name in counts) == (1050, 1018, 20, 12, 0, 0, 0, 11)
    assert summary["campaign"] == "example_sms_campaign.2026-01-05"
    assert len(ran.xcoms["text_customers"]["responses"]) == 11
    assert ran.xcoms["wait_for_credit"]["return_value"] == {"balance": 100_000.0, "post_paid": False}
    assert ran.xcoms["text_staff"]["return_value"]["Messages"] == 5
    kinds = [message.kind for message in sandbox.state.accepted]
    assert kinds == ["bulk"] * 1018 + ["group"] * 5
    assert max(Counter(message.destination for message in sandbox.state.accepted).values()) == 1
    evening = pendulum.datetime(2026, 1, 5, 18)
    again = run_example("example_sms_campaign", evening)
    summary = again.xcoms["text_customers"]["return_value"]
    assert (again.state, summary["accepted"], summary["already_sent"]) == ("success", 0, 1018)
    assert len(sandbox.state.accepted) == 1023
    # The next day, or without a logical date, it is another campaign.
    run_example("example_sms_campaign", evening.add(days=1))
    by_hand = run_example("example_sms_campaign", None).xcoms["text_customers"]["return_value"]
    assert re.fullmatch(r"example_sms_campaign\.\d{4}-\d\d-\d\d", by_hand["campaign"])
    assert len(sandbox.state.accepted) == 3 * 1023


def test_the_dataframe_example_reminds_once_of_each_invoice(run_example, sandbox, capfd, caplog):
    """Rows that a task returns are texted with formatted values, never again, whatever the day, and logged nowhere."""
    ran = run_example("example_sms_from_dataframe", pendulum.datetime(2026, 1, 13))
    assert (ran.state, ran.xcoms["text_them"]["return_value"]["accepted"]) == ("success", 3)
    assert {
        ("27820000001", "Hi Thandeka, invoice INV-1041 of R1250.50 is overdue. Paid already? Thank you."),
        ("27830000002", "Hi Pieter, invoice INV-1042 of R89.90 is overdue. Paid already? Thank you."),
        ("27840000003", "Hi Naledi, invoice INV-1057 of R12400.00 is overdue. Paid already? Thank you."),
    } == set(sandbox.state.accepted_messages)
    again = run_example("example_sms_from_dataframe", pendulum.datetime(2026, 1, 14))
    assert (again.state, again.xcoms["text_them"]["return_value"]["already_sent"]) == ("success", 3)
    assert len(sandbox.state.accepted) == 3
    # Airflow logs what a task returns unless it is told not to.
    said = "".join([*capfd.readouterr(), caplog.text, ran.log])
    numbers = ("082 000 0001", "+27 83 000 0002", "27840000003", "27820000001", "27830000002")
    assert ("INFO" in said.upper(), [number for number in numbers if number in said]) == (True, [])


def test_the_alert_example_texts_who_is_on_call(run_example, sandbox, monkeypatch):
    """A run that fails texts everybody in the variable, once, which task it was; a run that does not texts nobody."""
    monkeypatch.setenv("AIRFLOW_VAR_SMS_ON_CALL", "082 000 0001, +27830000002")
    assert run_example("example_sms_alert", pendulum.datetime(2026, 1, 16), invoices=1000).state == "success"
    assert sandbox.state.accepted_messages == []
    assert run_example("example_sms_alert", pendulum.datetime(2026, 1, 17)).state == "failed"
    (first, second) = sandbox.state.accepted_messages
    assert [first[0], second[0]] == ["27820000001", "27830000002"]
    assert first[1].startswith("Airflow: example_sms_alert.count_invoices failed, try 1, run ")


def test_the_maintenance_example_forgets_what_is_old_enough(run_example, sandbox):
    """A campaign of this day stays; without any ledger the task fails, since it would have looked at a wrong place."""
    assert run_example("example_sms_maintenance", pendulum.datetime(2026, 1, 18)).state == "failed"
    run_example("example_sms_campaign", pendulum.datetime(2026, 1, 18))
    ran = run_example("example_sms_maintenance", pendulum.datetime(2026, 1, 19))
    summary = ran.xcoms["purge_ledger"]["return_value"]
    assert (ran.state, summary["retention_days"], summary["campaigns"]) == ("success", 90, 0)


@pytest.mark.slow
def test_the_decorator_example_invites_once_to_each_event(run_example, sandbox):
    """The people of two cities are texted by a task each, and another run texts only whoever hears of another event."""
    table = pq.read_table(DAGS / "data" / "recipients.parquet").to_pylist()
    there = [row for row in table if row["city"] in ("Durban", "Kimberley") and (row["amount"] or 0) >= 100]
    ran = run_example("example_sms_decorator", pendulum.datetime(2026, 2, 2))
    summaries = ran.mapped["invite"]["return_value"]
    assert (ran.state, sum(summary["rows"] for summary in summaries)) == ("success", len(there))
    assert {summary["campaign"] for summary in summaries} == {"example_sms_decorator.open-day"}
    texts = [text for _, text in sandbox.state.accepted_messages]
    assert len(texts) == sum(summary["accepted"] for summary in summaries) > 150
    assert all(re.fullmatch(r"Hi .+, our (Durban|Kimberley) branch opens .+", text) for text in texts)
    again = run_example("example_sms_decorator", pendulum.datetime(2026, 2, 3))
    assert [summary["accepted"] for summary in again.mapped["invite"]["return_value"]] == [0, 0]
    run_example("example_sms_decorator", pendulum.datetime(2026, 2, 4), event="harvest")
    assert len(sandbox.state.accepted) == 2 * len(texts)


def test_the_update_example_welcomes_who_is_new(bag, run_example, sandbox):
    """The DAG that is scheduled by the table of another texts each member once, however often it runs."""
    wrote = run_example("example_sms_on_update_write", pendulum.datetime(2026, 2, 2))
    assert wrote.state == "success"
    first, second = (run_example("example_sms_on_update", pendulum.datetime(2026, 2, day)) for day in (2, 3))
    assert (first.state, first.xcoms["welcome"]["return_value"]["accepted"]) == ("success", 3)
    assert (second.state, second.xcoms["welcome"]["return_value"]["already_sent"]) == ("success", 3)
    assert {
        ("27820000001", "Welcome, Thandeka. Reply STOP to opt out."),
        ("27830000002", "Welcome, Pieter. Reply STOP to opt out."),
        ("27840000003", "Welcome, Naledi. Reply STOP to opt out."),
    } == set(sandbox.state.accepted_messages)
    assert len(sandbox.state.accepted) == 3


@pytest.mark.slow
def test_the_reconcile_example_closes_what_was_lost(run_example, sandbox, short_claims):
    """One lost request was taken and one was not: the task closes both by itself, and texts each person once."""
    sandbox.state.set_faults([{"kind": "drop_after"}, {"kind": "none"}, {"kind": "drop_before"}])
    ran = run_example("example_sms_reconcile", pendulum.datetime(2026, 2, 5))
    summary = ran.xcoms["remind"]["return_value"]
    assert (ran.state, summary["unknown"], summary["not_sent"], summary["reconciled"]) == ("success", 0, 0, 200)
    assert len(sandbox.state.accepted) == summary["accepted"] > 1000
    assert max(Counter(message.destination for message in sandbox.state.accepted).values()) == 1
