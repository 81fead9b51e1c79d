from __future__ import annotations

import pytest
from support.told import tell

ACTS = ("/campaigns/1/pause", "/campaigns/1/resume", "/campaigns/1/resolve")
BODY = {"request": 1, "outcome": "accepted"}


@pytest.fixture
def ann(site, store):
    tell(store, claims=[(1, "unknown")], state="failed")
    return site("ann")


@pytest.mark.parametrize("path", ACTS)
@pytest.mark.parametrize(
    "sent", [{"x-sms-page": ""}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}]
)
def test_a_request_from_another_site_is_refused(ann, path, sent):
    """The cookie alone, which the browser adds to every request, is not enough."""
    answer = ann.post(path, BODY, **sent)
    assert (answer.status_code, "came from another site" in answer.json()["detail"]) == (403, True)
    assert ann.post(path, BODY).status_code == 200


def test_a_form_cannot_do_anything(ann):
    """One of another site can send neither the header nor JSON; the header is enough of a browser without TLS."""
    assert ann.request("POST", ACTS[0], data={"x": "1"}).status_code == 403
    assert ann.request("POST", ACTS[0], json={}, headers={"x-sms-page": "1"}).status_code == 200
