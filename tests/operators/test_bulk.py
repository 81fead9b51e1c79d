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
from support.airflow import run_task, serialized, stored_xcoms
from support.later import later

from airflow_provider_sms.exceptions import NotSentError
from airflow_provider_sms.messages import spool
from airflow_provider_sms.operators.sms import BulkSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS
from airflow_provider_sms.sending.outcomes import Backoff
from airflow_provider_sms.service.client import SmsClient


def counts(ran):
    summary = ran.summary
    assert summary["rows"] == sum(summary[name] for name in COUNTS)
    return {name: summary[name] for name in COUNTS if summary[name]}


def sends(sandbox):
    return [request for request in sandbox.state.requests if request.operation == "bulk"]


def test_a_table_goes_out_in_requests_of_100(send, people, sandbox, witnessed):
    """1,050 rows are 11 requests that the service finds correct; XComs hold all answers with exact event ids."""
    ran = send(people(1050))
    requests = sends(sandbox)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 1050})
    assert sorted(r.submitted for r in requests) == [50] + [100] * 10
    assert {r.status for r in requests} == {200}
    taken = sorted(r.event_id for r in requests)  # requests end in any order
    assert sorted(int(each["EventId"]) for each in ran.xcoms["responses"]) == taken
    assert (len(witnessed()), set(witnessed().values())) == (1050, {1})
    assert (ran.summary["requests"], ran.summary["parts"], ran.summary["cost"]) == (11, 1050, 1050.0)
    assert Decimal(str(ran.summary["remaining_balance"])) >= sandbox.state.balance == Decimal(98_950)


def test_running_it_again_texts_nobody(send, people, sandbox, witnessed):
    """Another run of the same campaign finds everybody texted."""
    source = people(250)
    send(source, campaign="spring")
    before = len(sends(sandbox))
    again = send(source, campaign="spring")
    assert (again.state, counts(again)) == ("success", {"already_sent": 250})
    assert (len(sends(sandbox)), again.xcoms["responses"]) == (before, [])
    assert set(witnessed().values()) == {1}


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


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "drop_before"},
        {"kind": "truncated"},
        {"kind": "status", "status": 200, "by": "gateway", "accepted": True},
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 502, "accepted": True},
        {"kind": "status", "status": 504},
    ],
    ids=str,
)
def test_what_cannot_be_known_is_called_unknown(send, people, sandbox, witnessed, fault):
    """Whether or not the service took the request: an answer that does not say so leaves it unknown."""
    sandbox.state.set_faults([fault])
    ran = send(people(150))
    assert (ran.state, counts(ran)["unknown"] in (50, 100)) == ("failed", True)
    assert set(witnessed().values()) == {1}


@pytest.mark.slow
def test_a_slow_answer_is_unknown_after_the_timeout(send, people, sandbox, sms_default, witnessed):
    """A read timeout does not mean that the request was not processed: it is not repeated."""
    sms_default(extra={"timeout": 0.3})
    sandbox.state.set_faults([{"kind": "delay", "seconds": 1.0}])
    ran = send(people(100), retries=1)
    assert (ran.state, counts(ran), set(witnessed().values())) == ("failed", {"unknown": 100}, {1})


def test_throttling_and_unavailability_are_ridden_out(send, people, sandbox, witnessed):
    """429 with Retry-After and 503 cost nothing: nothing is lost, nothing goes out twice."""
    sandbox.state.set_faults(
        [
            {"kind": "status", "status": 429, "retry_after": "0", "times": 3},
            {"kind": "status", "status": 503, "retry_after": "0", "times": 2},
        ]
    )
    ran = send(people(500))
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"accepted": 500})
    assert (len(witnessed()), set(witnessed().values())) == (500, {1})


def test_refused_connections_are_ridden_out(send, people, airflow_home, ledger_path, monkeypatch):
    """A service that comes up a moment later is texted through, once each."""
    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.sandbox.server import running_sandbox

    config = SandboxConfig(token="sandbox-token-0123", balance=1000)
    with running_sandbox(config) as down:
        port = int(down.base_url.split(":")[2].split("/")[0])
    connection = {"conn_type": "sms", "host": f"http://127.0.0.1:{port}", "password": "sandbox-token-0123"}
    connection["host"] += "/v1"
    monkeypatch.setenv("AIRFLOW_CONN_SMS_DEFAULT", json.dumps(connection))
    up, done = threading.Event(), threading.Event()
    received = []

    def come_up():
        up.wait(10)
        with running_sandbox(SandboxConfig(token="sandbox-token-0123", balance=1000, port=port)) as handle:
            done.wait(60)
            received.extend(handle.state.accepted_messages)

    thread = threading.Thread(target=come_up)
    thread.start()
    threading.Timer(0.3, up.set).start()
    try:
        ran = send(people(300))
    finally:
        done.set()
        thread.join()
    assert (ran.state, counts(ran)) == ("success", {"accepted": 300})
    assert (len(received), len(set(received))) == (300, 300)


