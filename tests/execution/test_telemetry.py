from __future__ import annotations

import itertools
import json
import logging
import types
from decimal import Decimal

import pytest
from support.airflow import run_task
from support.metrics import Recorder

from airflow_provider_sms.execution.telemetry import Telemetry
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator
from airflow_provider_sms.reporting.summary import COUNTS, Progress, summarise
from airflow_provider_sms.sending.counts import SendCounts


def watch(**arguments):
    ti = types.SimpleNamespace(dag_id="d", task_id="t", try_number=2)
    return Telemetry({"ti": ti}, "sms_default", **arguments)


def ended(tally, rows, invalid=0):
    return summarise("spring", rows, invalid, tally)


def named(ran):
    return {f"sms.{name}": ran.summary[name] for name in COUNTS if ran.summary[name]}


# Metrics


def test_the_counters_add_up_to_the_summary(send, people, metrics):
    """Every count of the summary is a counter, tagged with DAG, task and connection, and every request has its time."""
    numbers = [str(27_820_000_000 + n) for n in range(250)]
    numbers[7], numbers[9] = "12", numbers[8]
    ran = send(people(250, destination=numbers), "Hi", on_invalid="skip")
    assert metrics.counts() == named(ran) == {"sms.accepted": 248, "sms.invalid": 1, "sms.duplicate": 1}
    assert len(metrics.values("sms.request_duration")) == ran.summary["requests"] == 3
    assert all(milliseconds > 0 for milliseconds in metrics.values("sms.request_duration"))
    assert metrics.values("sms.balance")[-1] == ran.summary["remaining_balance"]
    assert {tuple(told.tags) for told in metrics.told} == {("dag_id", "task_id", "conn_id"), ("conn_id",)}
    assert {told.name for told in metrics.told if len(told.tags) == 1} == {"sms.balance"}


def test_what_fails_is_counted_too(send, people, sandbox, metrics):
    """Unknown and unsent messages are counted when the task fails."""
    sandbox.state.set_faults([{"kind": "drop_after"}, {"kind": "status", "status": 400}])
    ran = send(people(300), concurrency=1)
    assert (ran.state, metrics.counts()) == ("failed", {"sms.unknown": 100, "sms.not_sent": 200})
    assert len(metrics.values("sms.request_duration")) == 2


def test_a_table_that_is_refused_is_counted(send, people, metrics):
    """Where the check stops everything, rows are invalid or not sent."""
    ran = send(people(3, destination=["x", "27820000001", "27820000002"]))
    assert (ran.state, metrics.counts()) == ("failed", {"sms.invalid": 1, "sms.not_sent": 2})


def test_what_was_sent_before_is_counted_as_such(send, people, metrics):
    """Another run of a campaign counts nobody as accepted again."""
    source = people(20)
    send(source, campaign="spring")
    send(source, campaign="spring")
    assert metrics.counts() == {"sms.accepted": 20, "sms.already_sent": 20}


def test_a_group_counts_as_one_message(sms_default, ledger_path, metrics):
    """The service alone knows who is in a group."""
    run_task(lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"]))
    assert metrics.counts() == {"sms.accepted": 1}
    assert len(metrics.values("sms.request_duration")) == len(metrics.values("sms.balance")) == 1


def test_metrics_that_fail_stop_nothing(send, people, use_metrics, witnessed):
    """A send does not depend on who watches it."""
    use_metrics(Recorder(OSError("no such host")))
    ran = send(people(150))
    assert (ran.state, ran.summary["accepted"], set(witnessed().values())) == ("success", 150, {1})
    assert "No further metrics are emitted for this task: OSError" in ran.log
    assert "no such host" not in ran.log


def test_no_person_is_in_the_metrics(send, people, metrics):
    """Neither numbers nor texts are names or tags."""
    send(people(5), "Hi {first_name}")
    shown = json.dumps(metrics.told)
    assert metrics.told
    assert not any(word in shown for word in ("2782000", "Hi ", "Name0", "sandbox-token"))


def test_counters_grow_while_a_try_sends(metrics):
    """Each beat tells what is new, and the end what only the end can know."""
    watched, tally = watch(), SendCounts()
    tally.accepted = 100
    watched.beat(tally)
    watched.beat(tally)
    tally.accepted, tally.duplicate = 250, 2
    watched.beat(tally)
    assert metrics.values("sms.accepted") == [100, 150]
    watched.ended(ended(tally, 300, 3))
    assert metrics.counts() == {"sms.accepted": 250, "sms.duplicate": 2, "sms.invalid": 3, "sms.not_sent": 45}


def test_a_try_that_was_asked_about_counts_nothing_twice(metrics):
    """The part after an answer adds what has changed since the one before it."""
    before = {**dict.fromkeys(COUNTS, 0), "accepted": 100, "unknown": 50}
    watched, tally = watch(counted=before, resumed=True), SendCounts()
    tally.already_sent, tally.accepted = 100, 50
    watched.beat(tally)
    assert metrics.counts() == {}
    watched.ended({**ended(tally, 150), **before, "accepted": 150, "unknown": 0})
    assert metrics.counts() == {"sms.accepted": 50}


def test_a_request_takes_its_time_however_it_ends(metrics):
    """A post that raises is timed like one that is answered."""
    ticks = itertools.count(step=0.5)
    watched = watch(clock=lambda: next(ticks))

    def lose(messages):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        watched.timed(lose)([])
    assert watched.timed(len)([]) == 0
    watched.beat(SendCounts())
    assert metrics.values("sms.request_duration") == [500.0, 500.0]


def test_the_balance_is_told_when_it_changes(metrics):
    """It is a gauge; and 1000000 is a post-paid account's, which has none."""
    watched, tally = watch(), SendCounts()
    for balance in (None, 5, 5, 4, 1_000_000):
        tally.remaining_balance = None if balance is None else Decimal(balance)
        watched.beat(tally)
    assert metrics.values("sms.balance") == [5.0, 4.0]


# Progress


def test_progress_of_a_table_that_was_sent_is_whole_at_once(sms_default, ledger_path, people, monkeypatch):
    """While nothing is left to send, others see every message as done from the start."""
    done = []
    noted = Telemetry.note_sending

    def note_sending(self, counts, total, **how):
        done.append((counts.settled, counts.already_sent, total))
        noted(self, counts, total, **how)

    source = people(30)
    for _ in range(2):
        ran = run_task(lambda: BulkSmsOperator(task_id="send", source=source, message="Hi", campaign="spring"))
        assert ran.state == "success"
        monkeypatch.setattr(Telemetry, "note_sending", note_sending)
    assert done == [(30, 30, 30)]


def test_messages_that_are_left_for_their_recipients_hours_are_not_done(caplog):
    """While a task waits, they count as not sent."""
    tally, seconds = SendCounts(accepted=100, not_sent=200, requests=1), iter([0.0, 10.0])
    with caplog.at_level(logging.INFO):
        watch().log_sending(Progress(300, lambda: next(seconds)), tally, 300, paused=False)
    assert "100 of 300 messages done" in caplog.text
