"""The browser that tests open pages with notices what a page must not do."""

from __future__ import annotations

import pytest
from support.other_service import served

pytestmark = pytest.mark.slow
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
def test_a_page_that_does_wrong_fails_its_test(browser, what):
    """Errors, breaches of the policy, failed answers and requests to elsewhere do not go unseen."""
    policy, body, problem = WRONG[what]

    def answer(path, *_):
        headers = {"Content-Type": "text/html", "Content-Security-Policy": policy and f"{policy}; img-src data:"}
        return (200, headers, f"{ICON}{body}".encode()) if path == "/" else (404, {}, b"")

    with served(answer) as root:
        with pytest.raises(AssertionError, match=problem), browser.page(root + "/"):
            pass
        with browser.page(root + "/", expected=[problem, "console: Failed to load resource", "^failed: "]):
            pass
