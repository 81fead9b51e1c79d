from __future__ import annotations

import pytest
from sqlalchemy import select
from support.plugins import Person
from support.reported import counts
from support.told import tell

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.campaigns import pause_of
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.schema import request
from airflow_provider_sms.plugins import actions
from airflow_provider_sms.plugins.authorization import Access

NOT_OF_THIS_CAMPAIGN = "The page lists a request that this campaign does not have. Nothing was changed. Reload the page"


@pytest.fixture
def ed(site):
    return Person(site, "ed")


def decisions(store):
    with store.read() as connection:
        query = select(request.c.id, request.c.decision, request.c.decided_by).order_by(request.c.decided_at)
        query = query.where(request.c.decided_at.is_not(None))
        return [tuple(row) for row in connection.execute(query)]


def test_a_decision_about_a_request_is_applied_and_recorded(ed, store):
    """Under the user's name; sent messages stay held, messages that were not sent are free again."""
    sent, unsent = tell(store, claims=[(3, "unknown"), (4, "unknown")])
    one = ed.post("/campaigns/1/resolve", {"requests": [sent], "outcome": "accepted", "people": 3})
    assert one.json() == {"message": "Recorded as sent: 1 request to 3 people.", "people": 3}
    other = ed.post("/campaigns/1/resolve", {"requests": [unsent], "outcome": "not_sent", "people": 4})
    assert other.json()["message"].endswith("Now clear the task: its next attempt texts them.")
    assert decisions(store) == [(sent, "accepted", "ed"), (unsent, "not_sent", "ed")]
    assert counts(store, "spring").accepted == 3


def test_other_tasks_that_failed_on_unknown_requests_are_named(ed, store, monkeypatch):
    """Those of DAGs that the user may edit: another one's name is not told."""
    (unknown,) = tell(store, claims=[(3, "unknown")], state="failed", note={"figures": {"unknown": 3}})
    tell(store, state="failed", note={"figures": {"unknown": 3}}, task_id="other")
    tell(store, state="failed", note={"figures": {"unknown": 3}}, dag_id="hidden")
    may_edit = Access.may_edit
    monkeypatch.setattr(Access, "may_edit", lambda access, dags: list(dags) != ["hidden"] and may_edit(access, dags))
    answer = ed.post("/campaigns/1/resolve", {"requests": [unknown], "outcome": "accepted", "people": 3})
    assert answer.json()["message"] == (
        "Recorded as sent: 1 request to 3 people. Clear what failed on unknown requests, too: task other of DAG d, "
        "run r."
    )


def test_nothing_is_done_if_the_people_concerned_have_changed(ed, store):
    """A confirmation holds only for the question that was asked; nobody learns which requests other campaigns have."""
    ids = tell(store, claims=[(3, "unknown"), (4, "accepted")])
    tell(store, "other", claims=[(2, "unknown")])
    wrong = [
        ({"requests": ids[:1], "outcome": "accepted", "people": 2}, "This now concerns 3 people"),
        ({"requests": ids, "outcome": "accepted", "people": 7}, "it is accepted"),
        ({"requests": [3], "outcome": "not_sent", "people": 2}, NOT_OF_THIS_CAMPAIGN),
        ({"requests": [99], "outcome": "not_sent", "people": 2}, NOT_OF_THIS_CAMPAIGN),
        ({"requests": [ids[0], 99], "outcome": "not_sent", "people": 3}, NOT_OF_THIS_CAMPAIGN),
    ]
    for body, words in wrong:
        answer = ed.post("/campaigns/1/resolve", body)
        assert answer.status_code == 409
        assert words in answer.json()["detail"]
    assert decisions(store) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requests": [], "outcome": "accepted", "people": 0},
        {"requests": [1], "outcome": "perhaps", "people": 1},
        {"requests": ["x"], "outcome": "accepted", "people": 1},
        {"requests": [2**63], "outcome": "accepted", "people": 1},
        {"requests": [0], "outcome": "accepted", "people": 1},
        {"requests": list(range(1, 1002)), "outcome": "accepted", "people": 1},
        {"requests": [1], "outcome": "accepted", "people": -1},
        {"requests": [1], "outcome": "accepted", "people": 10**9 + 1},
    ],
)
def test_an_invalid_resolution_is_refused(ed, store, body):
    """Before the ledger is read."""
    tell(store, claims=[(1, "unknown")])
    assert ed.post("/campaigns/1/resolve", body).status_code == 422


@pytest.mark.parametrize("campaign_id", ["0", "-1", str(2**63), "9" * 4200])
def test_an_id_that_no_campaign_can_have_is_refused(ed, store, campaign_id):
    """Before the ledger is read."""
    resolution = {"requests": [1], "outcome": "accepted", "people": 1}
    for act, body in (("pause", None), ("resume", None), ("resolve", resolution)):
        assert ed.post(f"/campaigns/{campaign_id}/{act}", body).status_code == 422


def test_a_campaign_is_paused_and_resumed_under_the_users_name(ed, site, store):
    """Doing it twice does no harm, and names the first user."""
    tell(store, state="sending", claims=[(5, "claimed")])
    assert "Claimed requests are still posted" in ed.post("/campaigns/1/pause").json()["message"]
    assert pause_of(store, "spring").paused_by == "ed"
    assert "already, by ed" in Person(site, "ann").post("/campaigns/1/pause").json()["message"]
    assert "ed had paused it" in ed.post("/campaigns/1/resume").json()["message"]
    assert pause_of(store, "spring") is None
    assert ed.post("/campaigns/1/resume").json()["message"] == "The campaign was not paused."


def test_a_late_response_stands_and_the_rest_is_resolved(ed, store, monkeypatch):
    """The message says what was done, and what was not done and why."""
    ids = tell(store, claims=[(3, "unknown"), (4, "unknown")])

    def late(store, request_id, state, who):
        if request_id == ids[0]:
            raise InputError(f"Request {request_id} is not unknown: it is accepted")
        return resolve(store, request_id, state, who)

    monkeypatch.setattr(actions, "resolve", late)
    answer = ed.post("/campaigns/1/resolve", {"requests": ids, "outcome": "not_sent", "people": 7})
    assert answer.json()["people"] == 4
    assert "Recorded as not sent: 1 request to 4 people." in answer.json()["message"]
    assert f"Request {ids[0]} is not unknown: it is accepted" in answer.json()["message"]


def test_each_act_is_in_airflows_audit_log(ed, store, audit_rows):
    """With its user, the campaign, and what was said of which requests."""
    ids = tell(store, claims=[(3, "unknown"), (4, "unknown")])
    resolution = {"requests": ids, "outcome": "accepted", "people": 7}
    campaign = {"campaign_id": "1", "method": "POST"}
    ed.post("/campaigns/1/pause")
    ed.post("/campaigns/1/resume")
    assert ed.post("/campaigns/1/resolve", resolution).json()["people"] == 7
    assert audit_rows() == [
        ("sms.pause", "ed", None, campaign),
        ("sms.resume", "ed", None, campaign),
        ("sms.resolve", "ed", None, {**campaign, **resolution}),
    ]


def test_what_another_site_sends_is_not_in_the_audit_log(ed, store, audit_rows):
    """A form of another site could fill it in the user's name."""
    tell(store)
    assert ed.post("/campaigns/1/pause", **{"x-sms-page": ""}).status_code == 403
    assert audit_rows() == []
