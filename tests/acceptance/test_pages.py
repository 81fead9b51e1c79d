from __future__ import annotations

import json
import re

import pytest
from support.campaign_site import HOSTILE, RUN, TASK, running_site, write_people
from support.faults.rest import RUN_SECONDS, until

SENT = 600
EXPECTED = (
    # Airflow's own page asks who is there before anybody has signed in.
    r"401.*/ui/config",
    r"401 \(Unauthorized\)",
)
SIZES = ({"width": 390, "height": 844}, {"width": 1400, "height": 900})


@pytest.fixture(scope="module")
def site(tmp_path_factory, browser):
    """An Airflow whose campaigns ended in different ways, and one that nobody has sent yet."""
    folder = tmp_path_factory.mktemp("site")
    dags = {
        "spring": {
            "source": write_people(folder / "spring.parquet", SENT, invalid=7),
            "message": "Hi {first_name}, the spring sale begins.",
            "campaign": "spring sale",
            "chunk_size": 10,
            "concurrency": 1,
        },
        "reminders": {
            "source": write_people(folder / "reminders.parquet", 250, first=27_830_000_000),
            "message": "Hi {first_name}, see you at ten.",
            "campaign": "reminders",
            "sms_conn_id": "sms_lossy",
            "chunk_size": 50,
            "concurrency": 1,
        },
        "hostile": {
            "source": write_people(folder / "hostile.parquet", 20, first=27_840_000_000, names=(HOSTILE,)),
            "message": "{first_name}",
            "campaign": HOSTILE,
        },
        "overdue": {
            "source": write_people(folder / "overdue.parquet", 300, first=27_850_000_000),
            "message": "Hi {first_name}, please pay.",
            "campaign": "overdue accounts",
            "sms_conn_id": "sms_low",
            "on_low_balance": "wait",
        },
    }
    services = {"sms_default": {"balance": 5000}, "sms_lossy": {"balance": 5000}, "sms_low": {"balance": 100}}
    with running_site(folder, dags, services) as site:
        site.services["sms_lossy"].set_faults([{"kind": "none"}, {"kind": "drop_after"}, {"kind": "drop_after"}])
        for dag_id in ("reminders", "hostile", "overdue"):
            site.send(dag_id)
        site.await_state("reminders")
        site.await_state("hostile")
        site.await_state("overdue", "deferred")
        yield site


@pytest.fixture
def look(site, browser):
    """Open a page of Airflow as somebody, who has signed in."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def look(name, path="/plugin/sms", **how):
            page = stack.enter_context(browser.page(site.url + "/", expected=EXPECTED, **how))
            site.sign_in(page, name)
            page.goto(site.url + path)
            return page

        yield look


def frame(page):
    """What is shown inside of Airflow's own page."""
    return page.frame_locator("iframe")


def opened(page, name):
    """Open a campaign from the list."""
    inside = frame(page)
    inside.locator("tbody th").get_by_role("link", name=name, exact=True).click()
    inside.get_by_role("heading", level=1, name=name, exact=True).wait_for()
    return inside


def row(inside, name):
    return inside.locator("tbody tr").filter(has=inside.get_by_role("link", name=name, exact=True))


def audited(site, after=0):
    """Return the package's rows of Airflow's audit log.

    :param after: id of the last row to leave out.
    """
    rows = site.airflow.call("GET", "/eventLogs?event_pattern=sms&limit=100&order_by=event_log_id")["event_logs"]
    return [row for row in rows if row["event_log_id"] > after]


def events(rows, *, owner):
    """Return the events of a user's rows."""
    return [row["event"] for row in rows if row["owner"] == owner]


def test_the_list_stands_in_airflows_navigation_and_leads_back_into_it(look, browser, site):
    """The item SMS opens the list inside of Airflow; a DAG's link opens Airflow's page of it, not a page in a page."""
    page = look("vic", "/")
    page.get_by_role("link", name="SMS").click()
    inside = frame(page)
    for name, state in ((HOSTILE, "complete"), ("overdue accounts", "waiting for credit")):
        browser.expect(row(inside, name).locator(".state")).to_have_text(state)
    row(inside, "overdue accounts").locator("td").get_by_role("link", name="overdue", exact=True).click()
    page.wait_for_url(re.compile(r"/dags/overdue/?$"))
    browser.expect(page.locator("iframe")).to_have_count(0)


def test_a_send_is_followed_paused_resumed_and_complete(look, browser, site):
    """The page goes on by itself; a pause holds the send and is recorded under the user's name; all are texted once."""
    service = site.services["sms_default"]
    # So that it is still being sent when the slowest machine comes to look at it.
    service.set_faults([{"kind": "delay", "seconds": 3, "persistent": True}])
    site.send("spring")
    until(lambda: len(spring_texts(service)) > 20, seconds=RUN_SECONDS, what="spring is sent")
    page = look("ed")
    browser.expect(row(frame(page), "spring sale").locator(".state")).to_have_text("sending")
    inside = opened(page, "spring sale")
    accepted = inside.locator("dl div", has_text="Accepted").locator("dd")
    before = int(accepted.inner_text().replace(",", ""))
    browser.expect(accepted).not_to_have_text(f"{before:,}")
    inside.get_by_role("button", name="Pause").click()
    inside.get_by_role("button", name="Cancel").click()
    browser.expect(inside.locator("header .state")).to_have_text("sending")
    inside.get_by_role("button", name="Pause").click()
    inside.get_by_role("button", name="Yes").click()
    browser.expect(inside.locator("header .state")).to_have_text("paused")
    held = len(spring_texts(service))
    inside.get_by_role("button", name="Resume").click()
    inside.get_by_role("button", name="Yes").click()
    browser.expect(inside.locator("header .state")).to_have_text("sending")
    until(lambda: len(spring_texts(service)) > held + 20, seconds=RUN_SECONDS, what="it goes on")
    service.set_faults([])
    site.await_state("spring")
    texted = spring_texts(service)
    assert (len(texted), len(set(texted))) == (SENT, SENT)
    browser.expect(inside.locator("header .state")).to_have_text("complete")
    browser.expect(accepted).to_have_text("600")
    assert events(audited(site), owner="ed") == ["sms.pause", "sms.resume"]


