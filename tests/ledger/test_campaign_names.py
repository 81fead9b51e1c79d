from __future__ import annotations

from support.sending import claimant

from airflow_provider_sms.ledger.campaigns import require_campaign
from airflow_provider_sms.ledger.name_rules import default_name, read_name


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


def test_a_name_may_be_as_long_as_the_ledger_takes(enter, store):
    """And may hold whatever people write."""
    for name in ("x" * 1000, "Frühling: 50 % 🎉", "None-such", "nan"):
        enter(campaign=read_name(name))
        with store.read() as connection:
            assert require_campaign(connection, name)
