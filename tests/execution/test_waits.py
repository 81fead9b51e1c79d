from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from unittest.mock import Mock

import pandas as pd
import pytest
from sqlalchemy import update
from support.airflow import stored_xcoms
from support.keys import message_keys, request_of
from support.later import later
from support.sending import claimant
from support.windows import Closes, OpensLater

from airflow_provider_sms.exceptions import LedgerError, NotSentError
from airflow_provider_sms.execution import bulk, enter
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, Outcome
from airflow_provider_sms.ledger.requests import unknown_requests
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
    sandbox.state.add_faults([Fault("none"), Fault("drop_after", times=20)])
    others = [str(27_830_000_000 + n) for n in range(600)] if refused == "a limit" else ["x"]

    def add_others(_):
        sandbox.state.set_faults([])
        pd.concat([pd.read_parquet(path), pd.DataFrame({"destination": others, "first_name": "y"})]).to_parquet(path)

    options = {"retries": 1, "on_retry_callback": add_others, "report": str(report), "concurrency": 1}
    ran = send(path, **options, **({"limits": {"max_cost": 700}} if refused == "a limit" else {}))
    assert (ran.state, ran.tries) == ("failed", 2)
    assert (counts(ran)["already_sent"], counts(ran)["unknown"]) == (100, 300)
    assert counts(ran) == pd.read_parquet(report)["status"].value_counts().to_dict()


def test_outside_of_the_hours_the_balance_is_not_needed(send, people, sandbox):
    """It is read again when they begin: no retry is used up for it at night."""
    sandbox.state.set_faults([{"kind": "status", "status": 502, "on": "balance"}])
    ran = send(people(20), on_low_balance="fail", send_window=OpensLater(seconds=2))
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 20})


def test_a_wait_for_credit_goes_on_where_the_service_calls_the_credit_insufficient(send, people, sandbox):
    """That is what the task waits for, in whichever words the service says it."""
    sandbox.state.set_balance(99)
    body = json.dumps({"errorCode": "InsufficientCredits"})

    def refuse():
        sandbox.state.add_faults([Fault("status", on="balance", status=403, body=body, times=2)])

    with (
        later(refuse, lambda: looks(sandbox) > 2),
        later(lambda: sandbox.state.set_balance(1000), lambda: looks(sandbox) > 5),
    ):
        ran = send(people(100), on_low_balance="wait", retries=2)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 100})


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


def test_a_post_paid_account_passes(send, people, sandbox):
    """Its balance says nothing about what may be sent."""
    sandbox.state.set_post_paid(True)
    ran = send(people(100), on_low_balance="wait", cost_per_part=10**9)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 100})


def test_a_task_waits_for_credit_before_the_first_text(send, people, sandbox, witnessed):
    """It gives up its slot, and goes on once there is enough."""
    sandbox.state.set_balance(99)
    with later(lambda: sandbox.state.set_balance(100), lambda: len(sandbox.state.requests) > 2):
        ran = send(people(100), on_low_balance="wait")
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 100})
    assert "Waiting for credit: the balance has to be at least 100" in ran.log
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("balance", "cost_per_part", "spent"), [(600, 1, True), (350, 0.5, False)], ids=["foreseen", "said by the service"]
)
def test_credit_that_runs_out_in_the_middle_is_waited_for(
    send, people, sandbox, witnessed, balance, cost_per_part, spent
):
    """The task goes on where it stopped: nothing is sent twice, nothing is lost, and the counts are of the whole."""
    sandbox.state.set_balance(balance)

    def spend():
        if spent:
            sandbox.state.set_balance(150)

    def top_up():
        sandbox.state.set_balance(1000)

    with later(spend, lambda: sandbox.state.accepted), later(top_up, lambda: looks(sandbox) > 1):
        ran = send(
            people(600),
            on_low_balance="wait",
            cost_per_part=cost_per_part,
            concurrency=2,
            max_requests_per_second=10,
        )
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 600})
    assert (len(witnessed()), set(witnessed().values())) == (600, {1})
    assert ran.summary["cost"] == 600
    assert "Waiting for credit" in ran.log


