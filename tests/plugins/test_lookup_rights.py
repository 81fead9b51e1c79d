from __future__ import annotations

from functools import partial

import pytest
from support.plugins import Person
from support.told import tell

from airflow_provider_sms.hooks.audit_log import number_details
from airflow_provider_sms.monitoring import campaigns
from airflow_provider_sms.monitoring.number_lookup import look_up_number
from airflow_provider_sms.plugins import actions, lookup_rights
from airflow_provider_sms.plugins.authorization import Access
from airflow_provider_sms.plugins.lookup_rights import LookUpRights

NUMBER = "27820000000"
LINK = 'href="/sms/look-up"'


@pytest.fixture
def look_up(site, store):
    """Look up a number that two campaigns texted, as one of the users."""
    tell(store, "spring", dag_id="d", claims=[(1, "accepted")])
    tell(store, "summer", dag_id="other", claims=[(1, "accepted")])
    return lambda name, number=NUMBER, **body: Person(site, name).post("/look-up", {"number": f"+{number}", **body})


@pytest.fixture
def option(monkeypatch):
    return lambda value: monkeypatch.setenv("AIRFLOW__SMS__NUMBER_LOOKUP", value)


def offered(site, name):
    """Return whether a user's navigation has the page, and the status of the page."""
    person = Person(site, name)
    links = {LINK in person.get(path).text for path in ("/", "/campaigns/1", "/balance")}
    assert len(links) == 1
    return links.pop(), person.get("/look-up").status_code


def test_people_who_may_edit_no_dag_look_up_nothing(site, look_up):
    """Whether somebody was texted is no business of a viewer: the page is neither linked nor shown."""
    refused = look_up("vic")
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "You may not look up numbers, because you may not edit any DAG",
    )
    assert offered(site, "vic") == (False, 403)
    assert "spring" in look_up("ed").text
    assert offered(site, "ed") == (True, 200)


def test_an_editor_finds_the_campaigns_of_editable_dags_alone(look_up, monkeypatch):
    """A DAG that the user may only see is left out."""
    edit = Access.may_edit
    monkeypatch.setattr(Access, "may_edit", lambda self, dag_ids: "other" not in dag_ids and edit(self, dag_ids))
    found = look_up("ed").text
    assert ("spring" in found, "summer" in found) == (True, False)


def test_a_look_up_that_stops_before_a_visible_campaign_says_so(look_up, monkeypatch):
    """Without the time at which a hidden one was created; a button goes on to older campaigns."""
    monkeypatch.setattr(campaigns, "_FIRST_WINDOW", 1)
    monkeypatch.setattr(LookUpRights, "may_look_into", lambda self, dag_id: dag_id != "other")
    monkeypatch.setattr(actions, "look_up_number", partial(look_up_number, seconds=-1.0))
    found = look_up("ed").text
    assert "The time was up before a campaign in which you may look" in found
    assert ("(UTC)" in found, 'data-start="1"' in found) == (False, True)


def test_viewers_may_look_up_where_the_option_says_so(site, look_up, option):
    """In all campaigns that they see."""
    option("viewers")
    assert offered(site, "vic") == (True, 200)
    found = look_up("vic").text
    assert ("spring" in found, "summer" in found) == (True, True)


@pytest.mark.parametrize("value", ["off", "everybody"])
def test_nobody_looks_up_a_number_where_that_is_off(site, look_up, option, value):
    """Not even an admin; a value that is none of the option's opens nothing."""
    option(value)
    assert offered(site, "ann") == (False, 404)
    assert look_up("ann").status_code == 404


def test_every_look_up_is_in_airflows_audit_log(look_up, audit_rows):
    """User, masked number, digest and the requests that were shown; refused look-ups, too; never the number."""
    look_up("ed")
    look_up("vic", "27820000007")
    look_up("ed", "12")
    number, other = number_details(NUMBER), number_details("27820000007")
    refused = audit_rows()[2:]
    assert audit_rows()[:2] == [
        ("sms.look_up", "ed", None, number),
        ("sms.look_up.shown", "ed", None, {**number, "requests": [2, 1]}),
    ]
    assert [(event, user) for event, user, _, _ in refused] == [
        ("sms.look_up.refused", "vic"),
        ("sms.look_up.refused", "ed"),
    ]
    assert refused[0][3]["number_digest"] == other["number_digest"]
    assert refused[1][3]["number"] == "*****"
    assert "2782000000" not in str(audit_rows())


def test_a_number_has_one_digest_however_it_is_written(look_up, audit_rows):
    """An auditor finds a look-up by a national number, too."""
    look_up("ed")
    look_up("ed", region="ZA")
    assert len({details["number_digest"] for _, _, _, details in audit_rows()}) == 1


def test_a_user_looks_up_some_numbers_a_minute(look_up, audit_rows, monkeypatch):
    """Lists of numbers cannot be tried out; the response says how long to wait, and other users need not wait."""
    monkeypatch.setattr(lookup_rights, "LOOK_UPS_A_MINUTE", 2)
    assert [look_up("ed").status_code for _ in range(3)] == [200, 200, 429]
    refused = look_up("ed")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert f"Try again in {refused.headers['retry-after']} seconds" in refused.json()["detail"]
    assert audit_rows()[-1][0] == "sms.look_up.refused"
    assert look_up("ann").status_code == 200


def test_a_look_up_that_cannot_be_recorded_shows_nothing(look_up, audit_log_fails):
    """No trace, no answer: neither when it begins, nor just before it is shown."""
    for event in ("sms.look_up", "sms.look_up.shown"):
        audit_log_fails(event)
        answer = look_up("ed")
        assert (answer.status_code, "spring" in answer.text) == (503, False)
        assert "Nothing was changed or shown" in answer.json()["detail"]
