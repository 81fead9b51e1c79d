from __future__ import annotations

import html
import re
from urllib.parse import quote

from sqlalchemy import update
from support.plugins import Person
from support.told import tell

from airflow_provider_sms.ledger import schema
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.campaigns import pause
from airflow_provider_sms.monitoring import campaigns
from airflow_provider_sms.plugins.authorization import Access

HOSTILE = '"><script>document.title="pwned"</script><img src=x onerror=alert(1)>{{ 7 * 7 }}'


def text(answer):
    """What a reader sees of a page."""
    assert answer.status_code == 200, answer.text
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))


def test_a_campaign_is_in_the_list_with_links_into_airflow(vic, store):
    """Name, state, progress, counts, cost, rate, DAG and run."""
    said = {"total": 200, "done": 150, "invalid": 3, "not_sent": 0, "rate": 40.0}
    tell(store, "spring/sale", state="sending", claims=[(90, "accepted"), (10, "unknown")], note=said, run_id="a b/c+d")
    answer = vic.get("/")
    row = text(answer)
    for part in ("spring/sale", "sending", "75.0 %", "90", "at least 135.00", "a b/c+d"):
        assert part in row
    assert 'href="/dags/d/runs/a%20b%2Fc%2Bd"' in answer.text
    assert 'href="/sms/campaigns/1"' in answer.text


def test_the_list_is_filtered_by_name_and_state_and_has_pages(vic, store):
    """The filter stays in the form and in the links to other pages, of which the server is sent no name."""
    for number in range(60):
        tell(store, f"c{number} & more", state="failed" if number % 2 else "ended")
    name = {"x-sms-name": "%26%20more"}
    answer = vic.get("/?state=needs+attention", **name)
    assert "c59" in answer.text
    assert "c58 " not in answer.text
    assert 'value="&amp; more"' in answer.text
    (older,) = re.findall(r'rel="next" href="/sms(/[^"]+)"', answer.text)
    address, _, fragment = html.unescape(older).partition("#")
    assert address.startswith("/?state=needs%20attention&before=")
    assert fragment == "name=%26%20more"
    rest = vic.get(address, **name)
    assert 'href="/sms/?state=needs%20attention#name=%26%20more">Newest' in rest.text
    assert "Newest" in text(rest)
    assert "Older" not in text(rest)
    assert len(re.findall(r"since <time", answer.text + rest.text)) == 30
    assert "There are no older campaigns" in text(vic.get("/?before=1"))
    assert "c59" in vic.get("/?before=x").text


def test_a_page_that_stops_before_a_visible_campaign_says_so(vic, store, monkeypatch):
    """Without the time at which a hidden one was created; the link leads on to older campaigns."""
    for name in ("shown", "hidden"):
        tell(store, name, dag_id=name)
    for name in ("EXAMINED", "_FIRST_WINDOW", "_ENDS"):
        monkeypatch.setattr(campaigns, name, 1)
    monkeypatch.setattr(Access, "may_see", lambda self, dag_id: dag_id != "hidden")
    answer = vic.get("/")
    assert "You may see none of the campaigns that this page looked at" in text(answer)
    assert ("<time" in answer.text, "before=2" in answer.text) == (False, True)
    assert "None of the campaigns since" in text(vic.get("/?before=2", **{"x-sms-name": "none"}))


def test_a_name_in_an_address_is_not_searched_for(vic, store):
    """Addresses are logged: the form has no input that its browser would put there, and the list takes none."""
    tell(store, "Ann Example")
    answer = vic.get("/?name=nobody")
    assert "Ann Example" in answer.text
    assert 'name="name"' not in answer.text
    assert "No campaign has this name" in text(vic.get("/", **{"x-sms-name": "nobody"}))
    assert "Ann Example" in text(vic.get("/", **{"x-sms-name": "ann%20ex%00"}))


def test_a_missing_ledger_is_reported_in_words(vic, ledger_path):
    """A reader learns that nothing was sent yet, and no file is created."""
    answer = vic.get("/")
    assert answer.status_code == 409
    assert "There is no ledger that this page can read. The first task that sends creates it" in answer.text
    assert not ledger_path.exists()


def test_a_campaigns_page_shows_all_that_happened(vic, store):
    """Outcome, cost and attempts."""
    figures = {"rows": 105, "suppressed": 3, "duplicate": 0}
    note = {"total": 100, "done": 97, "invalid": 5, "not_sent": 3, "figures": figures}
    tell(store, claims=[(90, "accepted"), (7, "unknown")], note=note)
    seen = text(vic.get("/campaigns/1"))
    for part in (
        "needs attention",
        "7 messages have no outcome yet. Find out below whether they were sent, and record it.",
        "at least 135.00, and nothing is known of 1 request",
        "accepted 90",
        "t r 1",
        "suppressed 3",
    ):
        assert part in seen, part