def test_the_counts_are_of_the_whole_try(send, people, sandbox):
    """Repeats, unknown and rejected rows of both parts, each once, and one metric and one summary of them."""
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "drop_after"}])
    frame = pd.read_parquet(people(400))
    rows = pd.concat([frame, frame.head(50), pd.DataFrame({"destination": ["x"], "first_name": ["y"]})])
    with later(lambda: sandbox.state.set_balance(1000), lambda: looks(sandbox) > 1):
        ran = send(rows, **WAITS_IN_THE_MIDDLE, on_invalid="skip")
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 300, "unknown": 100, "duplicate": 50, "invalid": 1})
    assert ran.summary["requests"] == 4


def test_a_person_who_opts_out_after_the_text_counts_as_texted(send, people, sandbox, tmp_path):
    """A task that waits reads the list anew: the people whom it texted before the wait were not left out."""
    sandbox.state.set_balance(250)
    frame = pd.read_parquet(people(400))
    opted_out, report = tmp_path / "opted-out.parquet", tmp_path / "report.parquet"
    frame.head(0).to_parquet(opted_out)

    def opt_out():
        # Ten of the people texted, one of them in two rows, and ten of the people to be texted.
        pd.concat([frame.head(10), frame.tail(10)]).to_parquet(opted_out)
        sandbox.state.set_balance(1000)

    rows = pd.concat([frame, frame.head(1)])
    with later(opt_out, lambda: looks(sandbox) > 1):
        ran = send(
            rows,
            **WAITS_IN_THE_MIDDLE,
            suppress=str(opted_out),
            report=str(report),
        )
    assert (ran.state, counts(ran)) == ("success", {"accepted": 390, "duplicate": 1, "suppressed": 10})
    statuses = pd.read_parquet(report).sort_values("row")["status"].tolist()
    assert statuses == ["accepted"] * 390 + ["suppressed"] * 10 + ["duplicate"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["opt out", "leave the source"])
def test_rows_that_are_gone_hide_no_unknown_message(send, people, sandbox, tmp_path, how):
    """Whom the task may have texted before its wait is in no count afterwards: the log says so, with resend, too."""
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    path, opted_out = people(400), tmp_path / "opted-out.parquet"
    frame = pd.read_parquet(path)
    frame.head(0).to_parquet(opted_out)

    def leave():
        if how == "opt out":
            frame.tail(300).to_parquet(opted_out)
        else:
            frame.head(100).to_parquet(path)
        sandbox.state.set_balance(1000)

    with later(leave, lambda: is_out_of_credit(sandbox)):
        ran = send(path, **WAITS_IN_THE_MIDDLE, suppress=str(opted_out), on_unknown="resend")
    assert (ran.state, counts(ran)["accepted"], ran.summary["unknown"]) == ("success", 100, 0)
    assert "100 messages may have been sent earlier by this task, without a row to send by now" in ran.log


@pytest.mark.slow
def test_a_check_that_fails_after_a_wait_hides_no_unknown_message(send, people, sandbox, tmp_path):
    """The summary and the report are of the whole attempt: they say who may have been texted before the wait."""
    sandbox.state.set_balance(250)
    sandbox.state.set_faults([{"kind": "drop_after"}])
    path, report = people(400), tmp_path / "report.parquet"
    frame = pd.read_parquet(path)

    def change():
        pd.concat([frame, pd.DataFrame({"destination": ["x"], "first_name": ["y"]})]).to_parquet(path)
        sandbox.state.set_balance(1000)

    with later(change, lambda: len(sends(sandbox)) >= 3 and looks(sandbox) > 3):
        ran = send(path, **WAITS_IN_THE_MIDDLE, report=str(report))
    expected = {"accepted": 100, "unknown": 100, "not_sent": 200, "invalid": 1}
    assert (ran.state, counts(ran)) == ("failed", expected)
    assert pd.read_parquet(report)["status"].value_counts().to_dict() == expected


