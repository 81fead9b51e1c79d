"""A headless Chromium whose pages fail a test by any error.

While it runs, Playwright's event loop runs in the calling thread, in which other code can start no loop of its own.
"""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "SMS_TESTS_NEED_BROWSER"
"""Environment variable; when it is set, a missing browser fails the tests instead of skipping them."""
TIMEOUT_SECONDS = 60
"""The longest wait for a page, which other tests keep waiting, too."""

FLAGS = ("--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--font-render-hinting=none")
"""Beside Playwright's own, by which the browser starts no update and has no scrollbars."""


class NoBrowserError(Exception):
    """No browser can be started. The message names the missing program or package."""


class Browser:
    """A running browser. Create one by :func:`running_browser`."""

    def __init__(self, real: Any, expect: Any) -> None:
        self._real = real
        self.expect = expect
        """Playwright's assertions on a page or a locator, which wait until they hold."""

    @contextmanager
    def page(
        self,
        url: str,
        *,
        color_scheme: Literal["light", "dark"] = "light",
        width: int = 1400,
        height: int = 900,
        expected: Collection[str] = (),
    ) -> Iterator[Any]:
        """Open a page in a new profile, and check for errors when it closes.

        :param url: URL of the page, which may load files from the same host and port only.
        :param width: pixels, as is the height.
        :param expected: patterns (:func:`re.search`) of expected errors.
        :returns: Playwright's page.
        :raises AssertionError: at the end, for any other error: an error in the console or in a script, a
            breach of the content security policy, a status of 400 or more, a failed request, or one to another host.
        """
        context = self._real.new_context(
            color_scheme=color_scheme,
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(TIMEOUT_SECONDS * 1000)
        page = context.new_page()
        here, problems = urlsplit(url)[:2], ["the page did what it must not:"]

        def note(problem: str, *, when: bool = True) -> None:
            if when and not any(re.search(pattern, problem) for pattern in expected):
                problems.append(problem)

        def look(asked: Any) -> None:
            there = urlsplit(asked.url)
            note(f"elsewhere: {asked.url}", when=there.scheme not in ("data", "blob") and there[:2] != here)

        def failed(asked: Any) -> None:
            # Leaving a page cancels its pending requests.
            what = f"failed: {asked.method} {asked.url} {asked.failure}"
            note(what, when=asked.failure != "net::ERR_ABORTED")

        page.on("console", lambda said: note(f"console: {said.text}", when=said.type == "error"))
        page.on("pageerror", lambda error: note(f"script: {error}"))
        page.on("requestfailed", failed)
        page.on("response", lambda answer: note(f"answer: {answer.status} {answer.url}", when=answer.status >= 400))
        page.on("request", look)
        try:
            page.goto(url)
            yield page
            page.evaluate("0")  # processes all events that the page has sent by now
        except BaseException:
            print(*problems[1:], sep="\n")  # noqa: T201 - beside the failure, where it helps to understand it
            raise
        finally:
            context.close()
        assert len(problems) == 1, "\n".join(problems)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a headless Chromium. Leaving the context ends the browser.

    :raises NoBrowserError: when there is no browser, or no Playwright to control it.
    """
    try:
        from playwright.sync_api import expect, sync_playwright
    except ModuleNotFoundError:
        raise NoBrowserError("the Python package playwright, which controls the browser, is not installed") from None
    if (path := next(filter(None, map(shutil.which, NAMES)), None)) is None:
        raise NoBrowserError(f"no browser is installed: none of {', '.join(NAMES)} was found")

    expect.set_options(timeout=TIMEOUT_SECONDS * 1000)
    with sync_playwright() as driver, driver.chromium.launch(executable_path=path, args=list(FLAGS)) as real:
        yield Browser(real, expect)
