from __future__ import annotations

import html
import re

from sqlalchemy import update
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
    for part in ("spring/sale", "sending", "75.0", "90", "at least 135.00", "a b/c+d"):
        assert part in row
    assert 'href="/dags/d/runs/a%20b%2Fc%2Bd"' in answer.text
    assert 'href="/sms/campaigns/1"' in answer.text


def test_the_list_has_pages(vic, store):
    """Each campaign is on one; what is no id of a page leads to the newest."""
    for number in range(30):
        tell(store, f"c{number}.")
    first = vic.get("/")
    (older,) = re.findall(r'rel="next" href="/sms(/[^"]+)"', first.text)
    rest = vic.get(older)
    assert ("c29." in first.text, "c0." in rest.text, "Older" in rest.text) == (True, True, False)
    assert len(re.findall(r"since <time", first.text + rest.text)) == 30
    assert "c29." in vic.get("/?before=x").text


def test_a_page_without_a_visible_campaign_leads_on(vic, store, monkeypatch):
    """Others, which the reader may not see, are newer than those."""
    for name in ("shown", "hidden"):
        tell(store, name, dag_id=name)
    for name in ("WINDOW", "WINDOWS"):
        monkeypatch.setattr(campaigns, name, 1)
    monkeypatch.setattr(Access, "may_see", lambda self, dag_id: dag_id != "hidden")
    answer = vic.get("/")
    assert ("<table" in answer.text, "before=2" in answer.text) == (False, True)
    assert "shown" in vic.get("/?before=2").text


def test_a_campaigns_page_shows_all_that_happened(vic, store):
    """Outcome, cost and attempts."""
    figures = {"rows": 105, "suppressed": 3, "duplicate": 0}
    note = {"total": 100, "done": 97, "invalid": 5, "not_sent": 3, "figures": figures}
    tell(store, claims=[(90, "accepted"), (7, "unknown")], note=note)
    seen = text(vic.get("/campaigns/1"))
    shown = ("needs attention", "1 request without an outcome", "at least 135.00", "Accepted 90", "t d r 1")
    assert [part for part in (*shown, "Suppressed 3") if part not in seen] == []


def test_a_send_to_groups_is_not_called_a_person(site, store):
    """Only the service knows how many people are in a group."""
    (request,) = tell(store, claims=[(1, "unknown")], state="failed")
    with store.write(1) as connection:
        connection.execute(update(schema.request).values(kind="group"))
    ed = site("ed")
    answer = ed.get("/campaigns/1").text
    assert ("texts the groups" in answer, "1 person" in answer) == (True, False)
    done = ed.post("/campaigns/1/resolve", {"request": request, "outcome": "accepted"})
    assert "1 request to groups." in done.json()["message"]


def test_the_balance_speaks_beside_the_buttons(site, store):
    """Its verdict, the undecided one as well, and its words, also in the question before a decision against them."""
    ids = tell(store, claims=[(3, "unknown")] * 4, state="failed")
    for each, verdict in zip(ids, ("charged", "not_charged", "undecided"), strict=False):
        note_evidence(store, "spring", {each: KeptEvidence(verdict, f"Sum of request {each}.", 1.0)})
    page = site("ed").get("/campaigns/1")
    for each, verdict in zip(ids, ("charged", "not charged", "undecided"), strict=False):
        assert f"The balance: {verdict}. Sum of request {each}." in text(page)
    assert text(page).count("The balance:") == 3
    assert page.text.count("people get the text twice. The balance says that it did.") == 1
    assert page.text.count("But the balance says that it was not sent.") == 1
    viewed = site("vic").get("/campaigns/1").text
    assert ("Sum of request" in viewed, "<button data-action" in viewed) == (True, False)


def test_the_tab_of_a_task_opens_its_campaign(vic, store):
    """However Airflow encoded a plus sign; of several campaigns the last one."""
    tell(store, "a", run_id="manual__2026-11-22T00:00:00+00:00")
    tell(store, "b", run_id="r", map_index=0)
    tell(store, "c", run_id="r", map_index=1)
    opened = vic.get("/task?dag_id=d&run_id=manual__2026-11-22T00:00:00+00:00&task_id=t&map_index=-1")
    assert (opened.status_code, opened.headers["location"]) == (307, "/sms/campaigns/1")
    assert vic.get("/task?dag_id=d&run_id=r&task_id=t&map_index=1").headers["location"].endswith("/campaigns/3")
    assert vic.get("/task?dag_id=d&run_id=r&task_id=t&map_index={MAP_INDEX}").headers["location"].endswith("/3")
    none = vic.get("/task?dag_id=d&run_id=r&task_id=other")
    assert (none.status_code, "has texted nobody" in none.text) == (404, True)


def test_hostile_words_are_shown_and_not_executed(vic, site, store):
    """Names of campaigns, tasks, runs and people, and the words of evidence, are shown as they are."""
    (lost,) = tell(store, HOSTILE, claims=[(1, "unknown")], run_id=HOSTILE, task_id=HOSTILE)
    pause(store, HOSTILE, HOSTILE)
    note_evidence(store, HOSTILE, {lost: KeptEvidence(HOSTILE, HOSTILE, 1.0)})
    pages = [vic.get(path) for path in ("/", "/campaigns/1", f"/?before={HOSTILE}")]
    pages.append(site("ed").get("/campaigns/1"))
    for answer in pages:
        assert "<script>document" not in answer.text
        assert "<img" not in answer.text
        assert "49" not in re.sub(r"\d{3,}|\d+(:\d+)+|-\d+", "", answer.text)
    assert HOSTILE in text(pages[1])
    assert f"The balance: {HOSTILE}. {HOSTILE}" in text(pages[3])