@pytest.mark.slow
def test_metrics_count_each_message_once_whatever_waits(send, people, sandbox, metrics):
    """The leg after a wait counts what it sends itself, and the rest once the attempt ends."""
    window = Closes(sandbox)
    ran = send(people(400), concurrency=1, send_window=window)
    assert (ran.state, metrics.counts()) == ("success", {"sms.accepted": 400})


@pytest.mark.slow
def test_a_lost_request_that_is_closed_during_the_check_leaves_counts_that_add_up(
    send, people, sandbox, ledger_path, monkeypatch
):
    """The leg after a wait has counted it as lost a moment before."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    opened = bulk.open_source

    def close(*arguments, **named):
        with closing(open_sqlite(ledger_path)) as store:
            (lost,) = unknown_requests(store)
            resolve(store, lost.request_id, ACCEPTED, "ann")
        return opened(*arguments, **named)

    def change():
        monkeypatch.setattr(bulk, "open_source", close)
        pd.read_parquet(path).head(200).to_parquet(path)

    path = people(300)
    ran = send(path, concurrency=1, send_window=Closes(sandbox, change))
    assert ran.state == "success"
    assert sum(counts(ran).values()) == 200


@pytest.mark.slow
@pytest.mark.parametrize("pushes", [True, False])
def test_a_leg_that_cannot_read_its_ledger_does_not_say_that_nothing_was_sent(
    send, people, sandbox, monkeypatch, pushes
):
    """The leg before it has sent something, or may have."""

    def lose_ledger():
        lost = LedgerError("The ledger has gone back. Nothing was sent, and this attempt sent nothing")
        monkeypatch.setattr(enter, "open_ledger", Mock(side_effect=lost))

    ran = send(people(300), send_window=Closes(sandbox, lose_ledger), concurrency=1, do_xcom_push=pushes)
    assert (ran.state, len(sandbox.state.accepted)) == ("failed", 200)
    assert "this attempt sent nothing. This is about the time since the attempt's last wait: what it sent" in ran.log


def test_resend_posts_once_more_in_one_attempt(send, people, sandbox, witnessed):
    """Before the wait and after it: messages that were posted again, and lost again, wait for the next attempt."""
    lost, served = {"kind": "drop_after"}, {"kind": "none"}
    sandbox.state.set_faults([lost, lost, served, served, lost])
    window = Closes(sandbox, requests=5)
    ran = send(people(400), on_unknown="resend", concurrency=1, max_requests_per_second=20, send_window=window)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"accepted": 300, "unknown": 100})
    assert Counter(witnessed().values()) == {1: 200, 2: 200}


@pytest.mark.slow
def test_who_was_texted_twice_is_told_in_place_of_a_wait(send, people, sandbox, ledger_path):
    """A late response shows it, and then the hours end: the task fails, since the next leg would not know of it."""
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

    window = Closes(sandbox)
    with later(close_and_send_again, lambda: len(sends(sandbox)) >= 2):
        ran = send(people(300), campaign="c", concurrency=1, max_requests_per_second=20, send_window=window)
    assert ran.state == "failed"
    assert "the service accepted requests whose messages others had claimed meanwhile" in ran.log


def test_while_it_waits_in_the_middle_the_summary_tells_what_was_sent(send, people, sandbox):
    """What was sent before the wait is recorded, and in the XComs, before the task gives up its slot."""
    sandbox.state.set_balance(250)
    seen = {}

    def look():
        try:
            for key in ("return_value", "responses"):
                seen[key] = latest(key)
        finally:
            # Else a task that pushed none of them would wait for ever.
            sandbox.state.set_balance(1000)

    with later(look, lambda: looks(sandbox) > 2):
        ran = send(people(400), **WAITS_IN_THE_MIDDLE)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 400})
    assert (seen["return_value"]["accepted"], seen["return_value"]["not_sent"]) == (200, 200)
    assert len(seen["responses"]) == 2


def add_an_invalid_row(path, ledger_path):
    frame = pd.read_parquet(path)
    pd.concat([frame, pd.DataFrame({"destination": ["x"], "first_name": ["y"]})]).to_parquet(path)


def upgrade_the_ledger(path, ledger_path):
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE sms_version SET version = 99")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "error"),
    [
        (
            add_an_invalid_row,
            {"limits": {"max_rows": 400}},
            "has more rows than max_rows=400. Nothing was sent. Is it",
        ),
        (add_an_invalid_row, {}, "Nothing was sent. Correct the rows, or set on_invalid='skip'"),
        (upgrade_the_ledger, {}, "Nothing was sent. Install the one that wrote it"),
    ],
    ids=["limit", "invalid rows", "ledger"],
)
def test_an_error_after_a_wait_in_the_middle_denies_nothing_that_was_sent(
    send, people, sandbox, tmp_path, ledger_path, change, options, error
):
    """People were texted before it: neither error nor summary nor report may deny that; unread, they are unknown."""
    sandbox.state.set_balance(250)
    path, report = people(400), tmp_path / "report.parquet"

    def go_on():
        change(path, ledger_path)
        sandbox.state.set_balance(1000)

    with later(go_on, lambda: looks(sandbox) > 2 and len(sandbox.state.accepted) >= 200):
        ran = send(path, report=str(report), **WAITS_IN_THE_MIDDLE, **options)
    assert (ran.state, len(sandbox.state.accepted), counts(ran).get("not_sent", 0) <= 200) == ("failed", 200, True)
    assert error in ran.log
    assert "This is about the time since the attempt's last wait: what it sent before is in its summary" in ran.log
    assert not pd.read_parquet(report)["reason"].str.contains("othing was sent").any()


@pytest.mark.slow
def test_a_stop_after_a_wait_does_not_say_that_nothing_was_sent(send, people, sandbox, monkeypatch):
    """The leg after the wait is told to stop while it compares texts: 200 people were texted before."""
    real, stops = bulk.refuse_changed_texts, []

    def slow(messages, earlier, stop):
        stops.append(stop)
        if len(stops) == 2:
            stop.set()
            time.sleep(1)
        return real(messages, earlier, stop)

    monkeypatch.setattr(bulk, "refuse_changed_texts", slow)
    window = Closes(sandbox)
    ran = send(people(400), concurrency=1, max_requests_per_second=20, send_window=window)
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 200, "not_sent": 200})
    assert "Told to stop, so nothing was sent. This is about the time since the attempt's last wait" in ran.log


@pytest.mark.slow
def test_two_rows_of_an_unknown_message_are_one_message(send, people, sandbox):
    """The error and the log name the people who may have been texted before the wait, each once."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_after"}])
    frame = pd.read_parquet(people(10_000))
    rows = pd.concat([frame, frame.iloc[100:200]])
    window = Closes(sandbox)
    ran = send(rows, concurrency=1, send_window=window)
    assert counts(ran) == {"accepted": 9_900, "unknown": 100, "duplicate": 100}
    assert ("100 messages" in ran.log, "200 messages" in ran.log) == (True, False)