def test_a_send_to_groups_is_not_called_a_person(site, store):
    """Only the service knows how many people are in a group."""
    (request,) = tell(store, claims=[(1, "unknown")], state="failed")
    with store.write(1) as connection:
        connection.execute(update(schema.request).values(kind="group"))
    ed = Person(site, "ed")
    answer = ed.get("/campaigns/1").text
    assert "The groups are texted by the next attempt, however many people are in them" in answer
    assert "1 person is texted" not in answer
    done = ed.post("/campaigns/1/resolve", {"requests": [request], "outcome": "accepted", "people": 1})
    assert done.json()["message"] == "Recorded as sent: 1 request to groups."


def test_the_balance_speaks_beside_the_buttons(site, store):
    """Its verdict, the undecided one as well, and its words, also in the question before a decision against them."""
    ids = tell(store, claims=[(3, "unknown")] * 4, state="failed")
    for each, verdict in zip(ids, ("charged", "not_charged", "undecided"), strict=False):
        note_evidence(store, "spring", {each: KeptEvidence(verdict, f"Sum of request {each}.", 1.0)})
    page = Person(site, "ed").get("/campaigns/1")
    for each, verdict in zip(ids, ("charged", "not charged", "undecided"), strict=False):
        assert f"The balance: {verdict}. Sum of request {each}." in text(page)
    assert text(page).count("The balance:") == 3
    assert "What the account's balance says stands with each request" in text(page)
    assert page.text.count("people get the text twice. The balance says that it did.") == 1
    assert page.text.count("But the balance says that it was not sent.") == 1
    # The questions about all of them say it, too.
    assert page.text.count("people get the text twice. The balance says that 1 request was sent.") == 1
    assert page.text.count("by this campaign. But the balance says that 1 request was not sent.") == 1
    viewed = Person(site, "vic").get("/campaigns/1").text
    assert ("Sum of request" in viewed, "<button data-action" in viewed) == (True, False)


def test_without_evidence_a_page_sends_to_the_service(vic, store):
    """Nor does a balance that decides nothing come first."""
    (request,) = tell(store, claims=[(3, "unknown")], state="failed")
    for seen in ("", "The balance: undecided. No balance is known before it."):
        page = text(vic.get("/campaigns/1"))
        assert ("Ask the service about each request" in page, "balance says" in page) == (True, False)
        assert seen in page
        note_evidence(store, "spring", {request: KeptEvidence("undecided", "No balance is known before it.", 1.0)})


def test_hostile_words_of_evidence_are_shown_and_not_executed(site, store):
    """They are made from amounts, and yet they are a text that comes out of the ledger."""
    (lost,) = tell(store, claims=[(3, "unknown")], state="failed")
    note_evidence(store, "spring", {lost: KeptEvidence(HOSTILE, HOSTILE, 1.0)})
    page = Person(site, "ed").get("/campaigns/1")
    assert ("<script>document" in page.text, "<img" in page.text, text(page).count(HOSTILE)) == (False, False, 2)


def test_an_unfinished_campaign_is_refreshed_and_one_that_is_over_is_not(vic, store):
    """A page that was left open fetches only what may change."""
    tell(store, "a", state="sending")
    tell(store, "b")
    tell(store, "c", state="sending")
    pause(store, "c", "ann")
    tell(store, "d", state="failed")
    pages = [vic.get(f"/campaigns/{number}").text for number in (1, 2, 3, 4)]
    assert [re.findall(r'data-live="(\d+)"', page) for page in pages] == [["5"], [], ["5"], ["30"]]


def test_the_tab_of_a_task_opens_its_campaign(vic, store):
    """However Airflow encoded a plus sign; several campaigns are named, and none is said to be none."""
    tell(store, "a", run_id="manual__2026-11-22T00:00:00+00:00")
    tell(store, "b", run_id="r", map_index=0)
    tell(store, "c", run_id="r", map_index=1)
    opened = vic.get("/task?dag_id=d&run_id=manual__2026-11-22T00:00:00+00:00&task_id=t&map_index=-1")
    assert (opened.status_code, opened.headers["location"]) == (307, "/sms/campaigns/1")
    assert vic.get("/task?dag_id=d&run_id=r&task_id=t&map_index=1").headers["location"].endswith("/campaigns/3")
    both = text(vic.get("/task?dag_id=d&run_id=r&task_id=t&map_index={MAP_INDEX}"))
    assert "Campaigns of this task" in both
    assert "has texted nobody" in text(vic.get("/task?dag_id=d&run_id=r&task_id=other"))


def test_hostile_words_are_shown_and_not_executed(vic, store):
    """Names of campaigns, tasks, runs and people are shown as they are."""
    tell(store, HOSTILE, claims=[(1, "accepted")], run_id=HOSTILE, task_id=HOSTILE)
    pause(store, HOSTILE, HOSTILE)
    for path in ("/", "/campaigns/1", f"/?state={HOSTILE}"):
        answer = vic.get(path, **{"x-sms-name": quote(HOSTILE)})
        assert "<script>document" not in answer.text
        assert "<img" not in answer.text
        assert "49" not in re.sub(r"\d{3,}|\d+(:\d+)+|-\d+", "", answer.text)
    assert HOSTILE in text(vic.get("/campaigns/1"))
