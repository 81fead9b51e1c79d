from __future__ import annotations

import pytest
from support.told import tell


def test_every_response_forbids_what_a_page_does_not_need(vic, store):
    """No inline script, nothing from another host, no frame in another site, no cached copy."""
    tell(store)
    for path in ("/", "/campaigns/1", "/static/page.css", "/none"):
        headers = vic.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert vic.get("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/task?dag_id=d&run_id=r&task_id=t&map_index=%C2%B2", 307),
        ("/task?dag_id=d&run_id=r&task_id=t&map_index=--5", 307),
        ("/task?dag_id=d&run_id=r&task_id=t&map_index=" + "9" * 23, 307),
        ("/task?dag_id=d&run_id=%00&task_id=t", 422),
        ("/task?dag_id=d", 422),
        ("/?name=%00", 422),
        ("/?name=" + "x" * 1001, 422),
        ("/campaigns/1/requests?before=", 200),
        ("/campaigns/1/requests?before=" + "9" * 30, 200),
        ("/campaigns/1/requests?state=%00", 200),
        ("/campaigns/x", 422),
        ("/static/" + "a" * 300 + ".css", 404),
        ("/static/..%2fsms.py", 404),
        ("/static/.gitignore", 404),
    ],
)
def test_an_odd_address_is_no_error_of_the_server(vic, store, path, status):
    """It is read as far as possible, else refused in words, on a page."""
    tell(store)
    answer = vic.get(path)
    assert answer.status_code == status
    assert answer.headers.get("content-type", "text/html").startswith("text/html")