def test_a_task_waits_for_its_hours(send, people, sandbox, witnessed):
    """Before they begin nothing is claimed."""
    hours = OpensLater(seconds=3)
    ran = send(people(100), send_window=hours)
    assert (ran.state, counts(ran), set(witnessed().values())) == ("success", {"accepted": 100}, {1})
    assert sends(sandbox)[0].at >= hours.opening.replace(microsecond=0)
    assert "Outside of the sending hours: waiting until" in ran.log


@pytest.mark.slow
def test_hours_that_end_in_the_middle_are_waited_for(send, people, sandbox, witnessed):
    """What is under way ends, the rest goes out when they begin again."""
    ran = send(people(300), send_window=Closes(sandbox), concurrency=1)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 300})
    assert (len(witnessed()), set(witnessed().values())) == (300, {1})
    assert "Outside of the sending hours" in ran.log


class Zones:
    """Hours that have begun for some, and for the others begin two seconds after the first look."""

    recipient_time_zone = True

    def __init__(self):
        self._until = None

    def closed_until(self, now, destination=None):
        self._until = self._until or now + timedelta(seconds=2)
        return self._until if int(destination) % 3 and now < self._until else None


@pytest.mark.slow
def test_people_are_texted_in_the_hours_of_their_own_zone(send, people, sandbox, witnessed):
    """Whose hours it is now is texted at once; the others stay for theirs, and the task with them."""
    ran = send(people(300), send_window=Zones(), chunk_size=50)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 300})
    assert (len(witnessed()), set(witnessed().values())) == (300, {1})
    early = [int(message.destination) % 3 for message in sandbox.state.accepted[:100]]
    assert set(early) == {0}