def test_a_wrong_token_fails_at_once_and_is_shown_nowhere(send, people, sandbox, sms_default):
    """401 spends no retry; the token is in no log, XCom or rendered field."""
    sms_default(password="wrong-token-4711")
    ran = send(people(300), retries=3)
    assert (ran.state, ran.tries, counts(ran)) == ("failed", 1, {"not_sent": 300})
    assert "wrong-token-4711" not in f"{ran.log}{ran.xcoms}{ran.rendered}"
    host = sandbox.base_url.partition("//")[2].partition("/")[0]
    assert f"the bearer token is missing or wrong (connection 'sms_default', host {host})" in ran.log
    assert "401" in ran.log


def test_a_service_that_is_down_is_named(send, people, sandbox):
    """With its connection and the number of attempts, and a line of progress at most."""
    sandbox.state.set_faults([{"kind": "status", "status": 503, "retry_after": "0", "times": 99}])
    ran = send(people(2))
    assert (ran.state, counts(ran)) == ("failed", {"not_sent": 2})
    host = sandbox.base_url.partition("//")[2].partition("/")[0]
    assert f"(connection 'sms_default', host {host}, 3 tries)" in ran.log
    assert ran.log.count("of 2 rows done") <= 1


def test_a_service_that_refuses_connections_is_named(send, people, sms_default, monkeypatch):
    """The same where nobody listens; nobody was texted."""
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


@pytest.mark.parametrize(("status", "by"), [(429, "service"), (404, "service"), (502, "service"), (502, "gateway")])
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


def test_a_table_that_was_sent_needs_no_connection(send, people, sms_default):
    """Its task succeeds in the first attempt, since there is nothing to post."""
    source = people(2)
    send(source, campaign="c")
    sms_default(host="http://127.0.0.1:9/v1")
    ran = send(source, campaign="c", retries=1, on_low_balance="fail")
    assert (ran.state, ran.tries, counts(ran)) == ("success", 1, {"already_sent": 2})


def test_a_service_that_has_gone_is_not_asked_what_became_of_its_requests(send, people, sandbox, monkeypatch):
    """The task has just asked it ten times in vain, and would wait once more for a connection."""
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, _=None: None if attempt >= self.attempts else 0.0)
    away = {"kind": "drop_before", "on": "balance", "persistent": True}
    sandbox.state.set_faults([{"kind": "drop_after", "accepted": True}, away])
    ran = send(people(200), concurrency=1)
    assert (ran.state, counts(ran)) == ("failed", {"unknown": 100, "not_sent": 100})
    assert "not posted, since responses were lost and the balance could not be read" in ran.log
    assert len([request for request in sandbox.state.requests if request.path.endswith("/Balance")]) == 11


def test_a_missing_token_is_named_before_the_table_is_read(send, sandbox, sms_default):
    """A connection that cannot work fails at once."""
    sms_default(password=None)
    ran = send("nowhere.parquet", retries=2)
    assert (ran.state, ran.tries, ran.xcoms, sends(sandbox)) == ("failed", 1, {}, [])
    assert "'sms_default' has no password: put the bearer token there" in ran.log


def test_a_connection_without_encryption_sends_nothing(send, people, sms_default):
    """The token is not shown to a network; no retry could help."""
    sms_default(host="http://sms.invalid/v1")
    ran = send(people(1), retries=1)
    assert (ran.state, ran.tries) == ("failed", 1)
    assert "Connection 'sms_default': host is an http:// address of another machine" in ran.log


def test_a_ledger_that_cannot_be_opened_sends_nothing(send, people, sandbox, ledger_path):
    """Without a durable ledger not one request goes out; Airflow may retry."""
    ledger_path.write_text("this is no database, and long enough to be seen as none" * 20)
    ran = send(people(150), retries=1)
    assert (ran.state, ran.tries, ran.xcoms, sends(sandbox)) == ("failed", 2, {}, [])
    assert "The ledger cannot be" in ran.log


