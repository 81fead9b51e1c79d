"""Questions to a person in a real Airflow: who may answer, who hears of them, for how long, and how they are shown."""

from __future__ import annotations

import json
from contextlib import closing
from http import HTTPStatus

import pytest
import requests
from sqlalchemy import text
from support.campaign_site import RUN, TASK, running_site, write_people
from support.faults.rest import RUN_SECONDS, until
from support.versions import ASKS_WITHOUT_TRIGGER

HOSTILE = (
    "![x](http://evil.example/x.png) [Sign in again](http://evil.example/) http://evil.example www.evil.example "
    "a@evil.example <b>`| x |` \\| y"
)
WORDS = HOSTILE + "\r\n\n| **fine** | ![x](http://evil.example/y.png) |\u2028# Sign in again\u202e"
PEOPLE, ON_CALL = 20, "27860000001"
EXPECTED = (
    # Airflow's own page asks who is there before anybody has signed in.
    r"401.*/ui/config",
    r"401 \(Unauthorized\)",
)


class Expression(str):
    """Python that stands in a DAG file as it is."""

    __slots__ = ()
    __repr__ = str.__str__


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """An Airflow with a DAG for each kind of question; ann is its admin, and ed may answer, too."""
    folder = tmp_path_factory.mktemp("questions")
    notifier = Expression(f"SmsNotifier(to={ON_CALL!r}, message='{{{{ dag.dag_id }}}} waits for a person')")
    questions = {
        "named": {"approve": True, "approvers": ["ed"]},
        "eyes": {"approve": True, "four_eyes": True},
        "late": {"approve": True, "approval_timeout": 3},
        "told": {"approve": True, "approval_notifiers": notifier},
        "hostile": {"on_unknown": "ask", "campaign": HOSTILE, "sms_conn_id": "sms_faulty", "approvers": ["ed"]},
        "plan": {"approve": True, "campaign": HOSTILE + ".", "message": WORDS.replace("{", "")},
    }
    dags = {
        dag_id: {
            "source": write_people(folder / f"{dag_id}.parquet", PEOPLE, first=27_820_000_000 + 1000 * number),
            "message": f"Hi {{first_name}}, this is {dag_id}.",
            **options,
        }
        for number, (dag_id, options) in enumerate(questions.items())
    }
    with running_site(folder, dags, {"sms_default": {"balance": 5000}, "sms_faulty": {"balance": 5000}}) as site:
        body = json.dumps({"errorCode": "Broken", "errorMessage": WORDS})
        site.services["sms_faulty"].set_faults([{"kind": "status", "status": 500, "body": body}])
        for dag_id in dags:
            site.send(dag_id)
        yield site


def texted(site, dag_id):
    """Return how many people a DAG has texted."""
    return sum(
        dag_id in message.content for message in site.services["sms_default"].accepted if message.destination != ON_CALL
    )


def answer(site, name, dag_id, option):
    """Answer a question as a user, and return the status of Airflow's response."""
    with closing(site.user(name)) as api:
        path = f"/dags/{dag_id}/dagRuns/{RUN}/taskInstances/{TASK}/-1/hitlDetails"
        try:
            api.call("PATCH", path, chosen_options=[option], params_input={})
        except requests.HTTPError as error:
            return error.response.status_code
    return HTTPStatus.OK


def question(site, dag_id):
    return site.airflow.call("GET", f"/dags/{dag_id}/dagRuns/{RUN}/taskInstances/{TASK}/-1/hitlDetails")


def decided(site, dag_id):
    """Return who decided about the plan of a DAG's campaign, and how, as the ledger has it."""
    query = text(
        "SELECT decided_by, decision FROM sms_approval JOIN sms_campaign ON sms_campaign.id = campaign_id "
        "WHERE name LIKE :name AND decision IS NOT NULL"
    )
    with site.ledger.connect() as connection:
        return [tuple(row) for row in connection.execute(query, {"name": f"{dag_id}/%"})]