def test_while_it_waits_the_summary_is_the_plan(send, people, sandbox):
    """Who looks at a task that waits sees what is left to be sent, and nothing that was lost."""
    sandbox.state.set_balance(99)
    seen = []

    def look():
        seen.append(latest("return_value"))
        sandbox.state.set_balance(100)

    with later(look, lambda: len(sandbox.state.requests) > 2):
        send(people(100), on_low_balance="wait")
    assert [summary["not_sent"] for summary in seen] == [100]


@pytest.mark.parametrize(("status", "body"), [(401, None), (403, '{"errorCode": "Account.Deactivated"}')])
def test_a_balance_that_is_refused_ends_no_task_that_does_not_need_it(send, people, sandbox, status, body):
    """A token that is not valid is refused with the first request as well, and nobody is texted."""
    sandbox.state.add_faults([Fault("status", on="balance", status=status, body=body, persistent=True)])
    ran = send(people(100), retries=1, on_low_balance="fail")
    assert (ran.state, ran.tries, sends(sandbox), counts(ran)) == ("failed", 1, [], {"not_sent": 100})
    ran = send(people(100))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 100})


def test_a_refused_look_at_the_balance_ends_no_task_that_has_nothing_to_send(send, people, sandbox):
    """A campaign that is sent already ends well, whatever the token."""
    send(people(100), campaign="sent")
    sandbox.state.add_faults([Fault("status", on="balance", status=401, persistent=True)])
    ran = send(people(100), campaign="sent")
    assert (ran.state, counts(ran)) == ("success", {"already_sent": 100})


def test_a_403_that_speaks_of_credit_says_nothing_of_the_token(send, people, sandbox):
    """The service may refuse the balance for the want of credit: the messages are posted, and it decides."""
    body = '{"errorCode": "InsufficientCredits", "errorMessage": "no credit"}'
    sandbox.state.add_faults([Fault("status", on="balance", status=403, body=body)])
    ran = send(people(100))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 100})


# An outage


def test_an_outage_costs_a_handful_of_requests_and_a_retry_sends_the_rest(send, people, sandbox, witnessed):
    """Where the gateway answers 502 to everything, few people are unknown; once it is well, the next try texts all."""
    sandbox.state.add_faults([Fault("status", status=502, persistent=True), Fault("status", on="balance", status=502)])

    def well_again():
        posted = len(sends(sandbox))
        if posted >= 3:
            sandbox.state.set_faults([])
        return posted >= 3

    with later(lambda: None, well_again):
        ran = send(people(5000), retries=2, concurrency=2)
    assert ran.state == "failed"  # for what is unknown
    found = counts(ran)
    assert (found["unknown"] <= 600, found["unknown"] + found.get("accepted", 0) + found.get("already_sent", 0)) == (
        True,
        5000,
    )
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
def test_a_request_of_which_nobody_was_taken_is_no_success(send, people, sandbox):
    """A 200 with ``Messages: 0`` fails the task with the service's reasons, and the next run sends these messages."""
    body = {"Cost": 0, "RemainingBalance": 900, "EventId": 5, "Messages": 0, "Parts": 0}
    report = {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 100, "Faults": []}
    sandbox.state.add_faults([Fault("status", status=200, body=json.dumps({**body, "ErrorReport": report}))])
    ran = send(people(100), campaign="nobody")
    assert (ran.state, counts(ran)) == ("failed", {"not_sent": 100})
    assert "the service took nothing of a request (OptedOuts 100 in its error reports)" in ran.log
    again = send(people(100), campaign="nobody")
    assert (again.state, counts(again)) == ("success", {"accepted": 100})
