"""Every example and some DAGs of the tests have run once: their ends, the pages in a browser, and nobody is named."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import ExitStack, closing, suppress

import pyarrow.parquet as pq
import pytest
from support.campaign_site import HOSTILE, RUN, TASK
from support.faults.rest import RUN_SECONDS, until
from support.whole import BOUGHT, NEEDED, ON_CALL, SENT, TOKEN, run_all

pytestmark = pytest.mark.slow
NUMBER = re.compile(r"(?<![\d.])(?:27|0)?(\d{9})(?!\d)")
"""A number of somebody's, however it is written; no part of a fraction or of a longer one."""

OWN_CODE = ("dag_code", "serialized_dag")
"""Tables with the code of DAGs, which Airflow stores and shows: rows that are written in it are there."""
OWN_DATA = {
    ("example_sms_from_dataframe", "overdue_invoices", "return_value"),  # rows that a task of the user's returns
}
"""XComs that hold people, by DAG, task and key."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give what was seen of a real Airflow that has run everything once."""
    with run_all(tmp_path_factory.mktemp("whole")) as whole:
        yield whole


def test_every_example_ends_as_it_says(whole):
    """All succeed, but for the one that shows what happens when a task fails."""
    assert {dag_id for dag_id, state in whole.states.items() if state != "success"} == {
        "example_sms_alert",
        "example_sms_approval changed",
    }
    assert len(whole.taken) > 1500


def test_a_plan_is_sent_once_it_is_approved_and_no_other_plan_is(whole):
    """Nothing is sent before a person answers, or once refused or changed; a plan below the bound needs no answer."""
    assert whole.unapproved == {RUN: 0, "refused": 0, "changed": 0}
    assert {run: sent > 1000 for run, sent in whole.approved.items() if sent} == {RUN: True, "cheap": True}


@pytest.mark.parametrize(
    ("says", "text"),
    [
        ("failed", rf"Airflow: example_sms_alert\.count_invoices failed, try .*, run {RUN}"),
        ("missed", r"Airflow: DAG waits missed its deadline of .*"),
    ],
)
def test_who_is_on_call_is_texted(whole, says, text):
    """The notifier in a task's process and in the triggerer, with numbers from a variable in Airflow's database."""
    sent = ((each.destination, each.content) for each in whole.taken if "Airflow" in each.content)
    alerts = {number: alert for number, alert in sent if says in alert}
    assert set(alerts) == set(ON_CALL)
    assert [alert for alert in alerts.values() if not re.fullmatch(text, alert, re.DOTALL)] == []


def test_a_sensor_outlives_its_triggerer(whole):
    """Deferred in a triggerer that is killed, it is looked after by another until there is credit: the run waits."""
    assert whole.states["waits"] == "success"


def test_assets_start_campaigns_and_tell_what_was_sent(whole):
    """An update triggers a DAG; who is scheduled by a send's own event knows its counts, and the credit left."""
    assert whole.states["example_sms_on_update"] == "success"
    assert whole.run_type in ("asset_triggered", "dataset_triggered")
    assert (whole.told["rows"], whole.told["accepted"], whole.told["unknown"]) == (30, 30, 0)
    # Others send at the same time.
    assert NEEDED < whole.told["remaining_balance"] <= BOUGHT - 30


def test_a_mapped_task_has_its_name_and_its_report(whole):
    """By the template of the user's; the report has a row for each person, at the path that the task was given."""
    assert (whole.label, pq.read_table(whole.report).num_rows) == ("people.parquet", 30)


def test_metrics_come_from_workers_and_from_the_triggerer(whole):
    """By Airflow's own exporter, with their tags; the balance is there while a sensor is deferred."""
    exported = b"".join(whole.exported)
    names = [f"airflow.sms.{name}" for name in ("accepted", "invalid", "request_duration", "balance")]
    assert [word for word in (*names, "conn_id", "sms_default", "waits") if word.encode() not in exported] == []


@pytest.fixture
def site(whole):
    """The Airflow, with campaigns that ended in different ways, and one that nobody has sent yet."""
    return whole.site


