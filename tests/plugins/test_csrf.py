from __future__ import annotations

import re

import pytest
from support.plugins import Person
from support.told import tell

from airflow_provider_sms.plugins import csrf

ACTS = ("/campaigns/1/pause", "/campaigns/1/resume", "/campaigns/1/resolve")
BODY = {"requests": [1], "outcome": "accepted", "people": 1}


@pytest.fixture
def ann(site, store):
    tell(store, claims=[(1, "unknown")], state="failed")
    return Person(site, "ann")


@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize(
    "sent",
    [
        {"token": ""},
        {"token": "made-up"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_request_from_another_site_is_refused(ann, path, sent):
    """The cookie alone, which the browser adds to every request, is not enough."""
    answer = ann.post(path, BODY, **sent)
    assert (answer.status_code, "This page has expired" in answer.json()["detail"]) == (403, True)
    assert ann.post(path, BODY).status_code == 200


def test_a_page_with_buttons_holds_the_token_of_its_user(ann):
    """The page's script sends it with each act."""
    (token,) = re.findall(r'name="sms-token" content="([^"]+)"', ann.get("/campaigns/1").text)
    assert ann.post("/campaigns/1/pause", token=token).status_code == 200


def test_the_token_of_another_persons_page_does_nothing(site, ann):
    """A token is bound to its user."""
    assert ann.post("/campaigns/1/pause", token=Person(site, "ed").token()).status_code == 403


def test_a_token_ends_with_its_day(ann, monkeypatch):
    """A page that was left open must be reloaded before it changes anything."""
    token = ann.token()
    monkeypatch.setattr(csrf, "TOKEN_SECONDS", -1)
    assert ann.post("/campaigns/1/pause", token=token).status_code == 403


def test_a_form_cannot_do_anything(ann, site):
    """A form of another site can send neither the header nor JSON."""
    client = site.client("ann")
    answer = client.post("/sms/campaigns/1/pause", data={"x": "1"})
    assert answer.status_code == 403
