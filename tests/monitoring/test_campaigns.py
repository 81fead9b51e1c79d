from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import delete, insert, literal, select, update
from support.told import tell

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.pauses import pause
from airflow_provider_sms.ledger.schema import claimant, message, progress, request
from airflow_provider_sms.monitoring.campaigns import campaigns_of_task, dag_ids, find_campaign, list_campaigns
from airflow_provider_sms.monitoring.timeline import unknown_requests


def listed(ledger, *, hidden=(), limit=10, offset=0, **which):
    return list_campaigns(ledger, hidden=hidden, limit=limit, offset=offset, **which)


def names(page):
    return [campaign.name for campaign in page.campaigns]


def test_the_counts_are_those_of_the_ledger(store, ledger):
    """Accepted, unknown, under way, parts and cost are told by requests, and rows by what the task said."""
    said = {"total": 70, "done": 60, "invalid": 3, "not_sent": 10, "rate": 12.5, "figures": {"rows": 73}}
    claims = [(20, "accepted"), (30, "accepted"), (7, "unknown"), (2, "claimed"), (9, "not_sent")]
    tell(store, state="sending", claims=claims, note=said)
    (campaign,) = listed(ledger).campaigns
    assert campaign.counts == (50, 7, 2, 50, Decimal("75.0"), 0)
    assert (campaign.total, campaign.done, campaign.invalid, campaign.not_sent, campaign.rate) == (70, 60, 3, 10, 12.5)
    assert (campaign.state, campaign.latest.dag_id, campaign.latest.run_id) == ("sending", "d", "r")


def test_what_the_service_left_out_of_a_request_is_counted(store, ledger):
    """It was not accepted, and is held all the same: no try sends it."""
    (_, partial) = tell(store, claims=[(20, "accepted"), (5, "accepted")])
    with store.write(1) as connection:
        connection.execute(update(request).where(request.c.id == partial).values(messages=3))
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.accepted, campaign.counts.left_out) == (23, 2)


def test_a_claim_past_its_deadline_is_unknown(store, ledger):
    """Nobody need have written down that a process has died."""
    tell(store, claims=[(5, "claimed")], clock=lambda: 1_000.0)
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.unknown, campaign.counts.under_way, campaign.state) == (5, 0, "needs attention")


def test_what_was_sent_anew_is_not_unknown_any_more(store, ledger):
    """Unknown are the messages that unknown requests hold, not those that they once held."""
    (request,) = tell(store, claims=[(5, "unknown")])
    resolve(store, request, "not_sent", "ann")
    tell(store, try_number=2, claims=[(5, "accepted")])
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.accepted, campaign.counts.unknown, campaign.state) == (5, 0, "complete")


def test_campaigns_stand_newest_first_in_pages(store, ledger):
    """Every campaign is on one page, and on one only."""
    for number in range(7):
        tell(store, f"c{number}")
    pages = [listed(ledger, limit=3, offset=offset) for offset in (0, 3, 6)]
    assert [name for page in pages for name in names(page)] == [f"c{number}" for number in range(6, -1, -1)]
    assert {page.found for page in pages} == {7}


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("SPRING", ["Spring 50%"]),
        ("50%", ["Spring 50%"]),
        ("_", ["a_b"]),
        ("%", ["Spring 50%"]),
        ("/", ["x/y"]),
        ("zz", []),
    ],
)
def test_a_name_is_found_by_a_part_of_it(store, ledger, part, found):
    """What a person types is looked for as it stands, in any case; nothing in it is a pattern."""
    for name in ("Spring 50%", "a_b", "x/y", "plain"):
        tell(store, name)
    assert names(listed(ledger, name=part)) == found


def test_campaigns_are_found_by_state_and_counted_by_it(store, ledger):
    """The states of all campaigns of the name are counted, whichever of them is asked for."""
    tell(store, "a", state="failed")
    tell(store, "b", state="ended")
    tell(store, "c", state="waiting for credit")
    tell(store, "d", state="sending")
    pause(store, "d", "ann")
    page = listed(ledger, state="needs attention")
    assert (names(page), page.found) == (["a"], 1)
    assert page.by_state == {"needs attention": 1, "complete": 1, "waiting for credit": 1, "paused": 1}
    assert names(listed(ledger, state="paused")) == ["d"]


def test_a_campaign_of_a_hidden_dag_is_not_there(store, ledger):
    """Whoever may not see one of the DAGs that sent a campaign sees nothing of it, and it is not counted."""
    tell(store, "mine", dag_id="mine")
    tell(store, "both", dag_id="mine")
    tell(store, "both", dag_id="theirs")
    page = listed(ledger, hidden={"theirs"})
    assert (names(page), page.found, dict(page.by_state)) == (["mine"], 1, {"complete": 1})
    assert dag_ids(ledger) == ["mine", "theirs"]


def test_one_campaign_is_found_with_every_dag_that_ever_sent_it(store, ledger):
    """Rights are asked for all of them, also where another run counts by now."""
    tell(store, "other")
    tell(store, dag_id="first", run_id="a")
    tell(store, dag_id="second", state="failed", claims=[(3, "accepted")])
    number = listed(ledger).campaigns[0].id
    campaign, dags = find_campaign(ledger, number)
    assert (campaign.name, campaign.state, campaign.counts.accepted) == ("spring", "needs attention", 3)
    assert dags == {"first", "second"}
    assert find_campaign(ledger, 999) is None


