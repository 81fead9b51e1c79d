from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import DAG, Asset, task
from support.airflow import run_task, serialized

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.messages import spool
from airflow_provider_sms.operators.sms import BulkSmsOperator, SqlSource
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.service.echoes import WITHHELD

NUMBER = "27820000001"
ROW = {"destination": NUMBER}
TABLE = pa.Table.from_pylist([ROW])
QUERY = SqlSource("people_db", "SELECT ?", [NUMBER])


def counts(ran):
    summary = ran.summary
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


def sends(sandbox):
    return [request for request in sandbox.state.requests if request.operation == "bulk"]


@pytest.fixture
def credit_comes_late(sandbox):
    """Run out of credit after 200 messages; there is enough for the retry."""
    sandbox.state.set_balance(200)
    return {"retries": 2, "concurrency": 1, "on_retry_callback": lambda context: sandbox.state.set_balance(10_000)}


def test_a_table_goes_out_in_requests_of_100(send, people, sandbox, witnessed):
    """1,050 rows are 11 requests that the service finds correct; XComs hold all answers with exact event ids.

    Another run of the same campaign finds everybody texted.
    """
    ran = send(people(1050))
    requests = sends(sandbox)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 1050})
    assert sorted(r.response["Messages"] for r in requests) == [50] + [100] * 10
    assert {r.status for r in requests} == {200}
    taken = sorted(r.response["EventId"] for r in requests)  # requests end in any order
    assert sorted(int(each["EventId"]) for each in ran.xcoms["responses"]) == taken
    assert (ran.summary["requests"], ran.summary["parts"], ran.summary["cost"]) == (11, 1050, 1050.0)
    assert Decimal(str(ran.summary["remaining_balance"])) >= sandbox.state.balance == Decimal(98_950)
    again = send(people(1050), campaign=ran.summary["campaign"])
    assert (again.state, counts(again), again.xcoms["responses"]) == ("success", {"already_sent": 1050}, [])
    assert (len(sends(sandbox)), len(witnessed()), set(witnessed().values())) == (11, 1050, {1})


@pytest.mark.parametrize("rate", [None, 10_000.0])
def test_in_blocks_by_key_everybody_gets_their_own_text(send, tmp_path, witnessed, monkeypatch, rate):
    """However messages are ordered on their way, each reaches its own number once, and each row its own place."""
    monkeypatch.setattr(spool, "BLOCK_ROWS", 100)
    monkeypatch.setattr(spool, "MAX_BLOCK_ROWS", 250)
    rows = [(str(27_820_000_000 + n * 7919 % 1500), f"Name {n * 7919 % 1500}") for n in range(1500)]
    rows[700:700] = rows[300:350]  # repeats, within a block and across blocks
    rows[1000:1000] = [("no number", "x")] * 3
    source, report = tmp_path / "people.parquet", tmp_path / "report.parquet"
    pq.write_table(pa.table({"destination": [r[0] for r in rows], "first_name": [r[1] for r in rows]}), source)
    ran = send(str(source), on_invalid="skip", report=str(report), max_requests_per_second=rate)
    assert counts(ran) == {"accepted": 1500, "duplicate": 50, "invalid": 3}
    assert witnessed() == dict.fromkeys(((f"{number}", f"Hi {name}") for number, name in set(rows) - {rows[1000]}), 1)
    reported = pq.read_table(report).to_pylist()
    assert [row["destination"] for row in reported] == [number for number, _ in rows]
    first = {row["destination"]: row["status"] for row in reversed(reported)}
    assert set(first.values()) == {"accepted", "invalid"}


def test_lost_answers_are_unknown_and_never_sent_again(send, people, sandbox, witnessed):
    """Answers of 3 of 10 requests lost: 300 unknown, 700 accepted, a failed task that names them, no duplicates."""
    sandbox.state.set_faults([{"kind": "none", "times": 2}, {"kind": "drop_after", "times": 3}])
    source = people(1000)
    ran = send(source, campaign="spring", retries=2)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"accepted": 700, "unknown": 300})
    assert len(ran.xcoms["responses"]) == 7
    assert "300 messages in the ledger's requests " in ran.log
    again = send(source, campaign="spring")
    assert (again.state, counts(again)) == ("failed", {"already_sent": 700, "unknown": 300})
    assert (len(witnessed()), set(witnessed().values())) == (1000, {1})