@pytest.fixture
def look(whole, browser):
    """Open a page of Airflow as somebody, who has signed in."""
    with ExitStack() as stack:
        yield lambda name, *path: stack.enter_context(whole.site.page(browser, name, *path))


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
    page.get_by_role("link", name="SMS", exact=True).click()
    inside = frame(page)
    for name, state in ((HOSTILE, "complete"), ("overdue accounts", "waiting for credit")):
        browser.expect(row(inside, name).locator(".state")).to_have_text(state)
    # A link leads back into Airflow, and not to a page in a page.
    row(inside, "appointments").locator("td").get_by_role("link", name="reminders", exact=True).click()
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
    service = site.services["sms_spring"]
    # So that it is still being sent when the slowest machine comes to look at it.
    service.set_faults([{"kind": "delay", "seconds": 3, "persistent": True}])
    site.airflow.trigger("spring", RUN)
    until(lambda: len(service.accepted) > 20, seconds=RUN_SECONDS, what="spring is sent")
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
    held = len(service.accepted)
    inside.get_by_role("button", name="Resume").click()
    inside.get_by_role("button", name="Yes").click()
    browser.expect(inside.locator("header .state")).to_have_text("sending")
    until(lambda: len(service.accepted) > held + 20, seconds=RUN_SECONDS, what="it goes on")
    service.set_faults([])
    site.await_state("spring")
    texted = [message.destination for message in service.accepted]
    assert (len(texted), len(set(texted))) == (SENT, SENT)
    browser.expect(inside.locator("header .state")).to_have_text("complete")
    browser.expect(accepted).to_have_text("600")
    assert [event for event in audited(site, "ed") if event != "sms.resolve"] == ["sms.pause", "sms.resume"]


def test_unknown_requests_are_said_on_the_page_and_the_task_goes_on(look, browser, site):
    """What was sent is not sent again, what was not is, and nobody is texted twice by the answers of a person."""
    page = look("ed")
    browser.expect(row(frame(page), "appointments").locator(".state")).to_have_text("needs attention")
    inside = opened(page, "appointments")
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
    browser.expect(inside.locator("h1")).to_have_text("appointments")
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


class People:
    """Those who were texted: what may stand nowhere, but for texts that are a group's template, or a campaign's name.

    :param taken: the accepted messages.
    """

    def __init__(self, taken):
        theirs = [message for message in taken if message.kind == "bulk" and message.content != HOSTILE]
        self._numbers = {message.destination[-9:] for message in theirs}
        self._texts = {message.content for message in theirs}
        self.count = len(self._numbers)

    def stand_in(self, text):
        """Whether a number of theirs, a text that was made for one of them, or the token is there; not which."""
        numbers = not self._numbers.isdisjoint(NUMBER.findall(text))
        return TOKEN in text or numbers or any(each in text for each in self._texts)


@pytest.fixture(scope="module")
def people(whole):
    return People(whole.taken)


def test_no_log_holds_a_number_a_text_or_the_token(whole, people):
    """Logs of tasks, triggers, the scheduler and the API server name nobody."""
    logs = [path for path in (*whole.home.glob("*.out"), *(whole.home / "logs").rglob("*.log")) if path.is_file()]
    holding = [path.name for path in logs if people.stand_in(path.read_text(errors="replace"))]
    assert (len(logs) > len(whole.states), people.count > 1500) == (True, True)
    assert holding == []


def test_airflows_database_holds_them_only_where_it_is_documented(whole, people):
    """Rendered fields, triggers, task state, events: each table and column, but for those that are said to do so."""
    holding, read = [], 0
    with closing(sqlite3.connect(whole.home / "airflow.db")) as database:
        database.row_factory = sqlite3.Row
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(tables) - set(OWN_CODE)):
            for row in database.execute(f'SELECT * FROM "{table}"'):
                if documented(table, row):
                    continue
                read += 1
                values = [bytes(each).decode(errors="replace") if isinstance(each, bytes) else each for each in row]
                if people.stand_in(json.dumps(values, default=str, ensure_ascii=False)):
                    holding.append((table, row["key"] if table == "xcom" else None))
    assert read > 100
    assert holding == []


def documented(table, row):
    if table == "log":
        # What a user sets a variable to; Airflow 3.3 leaves it out.
        return "variable" in row["event"]
    return table == "xcom" and (row["dag_id"], row["task_id"], row["key"]) in OWN_DATA


def test_pages_and_commands_show_nobody(whole, people):
    """Neither the pages of each campaign, nor what commands print, errors included."""
    assert len(whole.shown) >= 15
    assert [name for name, text in whole.shown.items() if people.stand_in(text)] == []
    assert "has no message to this number" in whole.shown["command who of nobody"]
    assert all("<!doctype html>" in text for name, text in whole.shown.items() if name.startswith("/campaigns"))


def test_no_file_of_airflow_holds_the_token(whole):
    """Nowhere, whatever kind of file it is: also not where a row was deleted."""
    holding = []
    for path in whole.home.rglob("*"):
        with suppress(FileNotFoundError):  # the database's journal
            if path.is_file() and not path.is_symlink() and TOKEN.encode() in path.read_bytes():
                holding.append(path.name)
    assert holding == []


def test_a_waiting_trigger_holds_neither_token_nor_number(whole, people):
    """What Airflow stores of a sensor while it is deferred."""
    assert (len(whole.triggers) > 0, [row for row in whole.triggers if people.stand_in(row)]) == (True, [])


def test_metrics_name_nobody(whole, people):
    """What leaves Airflow for those who watch it."""
    bodies = [body.decode(errors="replace") for body in whole.exported]
    assert (len(bodies) > 0, [body for body in bodies if people.stand_in(body)]) == (True, [])
