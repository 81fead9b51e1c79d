from __future__ import annotations

from decimal import Decimal

import pytest
from support.metrics import Recorder, Told

from airflow_provider_sms.hooks.metrics import Metrics, gauge_balance
from airflow_provider_sms.service.responses import Balance

TAGS = {"dag_id": "d", "task_id": "t"}


def test_each_kind_reaches_the_backend_under_its_name(metrics):
    """Names begin with ``sms.``, tags go along, and times are milliseconds; 0 is not told."""
    told = Metrics(TAGS)
    told.count("accepted", 0)
    told.count("accepted", 5)
    told.time("request_duration", 0.25)
    told.gauge("balance", 12.5)
    assert metrics.told == [
        Told("count", "sms.accepted", 5, TAGS),
        Told("time", "sms.request_duration", 250.0, TAGS),
        Told("gauge", "sms.balance", 12.5, TAGS),
    ]


def test_a_backend_that_fails_is_given_up(use_metrics, caplog):
    """It never raises, says so once without the error's words, and is not tried again."""
    recorder = use_metrics(Recorder(RuntimeError("27820000000")))
    told = Metrics(TAGS)
    for _ in range(3):
        told.count("accepted", 5)
    assert len(recorder.told) == 1
    assert [record.message for record in caplog.records] == [
        "No further metrics are emitted for this task: RuntimeError"
    ]


@pytest.mark.parametrize("in_triggerer", [False, True])
def test_a_balance_is_the_accounts(metrics, in_triggerer):
    """It is told by connection alone, in a task and in the triggerer; a post-paid account's 1000000 is no credit."""
    gauge_balance("sms_default", Balance(Decimal(1_000_000), post_paid=True), in_triggerer=in_triggerer)
    gauge_balance("sms_default", Balance(Decimal("12.5"), post_paid=False), in_triggerer=in_triggerer)
    assert metrics.told == [Told("gauge", "sms.balance", 12.5, {"conn_id": "sms_default"})]
