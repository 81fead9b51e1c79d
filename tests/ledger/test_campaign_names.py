from __future__ import annotations

import pytest
from support.sending import claimant, people

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger import campaign_names
from airflow_provider_sms.ledger.attempts import register
from airflow_provider_sms.ledger.campaign_names import (
    campaign_id,
    default_name,
    default_name_in,
    given_name_in,
    latest_names,
)
from airflow_provider_sms.ledger.model import Chunk
from airflow_provider_sms.ledger.name_rules import read_name
from airflow_provider_sms.ledger.pauses import pause
from airflow_provider_sms.ledger.progress import note_progress


def send(ledger, messages):
    ledger.commit(chunks=[Chunk([m.key for m in messages], [m.destination for m in messages])], claim_seconds=60.0)


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


@pytest.mark.parametrize("written", [" spring ", "Cafe\u0301"])
def test_a_campaign_that_the_ledger_has_keeps_its_name(enter, store, written):
    """An older version wrote it as it was given: under another name everybody would be texted again."""
    assert given_name_in(store, written) == read_name(written)
    enter(campaign=written)
    assert given_name_in(store, written) == written
    assert given_name_in(store, read_name(written)) == read_name(written)


def test_a_running_campaign_keeps_its_former_default_name(enter, store):
    """Any copy of the task that has sent under it goes on there, and so do the others of the run."""
    send(enter(1, campaign="d.t.r", map_index=2), people(3))
    assert default_name_in(store, claimant(2, map_index=2)) == "d.t.r"
    assert default_name_in(store, claimant(1, map_index=0)) == "d.t.r"
    assert default_name_in(store, claimant(run_id="next")) == "d/t/next"


def test_a_task_that_finds_only_the_requests_of_another_one_takes_its_own_name(enter, store):
    """Both had that name by default, and the second one left out whom the first one had texted."""
    send(enter(1, campaign="d.t.r", dag_id="d.t", task_id="r", run_id="r"), people(3))
    mine = register(store, claimant(1))
    note_progress(store, "d.t.r", mine, "ended")
    assert default_name_in(store, claimant(2)) == "d/t/r"
    send(enter(1, campaign="d.t.r", claimant_id=mine), people(1, 10))
    assert default_name_in(store, claimant(2)) == "d.t.r"


def test_a_campaign_that_was_paused_before_it_sent_anything_stays_paused(enter, store):
    """A task that is the only one to have been there goes on there, with what people decided."""
    enter(1, campaign="d.t.r")
    assert default_name_in(store, claimant(2)) == "d/t/r"
    note_progress(store, "d.t.r", register(store, claimant(1)), "waiting for approval")
    pause(store, "d.t.r", "ann")
    assert default_name_in(store, claimant(2)) == "d.t.r"


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