def test_a_wrong_token_fails_at_once_and_is_shown_nowhere(send, people, sandbox, sms_default):
    """401 spends no retry; the token is in no log, XCom or rendered field."""
    sms_default(password="wrong-token-4711")
    ran = send(people(300), retries=3)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"not_sent": 300})
    assert "wrong-token-4711" not in f"{ran.log}{ran.xcoms}{ran.rendered}"
    host = sandbox.base_url.partition("//")[2].partition("/")[0]
    assert f"the bearer token is missing or wrong (connection 'sms_default', host {host})" in ran.log
    assert "401" in ran.log


def test_a_service_that_refuses_connections_is_named(send, people, sms_default, monkeypatch):
    """With its connection and the number of tries, and few lines of progress; nobody was texted."""
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, _=None: None if attempt >= self.attempts else 0.0)
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        sms_default(host=f"http://{host}/v1")
        ran = send(people(2), retries=1)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 2, {"not_sent": 2})
    assert f"(connection 'sms_default', host {host}, 10 tries)" in ran.log
    assert ran.log.count("next try in") == 18
    assert ran.log.count("of 2 rows done") <= 2


@pytest.mark.parametrize(("status", "by"), [(404, "service"), (502, "gateway")])
def test_a_service_that_responds_without_a_balance_is_within_reach(send, people, sandbox, monkeypatch, status, by):
    """One failure after that ends no attempt."""
    post, posts = SmsClient.send_bulk, []

    def send_bulk(*arguments, **options):
        posts.append(arguments)
        if len(posts) == 1:
            raise NotSentError("bulkmessages: not sent: Connection refused")
        return post(*arguments, **options)

    monkeypatch.setattr(SmsClient, "send_bulk", send_bulk)
    sandbox.state.set_faults([{"kind": "status", "status": status, "on": "balance", "by": by}])
    ran = send(people(2), retries=1)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 2})


@pytest.mark.parametrize("on_low_balance", ["send", "fail"])
def test_a_balance_of_another_host_says_nothing_of_the_way_to_the_service(send, people, sms_default, on_low_balance):
    """Where only that host is out of reach, the messages go out; where the balance is needed, the error names it."""
    sms_default(extra={"balance_url": "http://127.0.0.1:9/v1"})
    ran = send(people(2), retries=1, on_low_balance=on_low_balance)
    assert (ran.state, ran.tries) == (("failed", 2) if on_low_balance == "fail" else ("success", 1))
    assert ("(connection 'sms_default', host 127.0.0.1:9)" in ran.log) is (on_low_balance == "fail")


def test_a_service_that_has_gone_is_not_asked_what_became_of_its_requests(send, people, sandbox, monkeypatch):
    """The task has just asked it ten times in vain, and would wait once more for a connection."""
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, _=None: None if attempt >= self.attempts else 0.0)
    away = {"kind": "drop_before", "on": "balance", "persistent": True}
    sandbox.state.set_faults([{"kind": "drop_after", "accepted": True}, away])
    ran = send(people(200), concurrency=1)
    assert (ran.state, counts(ran)) == ("failed", {"unknown": 100, "not_sent": 100})
    assert "not posted, since responses were lost and the balance could not be read" in ran.log
    assert len([request for request in sandbox.state.requests if request.path.endswith("/Balance")]) == 11


def test_a_connection_without_encryption_sends_nothing(send, people, sms_default):
    """The token is not shown to a network; no retry could help."""
    sms_default(host="http://sms.invalid/v1")
    ran = send(people(1), retries=1)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "Connection 'sms_default': host is an http:// address of another machine" in ran.log


def test_a_retry_sends_what_the_first_try_did_not(send, people, credit_comes_late, witnessed):
    """After a 403 for credit, in the service's words, the retry sends the rest; XCom has the responses of both."""
    ran = send(people(500), **credit_comes_late)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 2, {"accepted": 300, "already_sent": 200})
    assert ("InsufficientCredits" in ran.log, len(ran.xcoms["responses"])) == (True, 5)
    assert (len(witnessed()), set(witnessed().values())) == (500, {1})


