"""The sandbox's page in a browser. A console error or a request to another host fails every test, too."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

import pytest
import requests

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.faults import KINDS
from airflow_provider_sms.sandbox.request_bodies import SendRequest
from airflow_provider_sms.sandbox.server import running_sandbox

ANNA, BEN, LONDON = "27820000001", "27600000002", "447700900123"
HOSTILE = {
    "an image": "<img src=x onerror=\"document.title='run'\">",
    "a script": "</script><script>document.title='run'</script>",
    "an override": "Pay \u202etfel ot thgir\u202c now",
    "other directions": "שלום עולם, مرحبا",
    "emoji": "👋🏽 family: 👨‍👩‍👧‍👦",
    "entities": "&lt;b&gt; &amp; &#x202e;",
    "controls": "a\x00b\x07c\td\r\ne",
    "5,000 characters": "0123456789" * 500,
    "a long word": "x" * 400,
}


@pytest.fixture
def open_page(browser, client):
    """Open the page of this test's sandbox at a view; it closes at the end of the test."""
    with contextlib.ExitStack() as stack:

        def opened(view="", **settings):
            page = stack.enter_context(browser.page(f"{client.root}/{view}", **settings))
            browser.expect(page.locator("#live")).to_have_text("Live")
            return page

        yield opened


@pytest.fixture
def see(browser):
    """Return Playwright's assertions, which wait."""
    return browser.expect


def fill(state, requests_, *, per_request=100):
    """Accept many messages at once, each to its own number."""
    for request in range(requests_):
        first = request * per_request
        messages = tuple((f"2782{first + place:07}", f"Text {first + place}") for place in range(per_request))
        state.accept(SendRequest("bulk", messages), state.next_request_number())


