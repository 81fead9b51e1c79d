from __future__ import annotations

import re
from contextlib import ExitStack

import pytest
from support.campaign_site import HOSTILE, RUN, TASK, running_site, write_people
from support.faults.rest import RUN_SECONDS, until

pytestmark = pytest.mark.slow
SENT = 600


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
            site.airflow.trigger(dag_id, RUN)
        site.await_state("reminders")
        site.await_state("hostile")
        site.await_state("overdue", "deferred")
        yield site


@pytest.fixture
def look(site, browser):
    """Open a page of Airflow as somebody, who has signed in."""
    with ExitStack() as stack:
        yield lambda name, *path: stack.enter_context(site.page(browser, name, *path))


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


def audited(site, owner):
    """Return the package's events of a user in Airflow's audit log."""
    rows = site.airflow.call("GET", "/eventLogs?event_pattern=sms&limit=100&order_by=event_log_id")["event_logs"]
    return [row["event"] for row in rows if row["owner"] == owner]


def test_a_viewer_sees_a_send_that_waits_for_credit_which_then_goes_on(look, browser, site):
    """In Airflow's navigation, without buttons; once there is credit, the triggerer resumes it in the same try."""
    page = look("vic", "/")
    page.get_by_role("link", name="SMS").click()
    inside = frame(page)
    for name, state in ((HOSTILE, "complete"), ("overdue accounts", "waiting for credit")):
        browser.expect(row(inside, name).locator(".state")).to_have_text(state)
    # A link leads back into Airflow, and not to a page in a page.
    row(inside, "reminders").locator("td").get_by_role("link", name="reminders", exact=True).click()
    page.wait_for_url(re.compile(r"/dags/reminders/?$"))
    browser.expect(page.locator("iframe")).to_have_count(0)
    page.goto(site.airflow.url + "/plugin/sms")
    opened(page, "overdue accounts")
    browser.expect(inside.locator(".reasons")).to_contain_text("waits until the balance is 300.00")
    assert inside.locator("button[data-action]").count() == 0
    (waiting,) = site.airflow.instances("overdue", RUN)
    site.services["sms_low"].set_balance(300)
    site.await_state("overdue")
    browser.expect(inside.locator("header .state")).to_have_text("complete")
    (ended,) = site.airflow.instances("overdue", RUN)
    assert (waiting["state"], ended["state"], ended["try_number"]) == ("deferred", "success", waiting["try_number"])
    assert len({message.destination for message in site.services["sms_low"].accepted}) == 300
    assert len(site.services["sms_low"].accepted) == 300


def test_a_send_is_followed_paused_resumed_and_complete(look, browser, site):
    """The page goes on by itself; a pause holds the send and is recorded under the user's name; all are texted once."""
    service = site.services["sms_default"]
    # So that it is still being sent when the slowest machine comes to look at it.
    service.set_faults([{"kind": "delay", "seconds": 3, "persistent": True}])
    site.airflow.trigger("spring", RUN)
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
    assert [event for event in audited(site, "ed") if event != "sms.resolve"] == ["sms.pause", "sms.resume"]


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
    assert audited(site, "ed").count("sms.resolve") == 2
    site.airflow.clear("reminders", RUN)
    site.await_state("reminders", "success")
    browser.expect(inside.locator("h1")).to_have_text("reminders")
    # The service had taken both, whatever the person said of the second one.
    assert len(site.services["sms_lossy"].accepted) == 250 + 50


def test_the_tab_of_a_task_shows_its_campaign_whose_name_is_not_executed(look, browser):
    """Beside the task's log stands what it sent; a campaign's name is the user's, and no script."""
    page = look("vic", f"/dags/hostile/runs/{RUN}/tasks/{TASK}")
    page.locator(f'a[href*="/tasks/{TASK}/plugin/"]').click()  # the navigation has a link of that name, too
    inside = frame(page)
    browser.expect(inside.locator("h1")).to_have_text(HOSTILE)
    browser.expect(inside.locator("#attempts table")).to_be_visible()
    assert inside.locator("img, script:not([src])").count() == 0
    assert "pwned" not in page.evaluate("[document.title, frames[0].document.title].join()").replace(HOSTILE, "")


def test_who_is_not_signed_in_sees_nothing(site, browser):
    """The page says so, and shows nothing of any campaign."""
    with browser.page(site.airflow.url + "/sms/", expected=(r"401",)) as page:
        browser.expect(page.get_by_role("alert")).to_have_text("Not authenticated")
        assert "overdue" not in page.content()
