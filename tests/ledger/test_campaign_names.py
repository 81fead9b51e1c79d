from __future__ import annotations

import pytest
from support.sending import claimant

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger import campaign_names
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.campaign_names import campaign_id, default_name, latest_names
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.ledger.progress import note_progress


def test_no_two_tasks_have_one_campaign_by_default():
    """Ids may hold dots, so a dot between them would not tell them apart."""
    first = claimant(dag_id="marketing.za", task_id="send", run_id="manual__2026-11-22")
    second = claimant(dag_id="marketing", task_id="za.send", run_id="manual__2026-11-22")
    assert (default_name(first), default_name(second)) == (
        "marketing.za/send/manual__2026-11-22",
        "marketing/za.send/manual__2026-11-22",
    )


def test_mapped_copies_share_a_campaign():
    """Their tables may overlap, and may be cut anew."""
    assert default_name(claimant(map_index=3)) == default_name(claimant()) == "d/t/r"


def test_a_name_may_be_as_long_as_the_ledger_takes(enter):
    """And may hold whatever people write."""
    for name in ("x" * 1000, "Frühling: 50 % 🎉", "None-such", "nan"):
        assert enter(campaign=read_name(name)).campaign_name == name


def test_a_campaign_is_found_by_its_name(enter, store):
    """One that is not there is an error."""
    enter(1, campaign="spring")
    assert campaign_id(store, "spring") == 1
    with pytest.raises(InputError, match="no campaign 'summer'"):
        campaign_id(store, "summer")


def test_the_latest_names_are_read(enter, store, monkeypatch):
    """Newest first, and no more than a name is compared with."""
    assert latest_names(store) == []
    for name in ("first", "second", "third"):
        note_progress(store, name, register(store, claimant(1)), "ended")
    monkeypatch.setattr(campaign_names, "NAMES_COMPARED", 2)
    assert latest_names(store) == ["third", "second"]
