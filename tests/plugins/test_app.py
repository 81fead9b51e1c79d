from __future__ import annotations

import json

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
        ("/task?dag_id=d&run_id=r&task_id=t&map_index=" + "9" * 23, 307),
        ("/task?dag_id=d&run_id=%00&task_id=t", 422),
        ("/task?dag_id=d", 422),
        ("/task?dag_id=d&task_id=t&run_id=" + "x" * 1001, 422),
        ("/?before=%00", 200),
        ("/?before=" + "9" * 30, 200),
        ("/campaigns/x", 422),
        ("/campaigns/2", 404),
        (f"/campaigns/{2**70}", 404),
        ("/none", 404),
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


SERVER = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "secret_db", "login": "secret_role"}


@pytest.mark.parametrize(
    ("setting", "value", "status"),
    [
        ("AIRFLOW_CONN_SECRET_LEDGER", json.dumps(SERVER), 503),
        ("AIRFLOW_CONN_SECRET_LEDGER", json.dumps({**SERVER, "conn_type": "mysql"}), 409),
        ("AIRFLOW_CONN_OTHER", "{}", 409),
    ],
)
def test_no_error_tells_where_the_ledger_is(site, store, monkeypatch, caplog, setting, value, status):
    """A page and an act say what to do; the web server's log has the host, the port, the role and the rest."""
    monkeypatch.setenv("AIRFLOW__SMS__LEDGER_CONN_ID", "secret_ledger")
    monkeypatch.setenv(setting, value)
    ed = site("ed")
    for answer in (ed.get("/"), ed.post("/campaigns/1/pause")):
        assert answer.status_code == status
        assert "web server" in answer.text
        assert not any(words in answer.text for words in ("127.0.0.1", "port 1", "secret", "psycopg", "postgres"))
    assert "secret_" in caplog.text or "127.0.0.1" in caplog.text


def test_no_page_names_the_file(vic, ledger_path, request):
    """Neither of a ledger nor in an error about one that is missing, or that is none; and no file is created."""
    answer = vic.get("/")
    assert (answer.status_code, ledger_path.exists()) == (409, False)
    assert "There is no ledger that this page can read. The first task that sends creates it" in answer.text
    shown = [answer.text]
    ledger_path.write_bytes(b"no database at all, but long enough to be read as the head of one" * 9)
    answer = vic.get("/")
    assert answer.status_code in (409, 503)
    shown.append(answer.text)
    ledger_path.unlink()
    tell(request.getfixturevalue("store"))
    shown += [vic.get(path).text for path in ("/", "/campaigns/1", "/task?dag_id=d&run_id=none&task_id=t")]
    assert not [text for text in shown if str(ledger_path.parent) in text or ledger_path.name in text]
