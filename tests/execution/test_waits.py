from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from unittest.mock import Mock

import pandas as pd
import pytest
from sqlalchemy import update
from support.airflow import stored_xcoms
from support.keys import message_keys, request_of
from support.later import later
from support.sending import claimant
from support.windows import ClosedOnce

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, Outcome
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.reporting.row_counts import COUNTS
from airflow_provider_sms.sandbox.faults import Fault
from airflow_provider_sms.sending import settle
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.service.client import SmsClient

WAITS_IN_THE_MIDDLE = {"on_low_balance": "wait", "cost_per_part": 0.5, "concurrency": 1}
"""Options of a send that waits for credit in the middle, since each message costs twice what is estimated."""


def counts(ran):
    assert ran.summary["rows"] == sum(ran.summary[name] for name in COUNTS)
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def sends(sandbox):
    return [request for request in sandbox.state.requests if request.operation == "bulk"]


def looks(sandbox):
    """How often the balance was read."""
    return sum(request.operation == "balance" for request in sandbox.state.requests)


def is_out_of_credit(sandbox):
    """Whether the third request was refused for lack of credit, and the task waits for it."""
    return len(sends(sandbox)) >= 3 and looks(sandbox) > 3


def latest(key):
    """What was pushed last."""
    return max(stored_xcoms(key=key, task_id="send"), key=lambda row: row[0].timestamp)[1]


def notes(ledger_path):
    """Return what each part of the attempt noted last, in order."""
    with closing(sqlite3.connect(ledger_path)) as ledger:
        rows = ledger.execute("SELECT state, total, done, figures FROM sms_attempt ORDER BY id").fetchall()
    return [(*row, json.loads(figures)) for *row, figures in rows]


def test_not_enough_credit_fails_before_the_first_text(send, people, sandbox):
    """The balance is looked at first; a retry may find more of it."""
    sandbox.state.set_balance(99)
    ran = send(people(100), on_low_balance="fail", retries=1)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 2, [])
    assert "The balance is 99, and the 100 messages cost about 100 credits, so nothing was sent" in ran.log
    assert counts(ran) == {"not_sent": 100}


@pytest.mark.parametrize("refused", ["a limit", "a row"])
def test_an_attempt_that_refuses_its_table_tells_what_earlier_ones_sent(
    send, people, sandbox, tmp_path, monkeypatch, refused
):
    """Its summary and its row report say the same of everybody, who may have had the text from the attempt before."""
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, _=None: None if attempt >= self.attempts else 0.0)
    path, report = people(600), tmp_path / "report.parquet"
    sandbox.state.set_faults([Fault("none"), Fault("drop_after", times=20)])
    others = [str(27_830_000_000 + n) for n in range(600)] if refused == "a limit" else ["x"]

    def add_others(_):
        sandbox.state.set_faults([])
        pd.concat([pd.read_parquet(path), pd.DataFrame({"destination": others, "first_name": "y"})]).to_parquet(path)

    options = {"retries": 1, "on_retry_callback": add_others, "report": str(report), "concurrency": 1}
    ran = send(path, **options, **({"limits": {"max_cost": 700}} if refused == "a limit" else {}))
    assert (ran.state, ran.tries) == ("failed", 2)
    assert (counts(ran)["already_sent"], counts(ran)["unknown"]) == (100, 300)
    assert counts(ran) == pd.read_parquet(report)["status"].value_counts().to_dict()


def test_outside_of_the_hours_the_balance_is_not_needed(send, people, sandbox, ledger_path):
    """It is read again when they begin, before which nothing is claimed: no retry is used up for it at night."""
    sandbox.state.set_faults([{"kind": "status", "status": 502, "on": "balance"}])
    hours = ClosedOnce(2)
    ran = send(people(20), on_low_balance="fail", send_window=hours)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 20})
    assert sandbox.state.accepted[0].at >= hours.opening.replace(microsecond=0)
    waited, went_on = notes(ledger_path)
    assert (waited[0], waited[-1], went_on[0]) == ("waiting for hours", {"until": hours.opening.isoformat()}, "ended")