def test_too_little_credit_stops_and_can_be_retried(send, people, sandbox, witnessed):
    """A 403 for credit says so in the service's words, and a retry after a top-up sends the rest."""
    sandbox.state.set_balance(250)
    source = people(500)
    ran = send(source, campaign="spring", concurrency=1)
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 200, "not_sent": 300})
    assert "InsufficientCredits" in ran.log
    sandbox.state.set_balance(1000)
    again = send(source, campaign="spring")
    assert (again.state, counts(again)) == ("success", {"accepted": 300, "already_sent": 200})
    assert (len(witnessed()), set(witnessed().values())) == (500, {1})


def test_a_retry_sends_what_the_first_try_did_not(send, people, sandbox, witnessed):
    """Airflow's retry goes on where the try before stopped, and XCom has the answers of both."""
    sandbox.state.set_balance(250)
    refused = lambda: any(request.error == "InsufficientCredits" for request in sandbox.state.requests)  # noqa: E731
    with later(lambda: sandbox.state.set_balance(1000), refused):
        ran = send(people(500), retries=20, concurrency=1)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 300, "already_sent": 200})
    assert (ran.tries > 1, len(ran.xcoms["responses"])) == (True, 5)
    assert set(witnessed().values()) == {1}


def test_resending_the_unknown_is_at_least_once(send, people, sandbox, witnessed):
    """Asked for, messages whose answer was lost are posted again: everybody is texted, some twice."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = send(people(300), on_unknown="resend")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 300})
    assert sorted(set(witnessed().values())) == [1, 2]


def test_people_who_opted_out_are_counted(airflow_home, ledger_path, people, monkeypatch):
    """A request taken in part is accepted, says how many it left out and why, and fails no task."""
    from airflow_provider_sms.sandbox.config import SandboxConfig
    from airflow_provider_sms.sandbox.server import running_sandbox

    config = SandboxConfig(token="sandbox-token-0123", opted_out={"27820000003", "27820000150"})
    with running_sandbox(config) as sandbox:
        connection = {"conn_type": "sms", "host": sandbox.base_url, "password": "sandbox-token-0123"}
        monkeypatch.setenv("AIRFLOW_CONN_SMS_DEFAULT", json.dumps(connection))
        source = people(200)
        task = {"task_id": "send", "source": source, "message": "Hi"}
        ran = run_task(lambda: BulkSmsOperator(**task), retries=1)
    assert (ran.state, ran.tries) == ("success", 1)
    assert (counts(ran), ran.summary["left_out"]) == ({"accepted": 200}, 2)
    assert ran.summary["error_report"]["OptedOuts"] == 2
    assert "the service took 99 of 100 messages" in ran.log


def test_untidy_numbers_and_repeats_are_counted(send, sandbox, witnessed):
    """Numbers as people store them are cleaned, bad rows left out, repeats sent once."""
    frame = pd.DataFrame(
        {
            "destination": ["+27 82 123 4567", "0821234568", "27821234567.0", None, "2.78E+10", "(082) 123-4569", "x"],
            "first_name": ["Ann", "Ben", "Ann", "Cy", "Di", None, "Ed"],
        }
    )
    ran = send(frame, on_invalid="skip", default_region="ZA")
    assert counts(ran) == {"accepted": 2, "duplicate": 1, "invalid": 4}
    assert witnessed() == {("27821234567", "Hi Ann"): 1, ("27821234568", "Hi Ben"): 1}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"destination": ["27820000000", "2.78E+10"]}, "1 of 2 rows cannot be texted"),
        ({"destination": ["27820000000", None]}, "row 1, column destination"),
        ({"phone": ["27820000000"]}, "destination"),
        ({"destination": [None, None]}, "2 of 2 rows cannot be texted"),
    ],
    ids=["exponent", "null", "no column", "no valid row"],
)
def test_bad_input_is_refused_before_anything_is_sent(send, sandbox, rows, says):
    """A clear error, no retry, and not one request."""
    ran = send(pd.DataFrame(rows), "Hello", retries=2)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 1, [])
    assert says in ran.log
    assert not ran.xcoms or counts(ran).keys() <= {"invalid", "not_sent"}


def test_no_valid_row_fails_even_where_invalid_rows_are_skipped(send, sandbox):
    """A table of which nothing can be texted is probably the wrong one."""
    ran = send(pd.DataFrame({"destination": ["x", None]}), "Hello", on_invalid="skip")
    assert (ran.state, counts(ran), sends(sandbox)) == ("failed", {"invalid": 2}, [])


def test_a_null_in_a_template_column_is_an_invalid_row(send, people, sandbox):
    """'Hi nan' is never sent: by default one such row stops everything."""
    ran = send(people(3, first_name=["Ann", None, "Cy"]))
    assert (ran.state, counts(ran), sends(sandbox)) == ("failed", {"invalid": 1, "not_sent": 2}, [])
    assert "row 1, column first_name" in ran.log


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_empty_table_may_be_refused(send, sandbox, dry_run):
    """Before anything is sent, and without a retry."""
    ran = send([], limits={"min_rows": "1"}, retries=1, dry_run=dry_run)
    assert (ran.state, ran.tries, ran.xcoms, sends(sandbox)) == ("failed", 1, {}, [])
    assert "The source has 0 rows, fewer than min_rows=1. Nothing was sent" in ran.log


@pytest.mark.parametrize("empty", [[], pd.DataFrame({"destination": [], "first_name": []})], ids=["list", "frame"])
def test_an_empty_table_is_a_day_without_texts(send, sandbox, empty):
    """Nobody to text is no error: the summary says 0 rows."""
    ran = send(empty)
    assert (ran.state, ran.summary["rows"], sends(sandbox)) == ("success", 0, [])


def test_a_file_that_is_no_parquet_is_refused(send, tmp_path, sandbox):
    """The error names the file and nothing is sent."""
    (tmp_path / "people.parquet").write_text("destination\n27820000000\n")
    ran = send(str(tmp_path / "people.parquet"), retries=2)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 1, [])
    assert "people.parquet" in ran.log


@pytest.mark.slow
def test_sources_of_every_kind_send_the_same(send, people, tmp_path, witnessed):
    """A path, a directory, a glob, a URI, a list of paths, a table, a frame and a list of dicts are one campaign."""
    path = people(20)
    table = pq.read_table(path)
    (tmp_path / "parts").mkdir()
    pq.write_table(table.slice(0, 10), tmp_path / "parts" / "a.parquet")
    pq.write_table(table.slice(10), tmp_path / "parts" / "b.parquet")
    parts = [str(tmp_path / "parts" / name) for name in ("a.parquet", "b.parquet")]
    sources = [path, str(tmp_path / "parts"), str(tmp_path / "parts" / "*.parquet"), f"file://{path}", parts]
    sources += [[f"file://{part}" for part in parts], table, table.to_pandas(), table.to_pylist()]
    results = [counts(send(source, campaign="one")) for source in sources]
    assert results == [{"accepted": 20}] + [{"already_sent": 20}] * (len(sources) - 1)
    assert set(witnessed().values()) == {1}


@pytest.mark.parametrize("source", [["27820000001", "+27 82 000 0002"], ("0820000001", "0820000002")], ids=str)
def test_a_list_of_numbers_is_texted_and_shown_nowhere(send, witnessed, source):
    """The most natural first try; the numbers to suppress may be given alike."""
    ran = send(source, "Hi", destination_column="mobile", default_region="ZA", suppress="0820000002")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 1, "suppressed": 1})
    assert witnessed() == {("27820000001", "Hi"): 1}
    assert (ran.rendered["source"], ran.rendered["suppress"]) == (
        f"{type(source).__name__} of 2 rows",
        "list of 1 row",
    )
    assert "820000" not in f"{ran.log}{ran.rendered}{ran.summary}".replace(" ", "")


@pytest.mark.parametrize("name", ["source", "suppress"])
def test_what_could_be_a_number_is_not_shown_by_an_error(send, people, sandbox, name):
    """The error names the argument, and masks what was taken for a path."""
    ran = send(**{"source": people(1), name: "Ann;27820000001"}, retries=1)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 1, [])
    assert f"{name}: Ann;2782*****01: there is no such file or directory" in ran.log
    assert "27820000001" not in ran.log


def test_rows_are_not_shown_by_airflow(send, sandbox):
    """Rendered fields and the log hold no number and no rendered text, also when rows are given in the DAG file."""
    sandbox.state.set_faults([{"kind": "drop_after"}])
    ran = send([{"destination": "27820000001", "first_name": "Zacharias{{ ds }}"}])
    assert ran.rendered["source"] == "list of 1 row"
    shown = f"{ran.log}{ran.rendered}{ran.summary}"
    assert ("27820000001" in shown, "Zacharias" in shown) == (False, False)


def test_rows_of_an_upstream_task_are_not_shown_by_airflow(sms_default, sandbox, ledger_path, witnessed):
    """A DataFrame that arrives through XCom is texted, and neither rendered nor logged."""
    from airflow.providers.common.compat.sdk import task

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
    from airflow.providers.common.compat.sdk import task

    paths = [people(3), people(5)]

    def make():
        @task
        def path_of(n):
            return paths[n]

        return BulkSmsOperator(task_id="send", source=path_of.expand(n=[0, 1]), message="Hi {first_name}")

    ran = run_task(make)
    assert (ran.state, counts(ran)) == ("success", {"accepted": 5, "duplicate": 3})


def test_key_columns_identify_a_message_whose_text_changes(send, witnessed):
    """With key columns, another text for the same order is the same message."""
    frame = pd.DataFrame({"destination": ["27820000001"], "order": [7]})
    send(frame, "Order {order} at noon", campaign="orders", key_columns=["order"])
    again = send(frame, "Order {order} at one", campaign="orders", key_columns=["order"])
    assert counts(again) == {"already_sent": 1}
    assert sum(witnessed().values()) == 1


def test_send_options_are_passed_through(send, people, sandbox):
    """Send Options reach the service as they were given, rendered."""
    send(people(1), send_options={"SenderId": "ACME", "TestMode": True, "CampaignName": "{{ dag.dag_id }}"})
    (request,) = sends(sandbox)
    assert request.send_options["SenderId"] == "ACME"
    assert request.send_options["CampaignName"].startswith("dag_")


def test_above_the_limit_xcoms_hold_how_many_answers_there_are(send, people):
    """XComs do not grow with the table."""
    ran = send(people(101), chunk_size=1)
    assert "The 101 responses are too many for an XCom" in ran.log
    assert ran.xcoms["responses"] == {"truncated": True, "requests": 101}


def test_a_dry_run_sends_nothing(send, people, sandbox):
    """Every row is checked, and no send operation is called."""
    ran = send(people(30), dry_run=True)
    assert (ran.state, counts(ran), sends(sandbox)) == ("success", {"not_sent": 30}, [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"send_options": "{{ 'SenderId' }}"}, "send_options must be a dict"),
        ({"report": "{{ ' ' }}"}, "report must be the path"),
        ({"message": "Hi {first_name{{ '!r' }}}"}, "has a conversion; only a format is allowed"),
        ({"message": "{{ none }}"}, "message is 'None': was there no value to render it from?"),
        ({"source": "nowhere.parquet"}, "nowhere.parquet"),
        ({"source": "nowhere://x/y.parquet"}, "no file system for nowhere://"),
    ],
    ids=str,
)
def test_what_only_the_task_knows_is_refused_before_anything_is_sent(send, sandbox, people, arguments, says):
    """What a template renders, and what the worker has: it fails at once, in words that name the argument."""
    ran = send(**{"source": people(1), **arguments}, retries=1)
    assert (ran.state, ran.tries, sends(sandbox)) == ("failed", 1, [])
    assert says in ran.log


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


PARTLY = {
    "statusCode": 200,
    "sendResponse": {
        "cost": 1.10,
        "remainingBalance": 9,
        "eventId": 7,
        "sample": "Dear Ann",
        "messages": 4,
        "parts": 4,
        "errorReport": {"faults": [{"rawDestination": "27820000003", "errorMessage": "blocked: 0820000003"}]},
        "extra": "27829999999",
    },
}
"""A response that left one message out, with a text and a number; the extra field is not of the contract."""


@pytest.fixture
def taken_in_part(sandbox):
    """Let the service answer the next request with :data:`PARTLY`."""
    step = {"kind": "status", "status": 200, "accepted": True, "body": json.dumps(PARTLY)}
    return lambda: sandbox.state.set_faults([step])


def test_responses_hold_no_text_and_no_number_by_default(send, people, taken_in_part, ledger_path):
    """XComs and ledger leave out the sample and mask the faults."""
    taken_in_part()
    ran = send(people(5), campaign="spring")
    fault = {"rawDestination": "2782*****03", "errorMessage": "blocked: 0820*****03"}
    fields = {key: value for key, value in PARTLY["sendResponse"].items() if key != "sample"}
    shown = {**PARTLY, "sendResponse": {**fields, "eventId": "7", "errorReport": {"faults": [fault]}}}
    assert json.dumps(ran.xcoms["responses"]) == json.dumps([shown])
    assert [words for words in ("Dear Ann", "27820000003", "0820000003") if words in kept(ledger_path)] == []


def test_a_text_that_a_fault_repeats_is_nowhere(send, people, sandbox, ledger_path, tmp_path):
    """Neither in the row report nor in XComs and ledger, which have the words around it."""
    words = "Content 'Your parcel 17 arrives on Monday' holds signs"
    fault = {"rawDestination": "27820000003", "errorMessage": words}
    body = {"Cost": 4, "RemainingBalance": 9, "EventId": 7, "Messages": 4, "Parts": 4}
    body["ErrorReport"] = {"Faults": [fault]}
    sandbox.state.set_faults([{"kind": "status", "status": 200, "accepted": True, "body": json.dumps(body)}])
    ran = send(people(5), message="Your parcel 17 arrives on Monday", report=str(tmp_path / "rows.parquet"))
    report = str(pq.read_table(tmp_path / "rows.parquet").to_pylist())
    del ran.xcoms["plan"]  # it has the text's template, for a person who approves it
    assert "parcel" not in report
    for place in (json.dumps(ran.xcoms), kept(ledger_path)):
        assert ("parcel" in place, "Content '***' holds signs" in place) == (False, True)


def test_rows_that_a_template_wrote_out_are_not_shown(send, sandbox):
    """A pulled XCom that was rendered into text is refused with what to do, and its numbers stay hidden."""
    ran = send("[{'destination': '27820000001'}]", retries=1)
    assert (ran.state, ran.tries, "27820000001" in f"{ran.log}{ran.rendered}") == ("failed", 1, False)
    assert "Pass the upstream task's output" in ran.log


def test_without_xcoms_nothing_is_pushed(send, people):
    """``do_xcom_push=False`` holds for everything that the task pushes."""
    ran = send(people(5), do_xcom_push=False)
    assert (ran.state, {key: value for key, value in ran.xcoms.items() if value}) == ("success", {})


def test_mapped_tasks_share_a_campaign_and_keep_their_answers_apart(
    sms_default, sandbox, ledger_path, people, witnessed
):
    """Overlapping partitions text nobody twice, and each task's XComs are its own."""
    sources = [people(150), people(250)]

    def make():
        return BulkSmsOperator.partial(task_id="send", message="Hi {first_name}").expand(source=sources)

    run = run_task(make, only=None)
    pushed = stored_xcoms(dag_id=run.dag_id, run_id=run.run_id, key="responses")
    answers = {row.map_index: len(value) for row, value in pushed}
    assert (run.state, set(witnessed().values()), len(witnessed())) == ("success", {1}, 250)
    # Whichever ran first sent all of its own; the other one what was left.
    assert answers in ({0: 2, 1: 1}, {0: 0, 1: 3})


