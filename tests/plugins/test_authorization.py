from __future__ import annotations

import pytest
from support.plugins import Person
from support.told import tell

from airflow_provider_sms.plugins.authorization import Access
from airflow_provider_sms.plugins.sms import SmsPlugin

LOOKS = ("/", "/campaigns/1", "/campaigns/1/requests", "/task?dag_id=d&run_id=r&task_id=t", "/balance", "/look-up")
FILES = ("/static/page.css", "/static/chart.js")
ACTS = ("/campaigns/1/pause", "/campaigns/1/resume", "/campaigns/1/resolve")
ALL = (*LOOKS, *FILES, *ACTS)


@pytest.fixture
def unknown(store):
    """A campaign with an unknown request of three people."""
    (request,) = tell(store, claims=[(3, "unknown")], state="failed")
    return {"requests": [request], "outcome": "accepted", "people": 3}


def test_these_are_all_routes():
    """A route that is added is added to these tests."""
    (mounted,) = SmsPlugin().fastapi_apps
    known = {path.split("?")[0].replace("/1", "/{campaign_id}") for path in (*LOOKS, *ACTS)} | {"/static/{name}"}
    assert {route.path for route in mounted["app"].routes} == known


@pytest.mark.parametrize("path", [*LOOKS, *FILES])
def test_without_a_login_nothing_is_shown(site, unknown, path):
    """Each route asks Airflow for the user, because nothing else does so for a plugin's application."""
    anonymous = Person(site, None).get(path)
    assert (anonymous.status_code, "spring" in anonymous.text) == (401, False)
    known = Person(site, "ed").get(path)
    assert known.status_code in (200, 307), known.text


@pytest.mark.parametrize("path", [*ACTS, "/look-up"])
def test_without_a_login_nothing_can_be_done(site, unknown, path):
    """Not even with the token of another user's page."""
    stolen = Person(site, "ann").token()
    assert Person(site, None).post(path, unknown, token=stolen).status_code == 401


@pytest.mark.parametrize("path", ACTS)
def test_a_viewer_sees_and_does_nothing(site, unknown, path):
    """A change needs permission to edit the DAG; a user without it sees no buttons."""
    viewer, editor = Person(site, "vic"), Person(site, "ed")
    assert "data-action" not in viewer.get("/campaigns/1").text
    assert viewer.post(path, unknown).status_code == 403
    assert "data-action" in editor.get("/campaigns/1").text
    assert editor.post(path, unknown).status_code == 200


@pytest.fixture
def theirs_is_hidden(monkeypatch):
    """Nobody may see the DAG *theirs*, and nobody may edit the DAG *seen*."""
    see, edit = Access.may_see, Access.may_edit
    monkeypatch.setattr(Access, "may_see", lambda self, dag_id: dag_id != "theirs" and see(self, dag_id))
    monkeypatch.setattr(Access, "may_edit", lambda self, dag_ids: "seen" not in dag_ids and edit(self, dag_ids))


@pytest.mark.usefixtures("theirs_is_hidden")
def test_nothing_of_a_hidden_dag_is_shown(site, store):
    """Neither in the list, nor by its address, nor by its task, nor by a number, nor what it spends."""
    (request,) = tell(store, "secret", dag_id="theirs", claims=[(1, "unknown")], note={"conn_id": "their_account"})
    ann = Person(site, "ann")
    resolved = {"requests": [request], "outcome": "accepted", "people": 1}
    answers = [
        ann.get("/"),
        ann.get("/campaigns/1"),
        ann.get("/campaigns/1/requests"),
        ann.get("/task?dag_id=theirs&run_id=r&task_id=t"),
        ann.get("/balance"),
        ann.post("/look-up", {"number": "+27820000000"}),
        *(ann.post(path, resolved) for path in ACTS),
    ]
    assert [answer.status_code for answer in answers] == [200, 403, 403, 403, 200, 403, 403, 403, 403]
    assert not any("secret" in answer.text or "their_account" in answer.text for answer in answers)


@pytest.mark.usefixtures("theirs_is_hidden")
def test_a_campaign_of_several_dags_needs_permission_to_edit_all(site, store):
    """One DAG's editor does not decide about another's campaign."""
    tell(store, dag_id="d", claims=[(1, "unknown")])
    ann = Person(site, "ann")
    assert ann.post("/campaigns/1/pause").status_code == 200
    tell(store, dag_id="seen", try_number=2)
    assert ann.get("/campaigns/1").status_code == 200
    assert ann.post("/campaigns/1/resume").status_code == 403
