"""The browser that tests open pages with notices what a page must not do."""

from __future__ import annotations

import contextlib

import pytest
from support.other_service import served


@pytest.fixture(scope="module")
def serve():
    """Serve each given body under its path, on a port of its own."""
    with contextlib.ExitStack() as stack:

        def start(pages):
            def answer(path, *_):
                policy, body = pages.get(path, ("", ""))
                headers = {"Content-Type": "text/html", **({"Content-Security-Policy": policy} if policy else {})}
                return 200 if path in pages else 404, headers, body.encode()

            return stack.enter_context(served(answer))

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
