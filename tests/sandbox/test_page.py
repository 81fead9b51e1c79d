from __future__ import annotations

import re

import pytest

from airflow_provider_sms.sandbox import page

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}


@pytest.fixture
def index(client):
    return client.call("GET", "/", base="", headers={})


def test_the_page_is_whole(client, index):
    """Every file that the page names, and every module that one of its scripts imports, is served."""
    named = set(re.findall(r'(?:src|href)="_sandbox/page/([^"]+)"', index.text))
    assert {"inbox.js", "inbox.css", "icon.svg"} == named
    seen = set()
    while named:
        name = named.pop()
        seen.add(name)
        answer = client.control("GET", f"/page/{name}")
        assert answer.status_code == 200, name
        named |= set(re.findall(r'from "\./([^"]+)"', answer.text)) - seen
    assert seen | {page.INDEX} == set(page.assets())


def test_the_files_have_the_types_that_a_browser_asks_for(client, index):
    """Each file has its media type, and a header tells the browser not to guess another."""
    answers = {name: client.control("GET", f"/page/{name}").headers for name in ("inbox.js", "inbox.css", "icon.svg")}
    assert {name: headers["Content-Type"].partition(";")[0] for name, headers in answers.items()} == {
        "inbox.js": "text/javascript",
        "inbox.css": "text/css",
        "icon.svg": "image/svg+xml",
    }
    assert {headers["X-Content-Type-Options"] for headers in answers.values()} == {"nosniff"}
    assert index.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_browser_may_run_and_load_only_the_pages_own_files(index):
    """Even a text inserted as markup could run nothing, load nothing and send nothing."""
    given = dict(rule.strip().split(" ", 1) for rule in index.headers["Content-Security-Policy"].split(";"))
    assert given == POLICY


def test_the_page_names_no_other_address():
    """No file of the page names another host, except in the namespace of the icon's format."""
    told = {name: re.findall(rb"(?:https?:)?//[\w.]+", content) for name, content in page.assets().items()}
    found = {name: set(urls) for name, urls in told.items() if urls}
    assert found.pop("icon.svg") == {b"http://www.w3.org"}
    assert not {name: urls for name, urls in found.items() if any(b":" in url for url in urls)}


def test_the_page_makes_no_markup_of_texts():
    """No script inserts a text as markup or runs one, and the page has no inline script or style."""
    scripts = b"".join(content for name, content in page.assets().items() if name.endswith(".js"))
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", scripts)
    assert not re.search(rb"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page.assets()[page.INDEX])


def test_other_files_are_not_served(client):
    """Only the page's own files are served; any other name gets 404."""
    for name in ("missing.js", "..%2Fpage.py", "%2Fetc%2Fpasswd"):
        assert client.control("GET", f"/page/{name}").status_code == 404


@pytest.mark.parametrize(
    "query", ["", "kind=fire", "kind=none&on=moon", "kind=status&status=x", "kind=status&status=9"]
)
def test_advice_is_for_faults_only(client, query):
    """An invalid fault gets 400."""
    assert client.control("GET", f"/advice?{query}").status_code == 400


def test_advice_is_that_of_the_fault(client):
    """The advice depends on status, acceptance and author of the fault."""
    told = client.control("GET", "/advice?kind=status&on=send&status=503&accepted=false").json()
    assert told["advice"].startswith("Nothing was sent: after the delay in Retry-After")
    assert client.control("GET", "/advice?kind=status&status=503&accepted=true").json() != told
    assert client.control("GET", "/advice?kind=status&status=503&by=gateway").json() != told


@pytest.mark.parametrize("query", ["requests?limit=0", "requests?limit=101", "numbers?before=-1", "search?q="])
def test_a_page_of_rows_is_bounded(client, query):
    """A limit, position or search out of range is refused."""
    assert client.control("GET", f"/{query}").status_code == 422
