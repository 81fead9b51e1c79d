from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import insert, literal, select, update
from support.told import tell

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.pauses import pause
from airflow_provider_sms.ledger.schema import message, request
from airflow_provider_sms.monitoring.campaigns import campaigns_of_task, dag_ids, find_campaign, list_campaigns
from airflow_provider_sms.monitoring.timeline import unknown_requests


def listed(ledger, *, hidden=(), limit=10, offset=0, **which):
    return list_campaigns(ledger, hidden=hidden, limit=limit, offset=offset, **which)


def names(page):
    return [campaign.name for campaign in page.campaigns]


def test_the_counts_are_those_of_the_ledger(store, ledger):
    """Accepted, unknown, under way, parts and cost come from requests, and rows from what the task reported."""
    said = {"total": 70, "done": 60, "invalid": 3, "not_sent": 10, "rate": 12.5, "figures": {"rows": 73}}
    claims = [(20, "accepted"), (30, "accepted"), (7, "unknown"), (2, "claimed"), (9, "not_sent")]
    tell(store, state="sending", claims=claims, note=said)
    (campaign,) = listed(ledger).campaigns
    assert campaign.counts == (50, 7, 2, 50, Decimal("75.0"), 0)
    assert (campaign.total, campaign.done, campaign.invalid, campaign.not_sent, campaign.rate) == (70, 60, 3, 10, 12.5)
    assert (campaign.state, campaign.latest.dag_id, campaign.latest.run_id) == ("sending", "d", "r")


def test_what_the_service_left_out_of_a_request_is_counted(store, ledger):
    """It was not accepted, and is held all the same: no attempt sends it."""
    (_, partial) = tell(store, claims=[(20, "accepted"), (5, "accepted")])
    with store.write(1) as connection:
        connection.execute(update(request).where(request.c.id == partial).values(messages=3))
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.accepted, campaign.counts.left_out) == (23, 2)


def test_a_claim_past_its_deadline_is_unknown(store, ledger):
    """Nothing has to record that a process has died."""
    tell(store, claims=[(5, "claimed")], clock=lambda: 1_000.0)
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.unknown, campaign.counts.under_way, campaign.state) == (5, 0, "needs attention")


def test_messages_that_were_sent_again_are_not_unknown(store, ledger):
    """Unknown are the messages that unknown requests hold, not those that they once held."""
    (request,) = tell(store, claims=[(5, "unknown")])
    resolve(store, request, "not_sent", "ann")
    tell(store, try_number=2, claims=[(5, "accepted")])
    (campaign,) = listed(ledger).campaigns
    assert (campaign.counts.accepted, campaign.counts.unknown, campaign.state) == (5, 0, "complete")


def test_campaigns_are_listed_newest_first_in_pages(store, ledger):
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
    """A part of a name is matched literally, in any case; nothing in it is a pattern."""
    for name in ("Spring 50%", "a_b", "x/y", "plain"):
        tell(store, name)
    assert names(listed(ledger, name=part)) == found


def test_campaigns_are_found_by_state_and_counted_by_it(store, ledger):
    """The states of all campaigns that match the name are counted, whichever state is asked for."""
    tell(store, "a", state="failed")
    tell(store, "b", state="ended")
    tell(store, "c", state="waiting for credit")
    tell(store, "d", state="sending")
    pause(store, "d", "ann")
    page = listed(ledger, state="needs attention")
    assert (names(page), page.found) == (["a"], 1)
    assert page.by_state == {"needs attention": 1, "complete": 1, "waiting for credit": 1, "paused": 1}
    assert names(listed(ledger, state="paused")) == ["d"]


def test_a_campaign_of_a_hidden_dag_is_left_out(store, ledger):
    """A reader who may not see one of its DAGs sees nothing of a campaign, and it is not counted."""
    tell(store, "mine", dag_id="mine")
    tell(store, "both", dag_id="mine")
    tell(store, "both", dag_id="theirs")
    page = listed(ledger, hidden={"theirs"})
    assert (names(page), page.found, dict(page.by_state)) == (["mine"], 1, {"complete": 1})
    assert dag_ids(ledger) == ["mine", "theirs"]


def test_one_campaign_is_found_with_every_dag_that_ever_sent_it(store, ledger):
    """Permissions are needed for all of them, even if another run counts by now."""
    tell(store, "other")
    tell(store, dag_id="first", run_id="a")
    tell(store, dag_id="second", state="failed", claims=[(3, "accepted")])
    number = listed(ledger).campaigns[0].id
    campaign, dags = find_campaign(ledger, number)
    assert (campaign.name, campaign.state, campaign.counts.accepted) == ("spring", "needs attention", 3)
    assert dags == {"first", "second"}
    assert find_campaign(ledger, 999) is None


def test_messages_that_a_person_says_were_sent_count_without_a_cost(store, ledger):
    """Their cost is not known, and the cost of the others is shown."""
    *_, request = tell(store, claims=[(4, "accepted"), (3, "unknown")])
    resolve(store, request, "accepted", "ann")
    (campaign,) = listed(ledger).campaigns
    assert campaign.counts == (7, 0, 0, 4, Decimal("6.0"), 0)


def test_a_task_instance_finds_its_own_campaigns(store, ledger):
    """By DAG, run, task and the index of a mapped copy."""
    tell(store, "a", run_id="r1", map_index=0)
    tell(store, "b", run_id="r1", map_index=1)
    tell(store, "c", run_id="r2")
    assert [name for _, name in campaigns_of_task(ledger, "d", "r1", "t", None)] == ["b", "a"]
    assert [name for _, name in campaigns_of_task(ledger, "d", "r1", "t", 0)] == ["a"]
    assert [name for _, name in campaigns_of_task(ledger, "d", "r2", "t", -1)] == ["c"]
    assert campaigns_of_task(ledger, "d", "r1", "other", None) == []


def test_a_request_that_a_person_accepted_counts_the_messages_it_holds(store, ledger):
    """Messages that were taken over from an unknown request and sent again count once, and need nobody's attention."""
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


def test_two_runs_at_once_are_both_seen(store, ledger):
    """The one that ended first does not hide the one that still sends."""
    tell(store, run_id="r1", state="sending", claims=[(6, "claimed")])
    tell(store, run_id="r2", claims=[(3, "accepted")], first=10)
    (campaign,) = listed(ledger).campaigns
    assert (campaign.state, len(campaign.attempts)) == ("sending", 2)