def sideways(page):
    """Return by how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_the_empty_page_says_where_to_point_a_connection(client, open_page, see):
    """Until something arrives, the page says so and shows the base URL; afterwards it hides both."""
    page = open_page()
    see(page.locator("#empty")).to_contain_text("Nothing has arrived yet")
    see(page.locator("#base-url")).to_have_text(f"{client.root}/v1")
    client.balance()
    see(page.locator("#empty")).to_be_hidden()
    see(page.locator(".request")).to_have_count(1)


def test_requests_appear_while_the_page_is_open(client, open_page, see):
    """Requests appear without a reload, newest first, with status, counts, cost and the exact event id."""
    page = open_page()
    client.bulk((ANNA, "One"))
    see(page.locator(".request")).to_have_count(1)
    event_id = client.bulk((ANNA, "Two"), ("27991234567", "Nobody")).json()["EventId"]
    rows = page.locator(".request")
    see(rows).to_have_count(2)
    see(rows.first).to_contain_text(f"#2 bulk send2001 of 21{event_id}")
    see(rows.last).to_contain_text("#1 bulk send2001 of 11")
    see(page.locator("#count-messages")).to_have_text("2")
    see(page.locator("#count-balance")).to_have_text("998")


def test_a_request_opens_by_the_keyboard_and_shows_its_messages(client, open_page, see):
    """A request is a button; opened, it shows each number and text with encoding, parts, price and network."""
    client.bulk((ANNA, "Zoë " * 20), (BEN, "Plain"))
    page = open_page()
    row = page.locator(".request")
    row.focus()
    page.keyboard.press("Enter")
    see(row).to_have_attribute("aria-expanded", "true")
    see(page.locator(".detail .message")).to_have_count(2)
    see(page.locator(".detail .message").first).to_contain_text(f"{ANNA}UCS-22 partscosts 2Local")
    see(page.locator(".detail .message").last).to_contain_text(f"{BEN}GSM-71 partcosts 0.35AcaciaPlain")
    client.bulk((ANNA, "Later"))
    see(page.locator(".request")).to_have_count(2)
    see(page.locator(".request").last).to_have_attribute("aria-expanded", "true")
    see(page.locator(".request").last).to_be_focused()


def test_a_request_of_a_large_group_shows_its_messages_in_steps(start, browser, see):
    """The first hundred messages are shown at once, and the others by a button."""
    client = start(groups={"all": [f"2782{place:07}" for place in range(130)]})
    client.group("Hello", "all")
    with browser.page(client.root + "/") as page:
        page.locator(".request").click()
        see(page.locator(".detail .message")).to_have_count(100)
        page.get_by_role("button", name="More").click()
        see(page.locator(".detail .message")).to_have_count(130)
        see(page.get_by_role("button", name="More")).to_be_hidden()


def test_by_number_shows_texts_as_a_phone_would(client, open_page, see):
    """Numbers show their latest text; the chosen one shows all of its texts, oldest first, with details and live."""
    client.bulk((ANNA, "One"), (LONDON, "Hi"))
    page = open_page("#/numbers")
    see(page.locator(".person b")).to_have_text([LONDON, ANNA])
    page.locator(".person", has_text=ANNA).click()
    see(page.locator("#phone-number")).to_have_text(ANNA)
    see(page.locator(".bubble .content")).to_have_text(["One"])
    client.bulk((ANNA, "Two ✓"))
    see(page.locator(".bubble .content")).to_have_text(["One", "Two ✓"])
    see(page.locator(".bubble .facts").last).to_contain_text("UCS-21 partcosts 1Localrequest 2")
    at = f"{client.sandbox.state.accepted[-1].at:%Y-%m-%d %H:%M:%S}"
    see(page.locator(".bubble time").last).to_have_text(at)
    see(page.locator(".person b")).to_have_text([ANNA, LONDON])
    see(page.locator(".person .preview").first).to_have_text("Two ✓")
    see(page.locator(".person[aria-current] b")).to_have_text(ANNA)
    page.locator(".person", has_text=LONDON).click()
    see(page.locator(".bubble .content")).to_have_text(["Hi"])
    page.go_back()
    see(page.locator(".bubble .content")).to_have_text(["One", "Two ✓"])


@pytest.mark.parametrize("query", ["flower", "2760 000 0002", "event id"])
def test_search_finds_number_text_and_event_id(client, open_page, see, query):
    """A search finds a number, a text or an event id, and its result links to the number's texts."""
    client.bulk((ANNA, "Nothing of it"))
    event_id = client.bulk((BEN, "Flowers")).json()["EventId"]
    page = open_page()
    page.locator("#query").fill(str(event_id) if query == "event id" else query)
    page.keyboard.press("Enter")
    see(page.locator("#found .message")).to_have_count(1)
    see(page.locator("#found .message")).to_contain_text(f"event {event_id}")
    page.locator("#found a").click()
    see(page.locator(".bubble .content")).to_have_text(["Flowers"])
    page.locator("#query").fill("nowhere")
    page.keyboard.press("Enter")
    see(page.locator("#search-state")).to_contain_text("Nothing found; all 2 messages searched")


def test_clear_asks_first_and_then_forgets(start, browser, see, tmp_path):
    """Clearing explains that the witness stays, does nothing when declined, and empties every view when confirmed."""
    log = tmp_path / "witness.jsonl"
    client = start(log=log)
    client.bulk((ANNA, "Hello"))
    with browser.page(client.root + "/#/numbers") as page:
        see(page.locator(".person")).to_have_count(1)
        page.locator("#clear").click()
        see(page.locator("dialog")).to_contain_text("The witness file, if there is one, stays unchanged")
        page.locator("#clear-no").click()
        see(page.locator("dialog")).to_be_hidden()
        assert len(client.sandbox.state.accepted) == 1
        page.locator("#clear").click()
        page.locator("#clear-yes").click()
        see(page.locator("#empty")).to_be_visible()
        see(page.locator("#count-messages")).to_have_text("0")
        client.bulk((BEN, "After"))
        see(page.locator(".person b")).to_have_text([BEN])
    assert len(log.read_text().splitlines()) == 2