def test_a_relative_ledger_path_is_in_airflows_home(airflow_home, monkeypatch, tmp_path):
    """Wherever a task happens to run, it finds the same ledger."""
    from airflow_provider_sms.hooks.ledger import open_ledger

    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_PATH", "here.db")
    monkeypatch.chdir(tmp_path)
    open_ledger(None).close()
    assert ((airflow_home / "here.db").exists(), list(tmp_path.iterdir())) == (True, [])


def test_sigterm_while_rows_are_checked_sends_nothing(send, people, sandbox):
    """A task that is told to stop before the first request makes none."""
    path = people(5)

    class Terminating:
        """A path that is asked for when the task has begun."""

        def __fspath__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            return path

    before = signal.getsignal(signal.SIGTERM)
    try:
        ran = send(Terminating())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (ran.state, sends(sandbox)) == ("failed", [])
    assert "Told to stop, so nothing was sent" in ran.log


@pytest.mark.slow
def test_an_execution_timeout_records_what_was_in_flight(send, people, sandbox, witnessed):
    """Airflow's timeout stops new claims; requests that are under way are awaited and recorded, and XComs pushed."""
    # The slowest machine has posted something by then.
    sandbox.state.set_faults([{"kind": "delay", "seconds": 3, "persistent": True}])
    source = people(1000)
    ran = send(source, campaign="spring", concurrency=2, execution_timeout=timedelta(seconds=2.5))
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 200, "not_sent": 800})
    assert "AirflowTaskTimeout" in ran.log
    sandbox.state.set_faults([])
    again = send(source, campaign="spring")
    assert counts(again) == {"accepted": 800, "already_sent": 200}
    assert set(witnessed().values()) == {1}


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


