from __future__ import annotations

import types

import pytest
from airflow.providers.common.compat.sdk import Asset, AssetAlias
from support.airflow import run_task
from support.assets import event_of

from airflow_provider_sms.hooks.metrics import describe_on_assets
from airflow_provider_sms.operators.sms import GroupSmsOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

TEXTED = Asset("x-sms://texted")


class Events(dict):
    """Events by the URIs of their assets."""

    def __getitem__(self, asset):
        return super().__getitem__(asset.uri)


def test_facts_are_added_to_what_is_there(caplog):
    """What the DAG's author put on the event stays; an alias, and what is no asset, are passed over."""
    event = types.SimpleNamespace(extra={"by": "author"})
    outlets = [AssetAlias("a"), "file", TEXTED]
    context = {"task": types.SimpleNamespace(outlets=outlets), "outlet_events": Events({TEXTED.uri: event})}
    describe_on_assets(context, {"accepted": 1})
    assert (event.extra, caplog.text) == ({"by": "author", "accepted": 1}, "")


def test_an_event_that_airflow_refuses_is_no_failure(caplog):
    """All is sent by then."""
    context = {"task": types.SimpleNamespace(outlets=[TEXTED]), "outlet_events": Events()}
    describe_on_assets(context, {"accepted": 1})
    assert "emitted without facts: KeyError" in caplog.text


# In a real Airflow


def facts_of(ran):
    """Give the facts on the event that a run emitted for the asset."""
    return event_of(ran.run_id).extra


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