def test_a_balance_that_is_needed_for_unknown_requests_alone_is_waited_for_by_a_retry(
    send, people, sandbox, monkeypatch, short_claims
):
    """There is nothing to send, but the balance would close them: the attempt without a connection is not the last."""
    monkeypatch.setattr(settle, "UNREADABLE_SECONDS", 0.05)
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    source = people(200)
    assert counts(send(source, campaign="c", concurrency=1)) == {"accepted": 100, "unknown": 100}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SmsClient, "get_balance", Mock(side_effect=NotSentError("Balance: not sent: timed out")))
        options = {"retries": 2, "on_unknown": "reconcile"}
        ran = send(source, campaign="c", **options, on_retry_callback=lambda _: patch.undo())
    assert (ran.state, ran.tries) == ("success", 2)


def test_a_task_waits_for_credit_before_the_first_text(send, people, sandbox, witnessed):
    """It gives up its slot, and goes on once there is enough; meanwhile its summary is what is left to be sent."""
    sandbox.state.set_balance(99)
    seen = []

    def look():
        seen.append(latest("return_value"))
        sandbox.state.set_balance(100)

    with later(look, lambda: len(sandbox.state.requests) > 2):
        ran = send(people(100), on_low_balance="wait")
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 100})
    assert "Waiting for credit: the balance has to be at least 100" in ran.log
    assert [summary["not_sent"] for summary in seen] == [100]
    assert set(witnessed().values()) == {1}


def test_the_counts_are_of_the_whole_try(send, people, sandbox, ledger_path):
    """Repeats, unknown and rejected rows of both parts, each once; the summary says so while the task waits, too.

    A part's last note says what it waits for and how far it has come, and the next part has a note of its own.
    """
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "drop_after"}])
    frame, seen = pd.read_parquet(people(400)), {}
    rows = pd.concat([frame, frame.head(50), pd.DataFrame({"destination": ["x"], "first_name": ["y"]})])

    def look():
        try:
            seen.update({key: latest(key) for key in ("return_value", "responses")})
        finally:
            # Else a task that pushed none of them would wait for ever.
            sandbox.state.set_balance(1000)

    with later(look, lambda: is_out_of_credit(sandbox)):
        ran = send(rows, **WAITS_IN_THE_MIDDLE, on_invalid="skip")
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 300, "unknown": 100, "duplicate": 50, "invalid": 1})
    assert ran.summary["requests"] == 4
    before = seen["return_value"]
    assert (before["accepted"], before["unknown"], before["not_sent"], len(seen["responses"])) == (100, 100, 200, 1)
    waited, went_on = notes(ledger_path)
    assert waited == ("waiting for credit", 450, 150, {"balance_needed": 51.0})
    assert went_on == ("failed", 450, 450, ran.summary)


@pytest.mark.slow
def test_rows_that_are_gone_hide_no_unknown_message(send, people, sandbox):
    """Whom the task may have texted before its wait is in no count afterwards: the log says so, with resend, too."""
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    path = people(400)

    def leave_the_source():
        pd.read_parquet(path).head(100).to_parquet(path)
        sandbox.state.set_balance(1000)

    with later(leave_the_source, lambda: is_out_of_credit(sandbox)):
        ran = send(path, **WAITS_IN_THE_MIDDLE, on_unknown="resend")
    assert (ran.state, counts(ran)["accepted"], ran.summary["unknown"]) == ("success", 100, 0)
    assert "100 messages may have been sent earlier by this task, without a row to send by now" in ran.log