def test_a_table_in_memory_is_not_copied_into_the_dag(airflow_home):
    """The serialised DAG, which Airflow stores and shows, holds no number."""
    from airflow.providers.common.compat.sdk import DAG
    from airflow.serialization import serialized_objects

    serializing = getattr(serialized_objects, "DagSerialization", serialized_objects.SerializedDAG)
    table = pa.table({"destination": ["27820000001"]})
    with DAG("d", schedule=None) as dag:
        BulkSmsOperator(task_id="a", source=table, message="Hi")
        BulkSmsOperator(task_id="b", source=table.to_pandas(), message="Hi")
        BulkSmsOperator(task_id="c", source=table.to_pylist(), message="Hi")
    assert "27820000001" not in json.dumps(serializing.serialize_dag(dag), default=str)


@pytest.mark.parametrize(
    "numbers", [["27820000001"], [{"destination": "27820000001"}], "27820000001"], ids=["list", "rows", "number"]
)
def test_numbers_in_partial_are_not_copied_into_the_dag(numbers, airflow_home):
    """The serialised DAG holds no number that is written in partial(…)."""
    from airflow.providers.common.compat.sdk import DAG

    with DAG("d", schedule=None) as dag:
        BulkSmsOperator.partial(task_id="a", source=numbers, suppress=numbers).expand(message=["Hi", "Ho"])
    assert "27820000001" not in json.dumps(serialized(dag), default=str)


