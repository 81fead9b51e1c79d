from __future__ import annotations

import types

from airflow.providers.common.compat.sdk import Asset, AssetAlias

from airflow_provider_sms.hooks.asset_events import describe_on_assets

TEXTED = Asset("x-sms://texted")


class Events(dict):
    """Events found by their assets, which Airflow 3.0 cannot hash."""

    def __getitem__(self, asset):
        return super().__getitem__(asset.uri)


def test_other_outlets_are_passed_over(caplog):
    """An alias has no event of its own, and what is no asset has none at all."""
    context = {"task": types.SimpleNamespace(outlets=[AssetAlias("a"), "file"]), "outlet_events": {}}
    describe_on_assets(context, {"accepted": 1})
    assert caplog.text == ""


def test_what_airflow_refuses_is_no_failure(caplog):
    """All is sent by then."""
    context = {"task": types.SimpleNamespace(outlets=[TEXTED]), "outlet_events": Events()}
    describe_on_assets(context, {"accepted": 1})
    assert "goes without its facts: KeyError" in caplog.text


def test_facts_are_added_to_what_is_there():
    """What the DAG's author put on the event stays."""
    event = types.SimpleNamespace(extra={"by": "author"})
    context = {"task": types.SimpleNamespace(outlets=[TEXTED]), "outlet_events": Events({TEXTED.uri: event})}
    describe_on_assets(context, {"accepted": 1})
    assert event.extra == {"by": "author", "accepted": 1}