def spring_texts(service):
    """The destinations that the service accepted of the campaign spring sale."""
    return [message.destination for message in list(service.accepted) if message.destination.startswith("2782")]


def test_unknown_requests_are_said_on_the_page_and_the_task_goes_on(look, browser, site):
    """What was sent is not sent again, what was not is, and nobody is texted twice by the answers of a person."""
    page = look("ed")
    browser.expect(row(frame(page), "reminders").locator(".state")).to_have_text("needs attention")
    inside = opened(page, "reminders")
    unknown = inside.locator("#unknown tbody tr")
    browser.expect(unknown).to_have_count(2)
    unknown.nth(0).get_by_role("button", name="Was sent").click()
    browser.expect(inside.locator("#confirm-text")).to_contain_text("never texts 50 people again")
    inside.get_by_role("button", name="Yes").click()
    browser.expect(unknown).to_have_count(1)
    unknown.nth(0).get_by_role("button", name="Was not sent").click()
    browser.expect(inside.locator("#confirm-text")).to_contain_text("The next attempt texts 50 people")
    inside.get_by_role("button", name="Yes").click()
    browser.expect(inside.locator("#message")).to_contain_text(
        f"50 people. Now clear what has failed: task {TASK} of DAG reminders"
    )
    browser.expect(unknown).to_have_count(0)
    assert events(audited(site), owner="ed").count("sms.resolve") == 2
    site.airflow.clear("reminders", RUN)
    until(lambda: site.state("reminders") == "success", seconds=RUN_SECONDS, what="the cleared task has ended")
    browser.expect(inside.locator("h1")).to_have_text("reminders")
    # The service had taken both, whatever the person said of the second one.
    assert len(site.services["sms_lossy"].accepted) == 250 + 50


def test_a_viewer_is_offered_nothing_to_press(look, browser):
    """They see all that an editor sees, but for the buttons."""
    inside = opened(look("vic"), "overdue accounts")
    browser.expect(inside.locator(".reasons")).to_contain_text("waits until the balance is 300.00")
    assert inside.locator("button[data-action]").count() == 0


def test_the_tab_of_a_task_shows_its_campaign(look, browser):
    """Beside the task's log stands what it sent."""
    page = look("vic", f"/dags/hostile/runs/{RUN}/tasks/{TASK}")
    page.locator(f'a[href*="/tasks/{TASK}/plugin/"]').click()  # the navigation has a link of that name, too
    browser.expect(frame(page).locator("h1")).to_have_text(HOSTILE)


def test_hostile_names_are_shown_and_not_executed(look, browser):
    """A campaign's name is the user's, and a reason's the service's: neither is a script."""
    page = look("ed")
    inside = opened(page, HOSTILE)
    browser.expect(inside.locator("#attempts table")).to_be_visible()
    assert inside.locator("img, script:not([src])").count() == 0
    assert "pwned" not in page.evaluate("[document.title, frames[0].document.title].join()").replace(HOSTILE, "")


def test_commands_are_in_airflows_audit_log(site):
    """As whoever may read the audit log gets them from Airflow."""
    earlier = max((row["event_log_id"] for row in audited(site)), default=0)
    site.airflow.ledger_command("pause", "overdue accounts")
    site.airflow.ledger_command("resume", "overdue accounts")
    site.airflow.ledger_command("who", "+27840000003")
    rows = audited(site, earlier)
    assert [row["event"] for row in rows] == ["cli_sms_pause_campaign", "cli_sms_resume_campaign", "cli_sms_who_texted"]
    assert "840000003" not in json.dumps(rows)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_in_every_light_and_on_every_screen(look, browser, scheme):
    """Light and dark follow the reader's system, and nothing is wider than the screen but tables that scroll."""
    page = look("vic", color_scheme=scheme)
    inside = frame(page)
    browser.expect(inside.locator("#list table")).to_be_visible()
    dark = page.evaluate("frames[0].document.documentElement.dataset.theme")
    assert dark == scheme
    for name in ("reminders", "overdue accounts"):
        inside.get_by_role("link", name="Campaigns").click()
        opened(page, name)
        for size in SIZES:
            page.set_viewport_size(size)
            page.wait_for_function("frames[0].document.documentElement.scrollWidth <= frames[0].innerWidth")
            assert page.evaluate(CONTRAST) == []


CONTRAST = """() => {
  // WCAG 2.1, 1.4.3: 4.5 for text, of every word against what it stands on.
  const within = frames[0].document;
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(frames[0].getComputedStyle(each).backgroundColor);
      if (colour[3] > 0.5) return colour;
    }
    return [255, 255, 255, 1];
  };
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const bad = [];
  for (const element of within.querySelectorAll("main *, nav *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const [one, other] = [parse(frames[0].getComputedStyle(element).color), behind(element)].map(light);
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const words = element.textContent.trim().slice(0, 30);
    if (contrast < 4.5) bad.push(`${element.tagName} ${words} ${contrast.toFixed(2)}`);
  }
  return bad;
}"""


def test_who_is_not_signed_in_sees_nothing(site, browser):
    """The page says so, and shows nothing of any campaign."""
    with browser.page(site.url + "/sms/", expected=(r"401",)) as page:
        browser.expect(page.get_by_role("alert")).to_have_text("Not authenticated")
        assert "overdue" not in page.content()
