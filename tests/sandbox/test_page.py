"""The sandbox's page in a browser. A console error or a request to another host fails every test, too."""

from __future__ import annotations

import contextlib
import re

import pytest

from airflow_provider_sms.sandbox.server import PAGE, page_file

pytestmark = pytest.mark.slow
ANNA, BEN = "27820000001", "27600000002"
HOSTILE = {
    "markup": "<img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>",
    "entities": "&lt;b&gt; &amp; &#x202e;",
    "directions": "Pay \u202etfel ot thgir\u202c now, שלום עולם 👋🏽",
    "lines": "c\td\ne",
    "a long word": "x" * 5000,
}


@pytest.fixture
def open_page(browser, client):
    """Open the page of this test's sandbox; it closes at the end of the test."""
    with contextlib.ExitStack() as stack:

        def opened(**settings):
            page = stack.enter_context(browser.page(f"{client.root}/", **settings))
            browser.expect(page.locator("#live")).to_have_text("Live")
            return page

        yield opened


@pytest.fixture
def see(browser):
    """Return Playwright's assertions, which wait."""
    return browser.expect


def test_messages_appear_newest_first(client, open_page, see):
    """Messages appear without a reload, with number, text, parts and request, and so do counts and balance."""
    page = open_page()
    client.bulk((ANNA, "One"))
    see(page.locator("#messages tr")).to_have_count(1)
    client.bulk((BEN, "a" * 161))
    see(page.locator("#messages tr")).to_have_count(2)
    see(page.locator("#messages tr").first).to_contain_text(f"{BEN}{'a' * 161}22")
    see(page.locator("#shown")).to_have_text("2 of 2, newest first")
    see(page.locator("header")).to_contain_text("2 requests, 2 messages")
    see(page.locator("#balance")).to_have_value("998.3")


def test_faults_and_balance_are_set_by_the_page(client, open_page, see):
    """Faults are added, listed and cleared, and each example is accepted; an error of the sandbox is shown."""
    page = open_page(expected=["400"])
    examples = page.locator("#example option").all_text_contents()
    for example in examples:
        page.locator("#example").select_option(example)
        page.locator("#faults-form button", has_text="Add").click()
    see(page.locator("#waiting li")).to_have_count(len(examples))
    see(page.locator("#waiting li").first).to_have_text('{"kind":"drop_after"}')
    page.locator("#clear").click()
    see(page.locator("#waiting li")).to_have_count(0)
    page.locator("#faults").fill('[{"kind": "explode"}]')
    page.locator("#faults-form button", has_text="Add").click()
    see(page.locator("#error")).to_contain_text("kind: Input should be 'none'")
    page.locator("#balance").fill("12.5")
    page.locator("#balance-form button").click()
    see(page.locator("#error")).to_be_empty()
    assert client.bulk((ANNA, "Hello")).json()["RemainingBalance"] == 11.5
    see(page.locator("#balance")).to_have_value("11.5")


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("width", [390, 1400])
def test_a_text_is_shown_and_never_run(client, open_page, see, what, width):
    """Any text is shown unchanged, and breaks neither page nor layout, in a narrow window or a wide one."""
    client.bulk((ANNA, HOSTILE[what]))
    page = open_page(width=width, color_scheme="dark")
    see(page.locator("#messages td").nth(2)).to_have_text(HOSTILE[what], use_inner_text=False)
    assert page.locator("#messages td").nth(2).text_content() == HOSTILE[what]
    see(page).to_have_title("SMS sandbox")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_the_browser_may_run_and_load_only_the_pages_own_files(client):
    """The page makes no markup of texts, and its policy would neither run nor load any; no file has another type."""
    scripts, markup = page_file("page.js"), page_file("index.html")
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", scripts)
    assert not re.search(rb"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", markup)
    for path, (_, media_type) in PAGE.items():
        assert client.call("GET", path, base="", headers={}).headers["Content-Type"] == media_type
    (told,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', markup.decode())
    policy = dict(rule.strip().split(" ", 1) for rule in told.split(";"))
    assert policy.pop("img-src") == "data:"
    assert set(policy.values()) == {"'none'", "'self'"}
    own = {name for name, value in policy.items() if value == "'self'"}
    assert own == {"script-src", "style-src", "connect-src"}