def test_the_account_is_set_by_the_panel(client, open_page, see):
    """The next request has the balance and post-paid of the panel, and the page shows the new balance."""
    page = open_page()
    page.locator("#balance").fill("12.5")
    page.locator("#balance-form button").click()
    see(page.locator("#count-balance")).to_have_text("12.5")
    assert client.bulk((ANNA, "Hello")).json()["RemainingBalance"] == 11.5
    see(page.locator("#balance")).to_have_value("11.5")
    page.locator("#post-paid").check()
    see(page.locator("#count-balance")).to_have_text("post-paid")
    assert client.balance().json() == {"Balance": 1000000}
    client.control("PUT", "/post-paid", json={"post_paid": False})
    see(page.locator("#post-paid")).not_to_be_checked()


def test_a_new_balance_does_not_replace_a_typed_one(client, open_page, see):
    """A balance that was typed but not set yet stays in its field, whatever happens to the account meanwhile."""
    page = open_page()
    page.locator("#balance").fill("77")
    page.locator("#balance-form button").focus()
    client.bulk((ANNA, "Hello"))
    see(page.locator("#count-balance")).to_have_text("999")
    see(page.locator("#balance")).to_have_value("77")
    page.locator("#balance-form button").click()
    see(page.locator("#count-balance")).to_have_text("77")
    client.bulk((ANNA, "Hello again"))
    see(page.locator("#balance")).to_have_value("76")


def test_somebody_else_spends_and_tops_up_by_the_panel(client, open_page, see):
    """Both buttons move the balance; spending too much is explained, and a post-paid account has neither."""
    page = open_page()
    page.locator("#amount").fill("42.5")
    page.get_by_role("button", name="Top up").click()
    see(page.locator("#count-balance")).to_have_text("1,042.5")
    see(page.locator("#amount")).to_have_value("")
    page.locator("#amount").fill("1042")
    page.get_by_role("button", name="Spend").click()
    see(page.locator("#count-balance")).to_have_text("0.5")
    client.control("PUT", "/post-paid", json={"post_paid": True})
    see(page.get_by_role("button", name="Spend")).to_be_disabled()
    see(page.locator("#amount")).to_be_disabled()


def test_spending_too_much_is_explained_by_the_panel(open_page, see):
    """More than the balance is not spent, and the page says why."""
    page = open_page(expected=["answer: 403", "console: Failed to load resource"])
    page.locator("#amount").fill("1000.5")
    page.get_by_role("button", name="Spend").click()
    see(page.locator("#problem")).to_have_text("the balance does not cover the amount to spend")
    see(page.locator("#count-balance")).to_have_text("1,000")