def test_several_tasks_of_a_campaign_are_counted_together(store, ledger):
    """Mapped copies share a campaign; one that has not counted its rows yet leaves the sum unknown."""
    for index in range(3):
        tell(store, map_index=index, note={"total": 10, "done": 5, "rate": 2.0})
    (campaign,) = listed(ledger).campaigns
    assert (campaign.total, campaign.done, campaign.rate) == (30, 15, 2.0)
    tell(store, map_index=3, state="checking")
    (campaign,) = listed(ledger).campaigns
    assert (campaign.total, campaign.done) == (None, None)


def test_what_a_later_try_or_run_said_stands_for_the_earlier_ones(store, ledger):
    """Of each task the last run counts, and in it the last try of each mapped copy; another campaign is none."""
    tell(store, state="failed", run_id="r1", map_index=7)
    for index in range(2):
        tell(store, state="failed", run_id="r2", map_index=index)
    tell(store, try_number=2, run_id="r2", map_index=0)
    tell(store, "other", try_number=3, state="failed", run_id="r2", map_index=0)
    _, campaign = listed(ledger).campaigns
    told = [(each.note.run_id, each.note.map_index, each.try_number, each.note.state) for each in campaign.tries]
    assert told == [("r2", 0, 2, "ended"), ("r2", 1, 1, "failed")]
    assert find_campaign(ledger, campaign.id)[0].tries == campaign.tries


def test_messages_that_a_person_says_were_sent_count_without_a_cost(store, ledger):
    """Nobody knows what they cost, and what the others cost is told."""
    *_, request = tell(store, claims=[(4, "accepted"), (3, "unknown")])
    resolve(store, request, "accepted", "ann")
    (campaign,) = listed(ledger).campaigns
    assert campaign.counts == (7, 0, 0, 4, Decimal("6.0"), 0)


def test_a_task_instance_finds_its_own_campaigns(store, ledger):
    """By DAG, run, task and, where it is mapped, its index."""
    tell(store, "a", run_id="r1", map_index=0)
    tell(store, "b", run_id="r1", map_index=1)
    tell(store, "c", run_id="r2")
    assert [name for _, name in campaigns_of_task(ledger, "d", "r1", "t", None)] == ["b", "a"]
    assert [name for _, name in campaigns_of_task(ledger, "d", "r1", "t", 0)] == ["a"]
    assert [name for _, name in campaigns_of_task(ledger, "d", "r2", "t", -1)] == ["c"]
    assert campaigns_of_task(ledger, "d", "r1", "other", None) == []


def test_a_person_said_it_was_sent_counts_what_is_held(store, ledger):
    """Messages that were taken from an unknown request and sent anew count once, and it needs nobody's attention."""
    (lost,) = tell(store, claims=[(5, "unknown")])
    with store.write(1) as connection:
        connection.execute(update(message).values(request_id=lost + 1))
        connection.execute(
            insert(request).from_select(
                [each.name for each in request.c],
                select(*(_taken_over(each, lost) for each in request.c)).where(request.c.id == lost),
            )
        )
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.accepted, campaign.counts.unknown, campaign.state) == (5, 0, "complete")
    assert unknown_requests(ledger, campaign.id) == []
    with store.write(1) as connection:
        connection.execute(update(request).where(request.c.id == lost).values(state="accepted"))
    (campaign,) = listed(ledger).campaigns
    assert campaign.counts.accepted == 5


def _taken_over(column, lost):
    changed = {"id": lost + 1, "state": "accepted", "messages": 5, "parts": 5, "cost": "7.5", "reason": None}
    return literal(changed[column.name], column.type) if column.name in changed else column


def test_a_campaign_whose_tries_said_nothing_is_there_all_the_same(store, ledger):
    """Notes may fail; what was claimed is in the ledger, and so is who claimed it."""
    tell(store, "quiet", dag_id="theirs", claims=[(3, "accepted"), (2, "unknown")])
    with store.write(1) as connection:
        connection.execute(delete(progress))
    (campaign,) = listed(ledger).campaigns
    assert (campaign.name, campaign.state, campaign.counts.accepted) == ("quiet", "needs attention", 3)
    assert (campaign.latest.dag_id, campaign.total) == ("theirs", None)
    assert listed(ledger, hidden={"theirs"}).campaigns == []
    assert find_campaign(ledger, campaign.id)[1] == {"theirs"}


def test_rights_are_asked_for_who_claimed_not_only_for_who_said_so(store, ledger):
    """A DAG whose try left no note has sent the campaign as well."""
    tell(store, dag_id="mine", claims=[(1, "accepted")])
    tell(store, dag_id="theirs", claims=[(1, "accepted")], first=5)
    with store.write(1) as connection:
        theirs = select(claimant.c.id).where(claimant.c.dag_id == "theirs")
        connection.execute(delete(progress).where(progress.c.claimant_id.in_(theirs)))
    number = listed(ledger).campaigns[0].id
    assert find_campaign(ledger, number)[1] == {"mine", "theirs"}
    assert listed(ledger, hidden={"theirs"}).campaigns == []


def test_two_runs_at_once_are_both_seen(store, ledger):
    """The one that ended first does not hide the one that still sends."""
    tell(store, run_id="r1", state="sending", claims=[(6, "claimed")])
    tell(store, run_id="r2", claims=[(3, "accepted")], first=10)
    (campaign,) = listed(ledger).campaigns
    assert (campaign.state, len(campaign.tries)) == ("sending", 2)


def test_the_rate_is_of_those_who_send_now(store, ledger):
    """Copies that have ended add nothing to it; where none sends, it is the last one's."""
    for index, state in enumerate(("ended", "sending", "sending")):
        tell(store, "a", map_index=index, state=state, note={"rate": 40.0})
        tell(store, "b", map_index=index, note={"rate": 30.0})
    rates = {campaign.name: campaign.rate for campaign in listed(ledger).campaigns}
    assert rates == {"a": 80.0, "b": 30.0}
