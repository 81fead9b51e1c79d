from __future__ import annotations

import pytest
from sqlalchemy import select
from support.reported import counts
from support.told import pause_of, tell

from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.plugins.authorization import Access


@pytest.fixture
def ed(site):
    return site("ed")


def decisions(store):
    with store.read() as connection:
        query = select(request.c.id, request.c.decision, request.c.decided_by).order_by(request.c.decided_at)
        query = query.where(request.c.decided_at.is_not(None))
        return [tuple(row) for row in connection.execute(query)]


def test_a_decision_about_a_request_is_applied_and_recorded(ed, store):
    """Under the user's name; sent messages stay held, messages that were not sent are free again."""
    sent, unsent = tell(store, claims=[(3, "unknown"), (4, "unknown")])
    one = ed.post("/campaigns/1/resolve", {"request": sent, "outcome": "accepted"})
    assert one.json()["message"].startswith("Recorded as sent: 1 request to 3 people.")
    other = ed.post("/campaigns/1/resolve", {"request": unsent, "outcome": "not_sent"})
    assert other.json()["message"].startswith("Recorded as not sent: 1 request to 4 people.")
    assert decisions(store) == [(sent, "accepted", "ed"), (unsent, "not_sent", "ed")]
    assert counts(store, "spring").accepted == 3


def test_the_tasks_to_clear_are_named(ed, store, monkeypatch):
    """Those of DAGs that the user may edit: another one's name is not told."""
    (unknown,) = tell(store, claims=[(3, "unknown")], state="failed", note={"figures": {"unknown": 3}})
    tell(store, state="failed", note={"figures": {"unknown": 3}}, task_id="other")
    tell(store, state="failed", note={"figures": {"unknown": 3}}, dag_id="hidden")
    may_edit = Access.may_edit
    hidden = ("hidden",)
    monkeypatch.setattr(Access, "may_edit", lambda access, dags: tuple(dags) != hidden and may_edit(access, dags))
    answer = ed.post("/campaigns/1/resolve", {"request": unknown, "outcome": "accepted"})
    assert answer.json()["message"].endswith(": task t of DAG d, run r; task other of DAG d, run r.")


def test_a_request_that_is_not_unknown_is_left_as_it_is(ed, store):
    """The response may have come since; one of another campaign looks like one that does not exist."""
    (accepted,) = tell(store, claims=[(4, "accepted")])
    (other,) = tell(store, "other", claims=[(2, "unknown")])
    known, hidden, absent = (
        ed.post("/campaigns/1/resolve", {"request": each, "outcome": "not_sent"}) for each in (accepted, other, 99)
    )
    assert (known.status_code, "it is accepted" in known.json()["detail"]) == (409, True)
    assert (hidden.status_code, hidden.json()) == (409, absent.json())
    assert decisions(store) == []


@pytest.mark.parametrize(
    ("campaign_id", "body"),
    [
        *(("1", body) for body in ({}, {"request": 1, "outcome": "perhaps"}, {"request": "x", "outcome": "accepted"})),
        *(("1", {"request": request, "outcome": "accepted"}) for request in (0, 2**63)),
        *((id_of_none, {"request": 1, "outcome": "accepted"}) for id_of_none in ("0", "-1", str(2**63), "9" * 4200)),
    ],
)
def test_what_no_campaign_or_request_can_have_is_refused(ed, store, campaign_id, body):
    """Before the ledger is read."""
    tell(store, claims=[(1, "unknown")])
    for act in ("resolve",) if campaign_id == "1" else ("pause", "resume", "resolve"):
        assert ed.post(f"/campaigns/{campaign_id}/{act}", body).status_code == 422


def test_a_campaign_is_paused_and_resumed_under_the_users_name(ed, site, store):
    """Doing it twice does no harm, and names the first user."""
    tell(store, state="sending", claims=[(5, "claimed")])
    assert "Claimed requests are still posted" in ed.post("/campaigns/1/pause").json()["message"]
    assert pause_of(store, "spring").paused_by == "ed"
    assert "already, by ed" in site("ann").post("/campaigns/1/pause").json()["message"]
    assert "ed had paused it" in ed.post("/campaigns/1/resume").json()["message"]
    assert pause_of(store, "spring") is None
    assert ed.post("/campaigns/1/resume").json()["message"] == "The campaign was not paused."


def test_each_act_is_in_airflows_audit_log(ed, store, audit_rows):
    """With its user, the campaign, and what was said of which requests; not what another site sends in their name."""
    (request_id,) = tell(store, claims=[(3, "unknown")])
    resolution = {"request": request_id, "outcome": "accepted"}
    campaign = {"campaign_id": "1", "method": "POST"}
    assert ed.post("/campaigns/1/pause", **{"x-sms-page": ""}).status_code == 403
    ed.post("/campaigns/1/pause")
    ed.post("/campaigns/1/resume")
    ed.post("/campaigns/1/resolve", resolution)
    assert audit_rows() == [
        ("sms.pause", "ed", None, campaign),
        ("sms.resume", "ed", None, campaign),
        ("sms.resolve", "ed", None, {**campaign, **resolution}),
    ]