def test_the_form_charges_late_and_spends(client, open_page, see):
    """The added faults have the seconds of the late charge, and the amount and moment of what somebody else spends."""
    page = open_page()
    add, waiting = page.get_by_role("button", name="Add this fault"), page.locator("#faults > li")
    page.locator("#fault-charge-after").fill("2.5")
    add.click()
    see(waiting.last).to_contain_text("charged after 2.5 s")
    page.locator("#fault-kind").select_option("late_charge")
    page.locator("#fault-late").fill("9")
    add.click()
    see(waiting.last).to_contain_text("charged after 9 s")
    page.locator("#fault-kind").select_option("spend")
    page.locator("#fault-amount").fill("-7.5")
    page.locator("#fault-when").select_option("after")
    page.locator("#fault-on").select_option("balance")
    add.click()
    see(waiting.last).to_contain_text("tops up 7.5 after")
    drop, late, spend = client.sandbox.state.faults.pending()
    assert [(fault["kind"], fault["charge_after"]) for fault in (drop, late)] == [
        ("drop_after", 2.5),
        ("late_charge", 9),
    ]
    assert [spend[name] for name in ("kind", "on", "amount", "when")] == ["spend", "balance", -7.5, "after"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_of_the_form_meets_the_next_request(client, open_page, see, kind):
    """The form shows the advice and adds the fault; the next request meets the fault, and the page shows that."""
    page = open_page()
    page.locator("#fault-kind").select_option(kind)
    if kind == "delay":
        page.locator("#fault-seconds").fill("0.01")
    if kind == "status":
        page.locator("#fault-status").fill("429")
        page.locator("#fault-retry-after").fill("7")
    line = client.control("GET", "/advice", params={"kind": kind, "status": 429}).json()["advice"]
    see(page.locator("#fault-advice")).to_have_text(line)
    page.get_by_role("button", name="Add this fault").click()
    see(page.locator("#faults > li")).to_have_count(1)
    see(page.locator("#faults > li")).to_contain_text(line)
    if kind in ("drop_before", "drop_after", "truncated"):
        with pytest.raises(requests.RequestException):
            client.bulk((ANNA, "Hello"))
    else:
        answer = client.bulk((ANNA, "Hello"))
        expected = (429, "7") if kind == "status" else (200, None)
        assert expected == (answer.status_code, answer.headers.get("Retry-After"))
    see(page.locator("#faults > li")).to_have_count(0)
    assert [request.fault for request in client.sandbox.state.requests] == [kind]
    if kind != "none":
        see(page.locator(".request .mark.fault")).to_have_text(kind)
        page.locator(".request").click()
        see(page.locator(".detail .advice")).to_contain_text(line)


def test_a_fault_of_the_form_has_all_its_settings(client, open_page, see):
    """The added fault has the chosen operation, requests, duration, acceptance and reset."""
    page = open_page()
    page.locator("#fault-on").select_option("balance")
    page.locator("#fault-times").fill("3")
    page.locator("#fault-reset").check()
    page.get_by_role("button", name="Add this fault").click()
    see(page.locator("#faults > li")).to_have_count(1)
    page.locator("#fault-kind").select_option("status")
    page.locator("#fault-accepted").check()
    page.locator("#fault-by").select_option("gateway")
    page.locator("#fault-persistent").check()
    page.locator("#fault-on").select_option("send")
    page.get_by_role("button", name="Add this fault").click()
    see(page.locator("#faults > li")).to_have_count(2)
    first, second = client.sandbox.state.faults.pending()
    assert (first["kind"], first["on"], first["times"], first["reset"]) == ("drop_after", "balance", 3, True)
    chosen = [second[name] for name in ("kind", "status", "accepted", "by", "persistent")]
    assert chosen == ["status", 503, True, "gateway", True]
    see(page.locator("#faults > li").last).to_contain_text("until cleared")
    see(page.locator("#faults > li").last).to_contain_text("by a gateway")
    page.locator("#clear-faults").click()
    see(page.locator("#no-faults")).to_be_visible()
    assert client.sandbox.state.faults.pending() == []


@pytest.mark.parametrize("what", HOSTILE)
def test_a_text_is_shown_and_never_run(client, open_page, see, what):
    """Any text is shown unchanged in every view, and breaks neither page nor layout."""
    text = HOSTILE[what]
    client.bulk((ANNA, text))
    page = open_page()
    page.locator(".request").click()
    page.locator(".detail .content").wait_for()
    # A browser shows no carriage return: the property tells what the page was given.
    assert page.locator(".detail .content").evaluate("element => element.textContent") == text
    for view, where in ((f"#/numbers/{ANNA}", ".bubble .content"), (f"#/search/{ANNA}", "#found .content")):
        page.evaluate(f"location.hash = '{view}'")
        page.locator(where).wait_for()
        assert page.locator(where).evaluate("element => element.textContent") == text
        assert page.locator(where).evaluate("element => element.children.length") == 0
        assert sideways(page) <= 0
    assert page.title() == "SMS sandbox"
    page.locator("#query").fill(text[:200])
    page.keyboard.press("Enter")
    see(page.locator("#view-search")).to_be_visible()
    assert page.title() == "SMS sandbox"


@pytest.mark.parametrize(
    "number", ["%3Cimg%20src=x%20onerror=alert(1)%3E", "%E0%A4%A", "27820000001/../..", "?limit=9"]
)
def test_a_malformed_number_in_the_url_is_harmless(client, open_page, see, number):
    """A malformed number in the URL is shown unchanged, and has no texts."""
    client.bulk((ANNA, "Hello"))
    page = open_page(f"#/numbers/{number}", expected=[r"answer: 404", "console: Failed to load resource"])
    see(page.locator("#phone-number")).to_be_visible()
    see(page.locator(".person")).to_have_count(1)
    see(page.locator(".bubble")).to_have_count(0)
    assert page.locator("#phone-number").evaluate("element => element.children.length") == 0


def test_a_hundred_thousand_messages_stay_usable(client, open_page, see):
    """The page keeps its number of elements, shows the newest messages at once, and leads to all others."""
    state = client.sandbox.state
    state.set_post_paid(True)
    fill(state, 1)
    client.bulk((ANNA, "The newest"))
    page = open_page("#/numbers")
    elements = "document.getElementsByTagName('*').length"
    see(page.locator(".person")).to_have_count(50)
    few = page.evaluate(elements)
    fill(state, 1000)
    see(page.locator("#count-messages")).to_have_text("100,101")
    see(page.locator(".person b").first).to_have_text("27820099999")
    assert page.evaluate(elements) <= few + 50
    page.get_by_role("button", name="Older").first.click()
    see(page.locator(".person b").first).to_have_text("27820099949")
    client.bulk((LONDON, "Meanwhile"))
    see(page.locator("#count-messages")).to_have_text("100,102")
    see(page.locator(".person b").first).to_have_text("27820099949")
    page.get_by_role("button", name="Newest").first.click()
    see(page.locator(".person b").first).to_have_text(LONDON)
    page.locator("#query").fill("The newest")
    page.keyboard.press("Enter")
    see(page.locator("#found .message")).to_have_count(1)
    page.locator("#query").fill("text")
    page.keyboard.press("Enter")
    see(page.locator("#found .message")).to_have_count(50)
    assert page.evaluate(elements) <= few + 1000


def test_pages_of_requests_follow_each_other(client, open_page, see):
    """Older pages stay still, count the requests that arrive meanwhile, and link to the newest page."""
    for _ in range(110):
        client.balance()
    page = open_page()
    see(page.locator(".request")).to_have_count(50)
    bar = page.locator("#view-requests .pager")
    older = bar.get_by_role("button", name="Older")
    older.evaluate("button => { button.click(); button.click(); }")  # as fast as a person never is
    see(page.locator(".request b").first).to_have_text("#60")
    see(bar).to_contain_text("Page 2")
    older.click()
    see(page.locator(".request b").first).to_have_text("#10")
    see(page.locator(".request")).to_have_count(10)
    see(older).to_be_disabled()
    client.balance()
    see(bar.get_by_role("button", name="Newest (1 new)")).to_be_enabled()
    see(page.locator(".request b").first).to_have_text("#10")
    bar.get_by_role("button", name="Newer").click()
    see(page.locator(".request b").first).to_have_text("#60")
    bar.get_by_role("button", name="Newest").click()
    see(page.locator(".request b").first).to_have_text("#111")


def test_a_broken_stream_reconnects(start, browser, see):
    """A page that lost its sandbox says so, and shows the messages of the next one as soon as it is there."""
    lost = ["console: Failed to load resource", "^failed: "]
    with contextlib.ExitStack() as stack:
        with running_sandbox() as sandbox:
            root = sandbox.base_url.removesuffix("v1")
            sandbox.state.accept(SendRequest("bulk", ((ANNA, "Before"),)), 1)
            page = stack.enter_context(browser.page(f"{root}#/numbers/{ANNA}", expected=lost))
            see(page.locator(".bubble .content")).to_have_text("Before")
        see(page.locator("#live")).to_have_text("Disconnected, reconnecting")
        with running_sandbox(SandboxConfig(port=urlsplit(root).port)) as sandbox:
            sandbox.state.accept(SendRequest("bulk", ((ANNA, "After"),)), 1)
            see(page.locator("#live")).to_have_text("Live")
            see(page.locator(".bubble .content")).to_have_text("After")
            see(page.locator(".person .preview")).to_have_text("After")
            see(page.locator("#problem")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_window_has_to_be_scrolled_sideways(client, open_page, see, scheme):
    """Every view fits into its window, narrow or wide, light or dark."""
    client.bulk((ANNA, "Your code is 123456. " * 20), (LONDON, "x" * 300))
    client.control("POST", "/faults", json=[{"kind": "status", "status": 503, "retry_after": "120"}])
    page = open_page(color_scheme=scheme)
    page.locator(".request").click()
    page.locator(".detail .content").first.wait_for()
    for view in ("#/requests", "#/numbers", f"#/numbers/{LONDON}", "#/search/code", "#/panel"):
        page.evaluate(f"location.hash = '{view}'")
        see(page.locator("body")).to_have_attribute("data-view", view.split("/")[1])
        for width in (1400, 1100, 800, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert sideways(page) <= 0, (view, width)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(back) < 60) == (scheme == "dark")


def test_a_narrow_window_shows_one_view_at_a_time(client, open_page, see):
    """In a narrow window, the texts replace the list of numbers, and the panel is a separate view."""
    client.bulk((ANNA, "Hello"))
    page = open_page("#/numbers", width=390, height=800)
    see(page.locator("#panel")).to_be_hidden()
    page.locator(".person").click()
    see(page.locator(".bubble")).to_be_visible()
    see(page.locator(".person")).to_be_hidden()
    page.get_by_role("link", name="All numbers").click()
    see(page.locator(".person")).to_be_visible()
    page.get_by_role("link", name="Account and faults").click()
    see(page.locator("#panel")).to_be_visible()
    see(page.locator(".person")).to_be_hidden()


def test_a_wide_window_shows_the_panel_beside_the_lists(client, open_page, see):
    """In a wide window, the panel is always visible."""
    client.bulk((ANNA, "Hello"))
    page = open_page(width=1400)
    see(page.locator("#panel")).to_be_visible()
    list_, panel = page.locator("main").bounding_box(), page.locator("#panel").bounding_box()
    assert list_["x"] + list_["width"] <= panel["x"]
    see(page.get_by_role("link", name="Account and faults")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrasts_with_its_background(client, open_page, see, scheme):
    """Each text colour has the contrast of WCAG 2.1 (1.4.3: 4.5 to 1) on each of its backgrounds."""
    page = open_page(color_scheme=scheme)
    ratio = page.evaluate(
        """() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const [r, g, b] = style.getPropertyValue(name).match(/\\w\\w/g).map((part) => parseInt(part, 16) / 255)
              .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const pairs = [
            ...["--back", "--sheet", "--tint"].flatMap((ground) =>
              ["--text", "--quiet", "--accent", "--good", "--bad", "--fault"].map((word) => [word, ground])),
            ["--on-accent", "--accent"], ["--bad", "--bad-tint"], ["--fault", "--fault-tint"],
          ];
          return pairs.map(([word, ground]) => {
            const [low, high] = [light(word), light(ground)].sort((a, b) => a - b);
            return [word, ground, (high + 0.05) / (low + 0.05)];
          });
        }"""
    )
    assert [pair for pair in ratio if pair[2] < 4.5] == []


def test_every_control_can_be_reached_and_has_a_name(client, open_page):
    """Fields have labels, buttons and links have text, and Tab visibly moves from one to the next."""
    client.bulk((ANNA, "Hello"))
    page = open_page("#/numbers")
    page.locator(".person").wait_for()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, a")]
          .filter((element) => element.checkVisibility())
          .filter((element) => !(element.labels?.length || element.textContent.trim()))
          .map((element) => element.outerHTML)"""
    )
    assert nameless == []
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.innerText.slice(0, 40)"))
        if page.evaluate("document.activeElement !== document.body"):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", seen[-1]
    for name in ("query", "clear", "By request", "By number", "balance", "post-paid", "fault-kind", "fault-times"):
        assert name in seen
