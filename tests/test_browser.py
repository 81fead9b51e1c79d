"""The browser that tests open pages with notices what a page must not do."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import threading

import pytest
from support import browser as support


@pytest.fixture(scope="module")
def serve():
    """Serve each given body under its path, on a port of its own."""
    with contextlib.ExitStack() as stack:

        def start(pages):
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    policy, body = pages.get(self.path, ("", None))
                    self.send_response(404 if body is None else 200)
                    self.send_header("Content-Type", "text/html")
                    if policy:
                        self.send_header("Content-Security-Policy", policy)
                    self.end_headers()
                    self.wfile.write((body or "").encode())

                def log_message(self, *_):
                    pass

            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}"

        yield start


ICON = "<link rel=icon href=data:,>"
WRONG = {
    "an error in the console": ("", "<script>console.error('oh')</script>", "console: oh"),
    "an error in a script": ("", "<script>throw new Error('oh')</script>", "script: .*oh"),
    "a breach of the policy": ("default-src 'none'", "<p style='color: red'>", "Content Security Policy"),
    "what is not there": ("", "<script src=/missing.js></script>", "answer: 404 .*/missing.js"),
    "another place": ("", "<script src=http://127.0.0.1:9/x.js></script>", "elsewhere: http://127.0.0.1:9/x.js"),
    "a name": ("", "<script src=http://example.com/x.js></script>", "elsewhere: http://example.com/x.js"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_page_that_does_wrong_fails_its_test(browser, serve, what):
    """Errors, breaches of the policy, failed answers and requests to elsewhere do not go unseen."""
    policy, body, problem = WRONG[what]
    root = serve({"/": (policy and f"{policy}; img-src data:", ICON + body)})
    with pytest.raises(AssertionError, match=problem), browser.page(root + "/"):
        pass
    with browser.page(root + "/", expected=[problem, "console: Failed to load resource", "^failed: "]):
        pass


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_the_size_and_colours_that_were_asked_for(browser, serve, scheme):
    """Width, height and colours of the reader are the test's choice, and a page that does nothing wrong passes."""
    root = serve({"/": ("", f"{ICON}<p id=here>Hello")})
    with browser.page(root + "/", color_scheme=scheme, width=390, height=700) as page:
        browser.expect(page.locator("#here")).to_have_text("Hello")
        assert page.evaluate("[innerWidth, innerHeight]") == [390, 700]
        assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")


def test_an_event_loop_can_be_started_while_a_page_is_open(browser, serve):
    """The browser's own loop is in a thread of its own, so that code under test may have one."""
    root = serve({"/": ("", ICON)})
    with browser.page(root + "/"):
        assert asyncio.run(asyncio.sleep(0, "done")) == "done"


def test_without_a_browser_the_reason_is_a_plain_one(monkeypatch):
    """Where there is none, it is said which were looked for; only where it is required this is an error."""
    pytest.importorskip("playwright")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(support.NoBrowserError, match="no browser is installed: none of chromium, "):
        support.chromium()
    monkeypatch.delenv(support.REQUIRED, raising=False)
    assert not support.is_required()
    monkeypatch.setenv(support.REQUIRED, "1")
    assert support.is_required()