@pytest.mark.slow
def test_who_was_texted_twice_is_told_in_the_end(send, people, sandbox, ledger_path):
    """A late response shows it, and then the hours end: the task fails, at the latest after its wait."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "delay", "seconds": 4}])

    def close_and_send_again():
        with closing(open_sqlite(ledger_path)) as store:
            with store.write(1) as connection:
                connection.execute(update(request).where(request.c.id == 2).values(deadline=0.0))
            resolve(store, 2, NOT_SENT, "ann")
            numbers = [str(27_820_000_000 + n) for n in range(100, 200)]
            keys = message_keys(numbers, [f"Hi Name{n}" for n in range(100, 200)])
            other = CampaignLedger(store, "c", claimant(host="worker-2"))
            (claim,) = other.commit(chunks=[request_of(keys, numbers)], claim_seconds=60.0)
            other.commit(outcomes=[Outcome(claim.request_id, ACCEPTED, event_id=77, messages=100)])

    window = ClosedOnce(3, lambda: len(sends(sandbox)) >= 2)
    with later(close_and_send_again, lambda: len(sends(sandbox)) >= 2):
        ran = send(people(300), campaign="c", concurrency=1, max_requests_per_second=20, send_window=window)
    assert ran.state == "failed"
    assert "the service accepted requests whose messages others had claimed meanwhile" in ran.log


def add_an_invalid_row(path, ledger_path):
    frame = pd.read_parquet(path)
    pd.concat([frame, pd.DataFrame({"destination": ["x"], "first_name": ["y"]})]).to_parquet(path)


def upgrade_the_ledger(path, ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE sms_version SET version = 99")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "error", "invalid"),
    [
        (add_an_invalid_row, {"limits": {"max_rows": 400}}, "has more rows than max_rows=400. Nothing was sent", {}),
        (add_an_invalid_row, {}, "Nothing was sent. Correct the rows, or set on_invalid='skip'", {"invalid": 1}),
        (upgrade_the_ledger, {}, "Nothing was sent. Install the one that wrote it", {}),
    ],
    ids=["limit", "invalid rows", "ledger"],
)
def test_an_error_after_a_wait_in_the_middle_denies_nothing_that_was_sent(
    send, people, sandbox, tmp_path, ledger_path, change, options, error, invalid
):
    """People were texted before it, or may have been: neither error nor summary nor report may deny that."""
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "drop_after"}])
    path, report = people(400), tmp_path / "report.parquet"

    def go_on():
        change(path, ledger_path)
        sandbox.state.set_balance(1000)

    with later(go_on, lambda: is_out_of_credit(sandbox)):
        ran = send(path, report=str(report), **WAITS_IN_THE_MIDDLE, **options)
    assert (ran.state, len(sandbox.state.accepted)) == ("failed", 200)
    assert counts(ran) == {"accepted": 100, "unknown": 100, "not_sent": 200, **invalid}
    assert error in ran.log
    assert "This is about the time since the attempt's last wait: what it sent before is in its summary" in ran.log
    found = pd.read_parquet(report)
    assert found["status"].value_counts().to_dict() == counts(ran)
    assert not found["reason"].str.contains("othing was sent").any()


@pytest.mark.slow
def test_hours_that_end_in_the_middle_are_waited_for(send, people, sandbox, witnessed, metrics):
    """What is under way ends, the rest goes out when they begin again; metrics count each message once."""
    window = ClosedOnce(3, lambda: len(sends(sandbox)) >= 2)
    ran = send(people(300), send_window=window, concurrency=1)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 300})
    assert (len(witnessed()), set(witnessed().values())) == (300, {1})
    assert "Outside of the sending hours" in ran.log
    assert metrics.counts() == {"sms.accepted": 300}


@pytest.mark.parametrize(
    ("status", "body", "tries"),
    [
        (401, None, 1),
        (403, '{"errorCode": "Account.Deactivated"}', 1),
        (403, '{"errorCode": "InsufficientCredits"}', 2),  # which says nothing of the token
    ],
)
def test_a_balance_that_is_refused_ends_no_task_that_does_not_need_it(send, people, sandbox, status, body, tries):
    """A token that is not valid is refused with the first request as well, and nobody is texted."""
    sandbox.state.set_faults([Fault("status", on="balance", status=status, body=body, persistent=True)])
    ran = send(people(100), retries=1, on_low_balance="fail")
    assert (ran.state, ran.tries, sends(sandbox), counts(ran)) == ("failed", tries, [], {"not_sent": 100})
    ran = send(people(100))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 100})
