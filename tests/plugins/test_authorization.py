from __future__ import annotations

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from support.plugins import HAS_TEAMS
from support.reported import counts
from support.told import tell

from airflow_provider_sms.ledger.backend import LedgerBackend
from airflow_provider_sms.plugins.sms import SmsPlugin

LOOKS = ("/", "/campaigns/1", "/task?dag_id=d&run_id=r&task_id=t")
FILES = ("/static/page.css", "/static/page.js")
ACTS = ("/campaigns/1/pause", "/campaigns/1/resume", "/campaigns/1/resolve")
ALL = (*LOOKS, *FILES, *ACTS)


@pytest.fixture
def unknown(store):
    """A campaign with an unknown request of three people."""
    (request,) = tell(store, claims=[(3, "unknown")], state="failed")
    return {"request": request, "outcome": "accepted"}


def test_these_are_all_routes():
    """A route that is added is added to these tests."""
    (mounted,) = SmsPlugin().fastapi_apps
    known = {path.split("?")[0].replace("/1", "/{campaign_id}") for path in (*LOOKS, *ACTS)} | {"/static/{name}"}
    assert {route.path for route in mounted["app"].routes} == known


@pytest.mark.parametrize("path", ALL)
def test_without_a_login_nothing_is_shown_or_done(site, unknown, path):
    """Each route asks Airflow for the user, because nothing else does so for a plugin's application."""
    anonymous, known = (
        person.post(path, unknown) if path in ACTS else person.get(path) for person in (site(None), site("ed"))
    )
    assert (anonymous.status_code, "spring" in anonymous.text) == (401, False)
    assert known.status_code in (200, 307), known.text


@pytest.mark.parametrize("path", ACTS)
def test_a_viewer_sees_and_does_nothing(site, unknown, path):
    """A change needs permission to edit the DAG; a user without it sees no buttons."""
    viewer, editor = site("vic"), site("ed")
    assert "data-action" not in viewer.get("/campaigns/1").text
    assert viewer.post(path, unknown).status_code == 403
    assert "data-action" in editor.get("/campaigns/1").text
    assert editor.post(path, unknown).status_code == 200


class DagsOfTheirOwn(SimpleAuthManager):
    """Airflow's own auth manager, in which some users have only some DAGs: ``theirs`` is ann's and nobody else's."""

    def is_authorized_dag(self, *, method, user, access_entity=None, details=None):
        """Return whether a user may see or edit a DAG; the admin and the user *nemo* are exceptions."""
        dag_ids = {"nemo": [], "ann": None}.get(user.get_name(), ["mine"] if method == "PUT" else ["mine", "read"])
        if dag_ids is not None and (details is None or details.id not in dag_ids):
            return False
        return super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details)


@pytest.fixture
def some_dags(site, dag_rows, monkeypatch):
    """An Airflow with three DAGs, of which users see only some; a fourth one was deleted."""
    dag_rows({"mine": None, "read": None, "theirs": None})
    monkeypatch.setattr(get_auth_manager(), "__class__", DagsOfTheirOwn)
    return site


def everything_of(person, request, task="theirs"):
    """Return the response of every page and act about campaign 1, which has one unknown request."""
    resolved = {"request": request, "outcome": "accepted"}
    return [
        person.get("/"),
        person.get("/campaigns/1"),
        person.get(f"/task?dag_id={task}&run_id=r&task_id=t"),
        *(person.post(path, resolved) for path in ACTS),
    ]


