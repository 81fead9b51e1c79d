from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import insert, literal, select
from support.sending import claim, close, people
from support.told import tell

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import attempt, campaign
from airflow_provider_sms.ledger.transitions import supersede
from airflow_provider_sms.monitoring.campaigns import (
    WINDOW,
    WINDOWS,
    campaign_of_task,
    dags_of_campaign,
    find_campaign,
    list_campaigns,
    texted_twice,
)


def listed(ledger, *, hidden=(), limit=10, **which):
    return list_campaigns(ledger, may_see=lambda dag_id: dag_id not in hidden, limit=limit, **which)


def names(page):
    return [each.name for each in page.campaigns]


def test_the_counts_are_those_of_the_ledger(store, ledger):
    """Accepted, unknown, under way, parts and cost come from requests, and rows from what the task reported.

    Nothing is known of the cost of messages that a person says were sent.
    """
    said = {"total": 70, "done": 60, "invalid": 3, "not_sent": 10, "rate": 12.5, "figures": {"rows": 73}}
    claims = [(20, "accepted"), (30, "accepted"), (7, "unknown"), (2, "claimed"), (9, "not_sent")]
    ids = tell(store, state="sending", claims=claims, note=said)
    (one,) = listed(ledger).campaigns
    assert one.counts == (50, 7, 2, 50, Decimal("75.0"), 0, 1, 0, 1, 0)
    assert (one.total, one.done, one.invalid, one.not_sent, one.rate) == (70, 60, 3, 10, 12.5)
    assert (one.state, one.latest.dag_id, one.latest.run_id) == ("sending", "d", "r")
    resolve(store, ids[2], "accepted", "ann")
    (one,) = listed(ledger).campaigns
    assert one.counts == (57, 0, 2, 50, Decimal("75.0"), 0, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("again", "unknown", "state"),
    [
        pytest.param([], 5, "needs attention", id="not yet"),
        pytest.param([(3, "accepted")], 2, "needs attention", id="in part"),
        pytest.param([(3, "accepted"), (2, "accepted")], 0, "complete", id="all"),
    ],
)
def test_messages_of_a_superseded_request_are_unknown_until_they_are_sent_again(store, ledger, again, unknown, state):
    """A campaign that waits for the attempt that sends them is not complete."""
    (lost,) = tell(store, claims=[(5, "unknown")])
    with store.write(1) as connection:
        supersede(connection, 1, [lost], store.clock())
    tell(store, try_number=2, claims=again)
    (one,) = listed(ledger).campaigns
    assert (one.counts.unknown, one.counts.again, one.counts.of_unknown_cost) == (unknown, unknown, 1)
    assert (one.counts.accepted, one.state) == (5 - unknown, state)


@pytest.mark.parametrize("reached", [100, 30])
def test_people_freed_by_a_decision_are_left_to_send(store, ledger, reached):
    """They are not sent until a later attempt claims them, as are rows that the first one never reached."""
    note = {"total": 100, "done": reached, "not_sent": 100 - reached}
    (lost,) = tell(store, state="failed", claims=[(5, "unknown")], note=note)
    (one,) = listed(ledger).campaigns
    assert (one.done, one.not_sent) == (reached - 5, 100 - reached)
    resolve(store, lost, NOT_SENT, "ann")
    (one,) = listed(ledger).campaigns
    assert (one.counts.unknown, one.counts.freed, one.state) == (0, 5, "needs attention")
    assert (one.done, one.not_sent) == (reached - 5, 105 - reached)
    tell(store, try_number=2, claims=[(5, "accepted")], note={"total": 100, "done": 100, "not_sent": 0})
    (one,) = listed(ledger).campaigns
    assert (one.counts.freed, one.done, one.not_sent) == (0, 100, 0)


@pytest.fixture
def many(store):
    """Campaigns of the DAG *theirs*, more than a page of the list looks at, between an old one and a new one of *d*."""
    tell(store, "old")
    with store.write(1) as connection:
        named = [{"name": f"c{n}", "created_at": 1000.0 + n} for n in range(1, WINDOW * WINDOWS + 38)]
        connection.execute(insert(campaign), named)
        others = [each for each in attempt.c if each.name not in ("id", "campaign_id", "dag_id")]
        one = select(*others).where(attempt.c.id == 1).subquery()
        copies = select(campaign.c.id.label("campaign_id"), literal("theirs").label("dag_id"), *one.c)
        copies = copies.select_from(campaign.join(one, campaign.c.id > 1))
        connection.execute(insert(attempt).from_select([each.name for each in copies.selected_columns], copies))
    tell(store, "new")


def test_a_page_looks_at_a_bounded_number_of_campaigns(many, ledger):
    """However many the reader may not see; the next page goes on, from where nothing tells which ones there are."""
    page = listed(ledger, hidden=["theirs"])
    assert names(page) == ["new"]
    assert (page.older is not None, page.older % WINDOW) == (True, 0)
    rest = listed(ledger, hidden=["theirs"], before=page.older)
    assert (names(rest), rest.older) == (["old"], None)


@pytest.mark.parametrize("limit", [7, WINDOW - 1, WINDOW * WINDOWS * 2])
def test_pages_that_end_anywhere_leave_out_no_campaign(many, ledger, limit):
    """Each is on one page, newest first, whether a page ends because it is full or because it has looked at so many."""
    pages = [listed(ledger, limit=limit)]
    while pages[-1].older:
        pages.append(listed(ledger, limit=limit, before=pages[-1].older))
    found = [each for page in pages for each in names(page)]
    assert found == ["new", *(f"c{n}" for n in reversed(range(1, WINDOW * WINDOWS + 38))), "old"]


def test_a_task_instance_finds_its_last_campaign(store, ledger):
    """By DAG, run, task and the index of a mapped copy, without campaigns that another, hidden DAG sent as well."""

    def found(*task, hidden=()):
        number = campaign_of_task(ledger, *task, may_see=lambda dag_id: dag_id not in hidden)
        return None if number is None else find_campaign(ledger, number).name

    tell(store, "a", run_id="r1", map_index=0)
    tell(store, "b", run_id="r1", map_index=1)
    tell(store, "c", run_id="r+2")
    tell(store, "b", dag_id="theirs")
    assert found("d", {"r1"}, "t", None) == "b"
    assert found("d", {"r1"}, "t", 0) == "a"
    assert found("d", {"r 2", "r+2"}, "t", -1) == "c"
    assert found("d", {"r1"}, "other", None) is None
    assert found("d", {"r1"}, "t", None, hidden={"theirs"}) == "a"
    assert [dags_of_campaign(ledger, number) for number in (1, 2, 999)] == [{"d"}, {"d", "theirs"}, frozenset()]


def test_requests_that_texted_people_twice_are_reported(enter, store, open_reader):
    """A request that was accepted after a person had freed its messages is named, with the one that has them."""
    ledger = enter()
    first = claim(ledger, people(2))
    close(ledger, first, UNKNOWN)
    resolve(store, first, NOT_SENT, "ann")
    second = claim(ledger, people(2))
    close(ledger, second)
    assert texted_twice(open_reader(), 1) == []
    close(ledger, first)
    assert texted_twice(open_reader(), 1) == [
        f"Request {first}: texted twice: 2 of its messages went out with request {second}, too."
    ]