@pytest.mark.parametrize("empty", [[], pd.DataFrame({"destination": [], "first_name": []})], ids=["list", "frame"])
def test_an_empty_table_is_a_day_without_texts(send, sandbox, empty):
    """Nobody to text is no error: the summary says 0 rows."""
    ran = send(empty)
    assert (ran.state, ran.summary["rows"], sends(sandbox)) == ("success", 0, [])


@pytest.mark.parametrize("source", [["27820000001", "+27 82 000 0002"], ("0820000001", "0820000002")], ids=str)
def test_a_list_of_numbers_is_texted_and_shown_nowhere(send, witnessed, source):
    """The most natural first try; the numbers to suppress may be given alike."""
    ran = send(source, "Hi", destination_column="mobile", default_region="ZA", suppress="0820000002")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 1, "suppressed": 1})
    assert witnessed() == {("27820000001", "Hi"): 1}
    rendered = (f"{type(source).__name__} of 2 rows", "list of 1 row")
    assert (ran.rendered["source"], ran.rendered["suppress"]) == rendered
    assert "820000" not in f"{ran.log}{ran.rendered}{ran.summary}".replace(" ", "")


def test_rows_of_an_upstream_task_are_not_shown_by_airflow(sms_default, sandbox, ledger_path, witnessed):
    """A DataFrame that arrives through XCom is texted, and neither rendered nor logged."""

    def make():
        @task(show_return_value_in_logs=False)
        def recipients():
            return pd.DataFrame({"destination": ["27820000001"], "first_name": ["Zacharias"]})

        return BulkSmsOperator(task_id="send", source=recipients(), message="Hi {first_name}")

    ran = run_task(make)
    assert (ran.state, witnessed()) == ("success", {("27820000001", "Hi Zacharias"): 1})
    assert ran.rendered["source"] == "DataFrame"
    assert "27820000001" not in ran.log


def test_paths_of_a_mapped_upstream_task_are_one_source(sms_default, sandbox, ledger_path, people, witnessed):
    """What a mapped task returned, a lazy sequence of paths, is read as a list of them."""
    paths = [people(3), people(5)]

    def make():
        @task
        def path_of(n):
            return paths[n]

        return BulkSmsOperator(task_id="send", source=path_of.expand(n=[0, 1]), message="Hi {first_name}")

    ran = run_task(make)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 5, "duplicate": 3})


@pytest.mark.parametrize("extra", [str(2**128), "[" * 300 + "]" * 300], ids=["long", "deep"])
def test_no_value_of_an_answer_fails_a_finished_send(send, people, sandbox, extra):
    """An integer beyond 64 bits, or a field of more levels than an XCom takes, costs the XCom alone."""
    body = f'{{"Cost":1,"RemainingBalance":9,"EventId":7,"Messages":5,"Parts":5,"Extra":{extra}}}'
    sandbox.state.set_faults([{"kind": "status", "status": 200, "accepted": True, "body": body}])
    ran = send(people(5))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 5})
    assert "responses" not in ran.xcoms or ran.xcoms["responses"][0]["EventId"] == "7"


def kept(ledger_path):
    """The responses that the ledger holds, as text."""
    with closing(sqlite3.connect(ledger_path)) as connection:
        return "".join(text for (text,) in connection.execute("SELECT response FROM sms_request"))


TEXT = "Your parcel 17 arrives on Monday"
FAULTS = [
    {"rawDestination": "27820000003", "errorMessage": "blocked: 0820000003"},
    {"rawDestination": "27820000004", "errorMessage": f"Content '{TEXT}' holds signs"},
]
FIGURES = {"cost": 1.10, "remainingBalance": 9, "eventId": 7, "messages": 4, "parts": 4}
PARTLY = {**FIGURES, "sample": "Dear Ann", "errorReport": {"faults": FAULTS}, "extra": "27829999999"}
"""A response that left messages out, with a text and numbers; the extra field is not of the contract."""