@pytest.mark.parametrize("name", ["vic", "ed", "nemo"])
@pytest.mark.parametrize("dag_id", ["theirs", "deleted"])
def test_nothing_of_a_hidden_dag_is_shown(some_dags, store, dag_id, name):
    """Neither in the list, nor by its address, nor by its task."""
    (request,) = tell(store, "secret", dag_id=dag_id, claims=[(1, "unknown")])
    tell(store, "both", dag_id=dag_id, run_id="r2", claims=[(1, "accepted")])
    tell(store, "both", dag_id="mine", run_id="r3", claims=[(1, "accepted")], first=5)
    person = some_dags(name)
    answers = everything_of(person, request, task=dag_id)
    assert [answer.status_code for answer in answers] == [200, 404, 404, 404, 404, 404]
    answers.append(person.get("/task?dag_id=mine&run_id=r3&task_id=t"))
    hidden = ("secret", "both")
    assert not [word for answer in answers for word in hidden if word in answer.text]
    assert counts(store, "secret").unknown == 1
    shown = everything_of(some_dags("ann"), request, task=dag_id)
    assert [answer.status_code for answer in shown] == [200, 200, 307, 200, 200, 200]


def test_a_campaign_that_is_hidden_looks_like_one_that_does_not_exist(some_dags, store):
    """The same status and the same words, of a campaign and of a task: nobody learns which ids exist."""
    (request,) = tell(store, "secret", dag_id="theirs", claims=[(1, "unknown")])
    ed = some_dags("ed")
    paths = ("/campaigns/{}", "/campaigns/{}/pause", "/campaigns/{}/resolve")
    body = {"request": request, "outcome": "accepted"}
    for path in paths:
        ask = ed.get if path in paths[:1] else lambda at: ed.post(at, body)
        hidden, absent = ask(path.format(1)), ask(path.format(99))
        assert (hidden.status_code, hidden.text) == (404, absent.text)
        assert absent.status_code == 404
    tasks = [ed.get(f"/task?dag_id={each}&run_id=r&task_id=t") for each in ("theirs", "never_was")]
    assert [(each.status_code, each.text) for each in tasks] == [(404, tasks[0].text)] * 2


def test_a_user_without_rights_makes_the_server_read_nothing(some_dags, store, monkeypatch):
    """Rights come first: not one statement is sent to the ledger, and a missing ledger is not mentioned."""
    (request,) = tell(store, "secret", dag_id="theirs", claims=[(1, "unknown")])
    monkeypatch.setattr(LedgerBackend, "read", lambda self: pytest.fail("the ledger was read"))
    answers = everything_of(some_dags("nemo"), request)
    assert [answer.status_code for answer in answers] == [200, 404, 404, 404, 404, 404]
    assert "<table" not in answers[0].text


def test_a_campaign_of_several_dags_needs_permission_to_edit_all(some_dags, store):
    """One DAG's editor does not decide about another's campaign."""
    tell(store, dag_id="mine", claims=[(1, "unknown")])
    ed = some_dags("ed")
    assert ed.post("/campaigns/1/pause").status_code == 200
    tell(store, dag_id="read", try_number=2)
    assert ed.get("/campaigns/1").status_code == 200
    assert ed.post("/campaigns/1/resume").status_code == 403


@pytest.mark.skipif(not HAS_TEAMS, reason="this Airflow has no teams")
@pytest.mark.usefixtures("two_teams")
@pytest.mark.parametrize(
    ("dag_id", "seen_by"),
    [
        ("of_a", ["al", "ann", "abe"]),
        ("of_b", ["bo", "ann", "abe"]),
        ("of_nobody", ["bo", "al", "ann", "abe"]),
        ("deleted", ["ann", "abe"]),
    ],
)
def test_a_team_sees_and_decides_about_its_own_campaigns_alone(site, store, dag_id, seen_by):
    """And those of no team; a DAG that Airflow no longer has is for those who may see the DAGs of every team.

    Whoever decides about a request second finds that it was decided.
    """
    (request,) = tell(store, "of them", dag_id=dag_id, claims=[(1, "unknown")])
    for name in ("bo", "al", "ann", "abe"):
        answers = everything_of(site(name), request, task=dag_id)
        sees, comes_first = name in seen_by, name == seen_by[0]
        done = [200, 200, 307, 200, 200, 200 if comes_first else 409]
        assert [answer.status_code for answer in answers] == (done if sees else [200, *[404] * 5]), name
        assert ("of them" in answers[0].text) == sees, name
