from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import pytest
from airflow.models.asset import AssetEvent
from airflow.providers.common.compat.sdk import Asset, AssetAlias
from airflow.utils.session import create_session
from sqlalchemy import select
from support.airflow import run_task
from support.metrics import Told

from airflow_provider_sms.hooks.metrics import Metrics, describe_on_assets, gauge_balance
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor
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


def test_a_backend_that_fails_is_given_up(metrics, caplog):
    """It never raises, says so once without the error's words, and is not tried again."""
    metrics.error = RuntimeError("27820000000")
    told = Metrics(TAGS)
    for _ in range(3):
        told.count("accepted", 5)
    assert len(metrics.told) == 1
    assert [record.message for record in caplog.records] == [
        "No further metrics are emitted for this task: RuntimeError"
    ]


@pytest.mark.parametrize("in_triggerer", [False, True])
def test_a_balance_is_the_accounts(metrics, in_triggerer):
    """It is told by connection alone, in a task and in the triggerer; a post-paid account's 1000000 is no credit."""
    gauge_balance("sms_default", Balance(Decimal(1_000_000), post_paid=True), in_triggerer=in_triggerer)
    gauge_balance("sms_default", Balance(Decimal("12.5"), post_paid=False), in_triggerer=in_triggerer)
    assert metrics.told == [Told("gauge", "sms.balance", 12.5, {"conn_id": "sms_default"})]


# Facts on the events of assets


TEXTED = Asset("x-sms://texted")


class Events(dict):
    """Events by the URIs of their assets, which Airflow 3.1 cannot hash."""

    def __getitem__(self, asset):
        return super().__getitem__(asset.uri)


def test_facts_are_added_to_what_is_there(caplog):
    """What the DAG's author put on the event stays; an alias, and what is no asset, are passed over.

    All is sent by then, so an event that Airflow refuses is no failure.
    """
    event = SimpleNamespace(extra={"by": "author"})
    outlets = [AssetAlias("a"), "file", TEXTED]
    context = {"task": SimpleNamespace(outlets=outlets), "outlet_events": Events({TEXTED.uri: event})}
    describe_on_assets(context, {"accepted": 1})
    assert (event.extra, caplog.text) == ({"by": "author", "accepted": 1}, "")
    describe_on_assets({**context, "outlet_events": Events()}, {"accepted": 1})
    assert "emitted without facts: KeyError" in caplog.text


def facts_of(ran):
    """Give the facts on the only event of an asset that a run emitted."""
    with create_session() as session:
        return session.scalars(select(AssetEvent.extra).filter_by(source_run_id=ran.run_id)).one()


def test_the_event_of_an_asset_has_the_counts(send, people):
    """Whoever is scheduled by it sees what became of the send, and nothing of a person."""
    ran = send(people(20), campaign="spring", outlets=[TEXTED])
    assert facts_of(ran) == {name: each for name, each in ran.summary.items() if name != "report"}
    assert (facts_of(ran)["campaign"], facts_of(ran)["accepted"]) == ("spring", 20)


def test_the_event_of_a_group_has_the_counts(sms_default, ledger_path):
    """A send to groups is one message."""
    ran = run_task(
        lambda: GroupSmsOperator(task_id="text", message="All hands", groups=["staff"], campaign="x", outlets=[TEXTED])
    )
    facts = facts_of(ran)
    assert (facts["campaign"], facts["rows"], facts["accepted"]) == ("x", 1, 1)
    assert facts["remaining_balance"] == ran.summary["RemainingBalance"]


@pytest.mark.parametrize("deferrable", [False, True])
def test_the_event_of_a_sensor_has_the_balance(sms_default, sandbox, deferrable):
    """Also when a trigger saw it."""
    sandbox.state.set_balance(500)
    ran = run_task(lambda: BalanceSensor(task_id="wait", min_balance=5, deferrable=deferrable, outlets=[TEXTED]))
    assert facts_of(ran) == {"balance": 500.0, "post_paid": False}