def test_responses_hold_no_text_and_no_number_by_default(send, people, sandbox, ledger_path, tmp_path):
    """XComs and ledger keep the contract's fields without the sample, mask faults, and withhold a text in their words.

    Nor is that text in the row report.
    """
    body = json.dumps({"statusCode": 200, "sendResponse": PARTLY})
    sandbox.state.set_faults([{"kind": "status", "status": 200, "accepted": True, "body": body}])
    report = tmp_path / "rows.parquet"
    ran = send(people(6), TEXT, campaign="spring", report=str(report))
    faults = [{"errorMessage": "blocked: 0820*****03"}, {"errorMessage": WITHHELD}]
    told = {"NoNetwork": 0, "Duplicates": 0, "OptedOuts": 0, "Faults": faults}
    figures = {"Cost": 1.1, "RemainingBalance": 9, "EventId": "7", "Messages": 4, "Parts": 4, "CostBreakDown": []}
    assert ran.xcoms["responses"] == [{**figures, "ErrorReport": told}]
    hidden = ("Dear Ann", "27820000003", "0820000003", "parcel")
    assert [words for words in hidden if words in kept(ledger_path)] == []
    assert "parcel" not in str(pq.read_table(report).to_pylist())


def test_without_xcoms_nothing_is_pushed(send, people):
    """``do_xcom_push=False`` holds for everything that the task pushes."""
    ran = send(people(5), do_xcom_push=False)
    assert (ran.state, {key: value for key, value in ran.xcoms.items() if value}) == ("success", {})


@pytest.mark.slow
def test_an_execution_timeout_records_what_was_in_flight(send, people, sandbox):
    """Airflow's timeout stops new claims; requests that are under way are awaited and recorded, and XComs pushed."""
    # The slowest machine has posted something by then.
    sandbox.state.set_faults([{"kind": "delay", "seconds": 8, "persistent": True}])
    ran = send(people(1000), concurrency=2, execution_timeout=timedelta(seconds=7))
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 200, "not_sent": 800})
    assert "AirflowTaskTimeout" in ran.log


def test_sigterm_records_what_was_in_flight(send, people, sandbox, witnessed):
    """Told to stop, the task claims nothing more, and waits for and records what is under way."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.6, "persistent": True}])

    def terminate():
        while len(sandbox.state.accepted) < 200:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=terminate)
    thread.start()
    try:
        ran = send(people(1000), concurrency=2)
    finally:
        thread.join()
        signal.signal(signal.SIGTERM, before)
    # Both requests that were in flight; on a busy machine, others that were claimed before the signal came.
    taken = sum(witnessed().values())
    assert 200 <= taken < 1000
    assert (ran.state, counts(ran)) == ("failed", {"accepted": taken, "not_sent": 1000 - taken})
    assert "Sending was stopped" in ran.log


@pytest.mark.parametrize("rows", [[ROW], TABLE, TABLE.to_pandas(), [NUMBER], NUMBER, QUERY], ids=type)
def test_rows_in_memory_are_not_copied_into_the_dag(rows, airflow_home):
    """The serialised DAG, which Airflow stores and shows, holds no number, mapped or not, nor a query's parameter."""
    with DAG("d", schedule=None) as dag:
        BulkSmsOperator(task_id="a", source=rows, suppress=rows, message="Hi")
        BulkSmsOperator.partial(task_id="b", source=rows, suppress=rows).expand(message=["Hi", "Ho"])
    assert NUMBER not in json.dumps(serialized(dag), default=str)


def test_partial_leaves_paths_and_assets_alone(airflow_home):
    """A path, a template, and an asset, which becomes an inlet of each task, stay as they are written."""
    asset = Asset("file:///data/people.parquet")
    for source in ("a.parquet", ["{{ ds }}.parquet"], asset):
        mapped = BulkSmsOperator.partial(task_id="a", source=source).expand(message=["Hi"])
        assert mapped.partial_kwargs["source"] is source


def test_a_text_that_changes_between_tries_stops_the_retry(send, people, credit_comes_late, witnessed):
    """A template with now() texts nobody twice: the retry says how many texts changed, and what to do."""
    ran = send(people(1000), "Hi {first_name}, it is {{ macros.datetime.now() }}", **credit_comes_late)
    assert (ran.state, ran.tries, len({number for number, _ in witnessed()})) == ("failed", 2, 200)
    changed = "200 messages to recipients that an earlier attempt of this task claimed in this run have another text"
    assert changed in ran.log
    assert ("key_columns" in ran.log, "new campaign" in ran.log) == (True, True)
    assert counts(ran) == {"not_sent": 1000}
