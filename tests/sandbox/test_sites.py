from __future__ import annotations

import pytest

CHANGES = [
    ("POST", "/faults", "[]"),
    ("DELETE", "/faults", None),
    ("PUT", "/balance", '{"balance": 5}'),
    ("PUT", "/post-paid", '{"post_paid": true}'),
    ("POST", "/reset", None),
]
OTHERS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://example.com"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
]


@pytest.mark.parametrize("headers", OTHERS, ids=lambda headers: "=".join(*headers.items()))
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_another_sites_page_changes_nothing(client, method, path, body, headers):
    """A page of another site, or of another port of this machine, that makes the browser ask is refused."""
    answer = client.call(method, path, base="/_sandbox", headers=headers, data=body)
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (403, "OtherSite")
    assert (client.sandbox.state.balance, client.sandbox.state.post_paid) == (1000, False)


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_the_own_page_and_what_is_no_browser_may(client, method, path, body):
    """The sandbox's own page, an address typed by a person, and a command like curl are let through."""
    for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin", "Origin": client.root}):
        assert client.call(method, path, base="/_sandbox", headers=headers, data=body).status_code == 200


def test_reading_is_left_to_the_browser(client):
    """What only reads is answered: a browser itself keeps the answer from a page of another site."""
    answer = client.call("GET", "/state", base="/_sandbox", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