def test_numbers_in_partial_are_texted(sms_default, sandbox, ledger_path, witnessed):
    """Each mapped task reads the rows that partial(…) was given, and suppresses the numbers that it was given."""

    def make():
        return BulkSmsOperator.partial(
            task_id="send", source=["27820000001", "27820000002"], suppress=["27820000002"]
        ).expand(message=["Hi", "Ho"])

    run = run_task(make, only=None)
    assert (run.state, witnessed()) == ("success", {("27820000001", "Hi"): 1, ("27820000001", "Ho"): 1})


def test_partial_leaves_paths_and_assets_alone(airflow_home):
    """A path, a template, and an asset, which becomes an inlet of each task, stay as they are written."""
    from airflow.providers.common.compat.sdk import Asset

    asset = Asset("file:///data/people.parquet")
    for source in ("a.parquet", ["{{ ds }}.parquet"], asset):
        mapped = BulkSmsOperator.partial(task_id="a", source=source).expand(message=["Hi"])
        assert mapped.partial_kwargs["source"] is source


@pytest.fixture
def credit_comes_late(sandbox):
    """Run out of credit after 200 messages; there is enough for the retry."""
    sandbox.state.set_balance(200)
    return {"retries": 2, "concurrency": 1, "on_retry_callback": lambda context: sandbox.state.set_balance(10_000)}


def test_a_text_that_changes_between_tries_stops_the_retry(send, people, credit_comes_late, witnessed):
    """A template with now() texts nobody twice: the retry says how many texts changed, and what to do."""
    ran = send(people(1000), "Hi {first_name}, it is {{ macros.datetime.now() }}", **credit_comes_late)
    assert (ran.state, ran.tries, len({number for number, _ in witnessed()})) == ("failed", 2, 200)
    changed = "200 messages to recipients that an earlier attempt of this task claimed in this run have another text"
    assert changed in ran.log
    assert ("key_columns" in ran.log, "new campaign" in ran.log) == (True, True)
    assert counts(ran) == {"not_sent": 1000}


def test_with_key_columns_a_text_may_change(send, people, credit_comes_late, witnessed):
    """Where key columns say what a message is, the retry sends the rest, and nobody gets a second text."""
    message = "Hi {first_name}, it is {{ macros.datetime.now() }}"
    ran = send(people(1000), message, key_columns=["first_name"], **credit_comes_late)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 2, {"already_sent": 200, "accepted": 800})
    assert (len(witnessed()), len({number for number, _ in witnessed()})) == (1000, 1000)