def test_only_an_approver_may_answer(site):
    """Airflow refuses the admin, who triggered the run and is no approver; the approver's yes sends."""
    site.await_question("named")
    assert [each["id"] for each in question(site, "named")["assigned_users"]] == ["ed"]
    assert (answer(site, "ann", "named", "Send"), texted(site, "named")) == (HTTPStatus.FORBIDDEN, 0)
    assert answer(site, "ed", "named", "Send") == HTTPStatus.OK
    site.await_state("named", "success")
    assert (texted(site, "named"), decided(site, "named")) == (PEOPLE, [("ed", "send")])


def test_the_person_who_triggered_the_run_does_not_send(site):
    """Airflow takes their yes; the task does not, and asks again until somebody else decides."""
    site.await_question("eyes")
    assert answer(site, "ann", "eyes", "Send") == HTTPStatus.OK
    until(lambda: not question(site, "eyes")["response_received"], seconds=RUN_SECONDS, what="it is asked again")
    site.await_question("eyes", times=2)
    assert (texted(site, "eyes"), decided(site, "eyes")) == (0, [])
    assert answer(site, "ed", "eyes", "Send") == HTTPStatus.OK
    site.await_state("eyes", "success")
    assert (texted(site, "eyes"), decided(site, "eyes")) == (PEOPLE, [("ed", "send")])


def test_a_question_that_nobody_answers_in_time_ends_the_task(site):
    """It fails without a retry, though the DAG allows one, and nobody is texted."""
    site.await_state("late", "failed")
    (instance,) = site.airflow.instances("late", RUN)
    # Airflow itself may retry a task whose time is over before the end of the process that asked is recorded.
    by_airflow = site.airflow.call("GET", "/eventLogs?dag_id=late&event=state%20mismatch")["total_entries"]
    tries = instance["try_number"]
    assert 1 <= tries <= 1 + by_airflow
    assert (texted(site, "late"), decided(site, "late")) == (0, [])
    log = site.airflow.call("GET", f"/dags/late/dagRuns/{RUN}/taskInstances/{TASK}/logs/{tries}")
    assert "within approval_timeout, so nothing was sent" in json.dumps(log)


def test_somebody_hears_that_a_question_waits(site):
    """Airflow's notifiers tell them, once, while nobody on the list is texted."""
    site.await_question("told")
    alerts = [each.content for each in site.services["sms_default"].accepted if str(each.destination) == ON_CALL]
    assert (alerts, texted(site, "told")) == (["told waits for a person"], 0)
    assert answer(site, "ed", "told", "Stop") == HTTPStatus.OK
    site.await_state("told", "failed")
    assert (texted(site, "told"), decided(site, "told")) == (0, [("ed", "stop")])


@pytest.mark.parametrize(("dag_id", "cells"), [("hostile", 5), ("plan", 2)])
@pytest.mark.skipif(not ASKS_WITHOUT_TRIGGER, reason="older pages of Airflow are laid out in another way")
def test_a_browser_shows_texts_of_others_as_they_are(site, browser, dag_id, cells):
    """No image is fetched from another host, no text becomes a link, and each row keeps its cells.

    The page of the browser fails by itself if anything is requested of another host.
    """
    site.await_question(dag_id)
    with browser.page(site.url + "/", expected=EXPECTED) as page:
        site.sign_in(page, "ed")
        page.goto(f"{site.url}/dags/{dag_id}/runs/{RUN}/tasks/{TASK}/required_actions")
        table = page.locator("main table, table").first
        browser.expect(table.locator("code").first).to_be_visible()
        links = page.eval_on_selector_all("a", "found => found.map(a => a.href)")
        assert [link for link in links if "evil" in link or link.startswith("mailto:")] == []
        assert page.locator("img[src*='evil']").count() == 0
        rows = table.locator("tbody tr").evaluate_all("rows => rows.map(row => row.cells.length)")
        assert (set(rows), page.locator("td strong, td h1").count()) == ({cells}, 0)
        shown = page.locator("code").filter(has_text="Sign in again").first.inner_text()
        assert ("![x](http://evil.example/x.png)" in shown, "\u202e" in table.inner_text()) == (True, False)
