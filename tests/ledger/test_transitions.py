from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import select, true
from support.keys import request_of, sent_again
from support.sending import claim, close, outgoing, people

from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN, TextedTwice
from airflow_provider_sms.ledger.requests import named_requests, texted
from airflow_provider_sms.ledger.schema import message, request, superseded
from airflow_provider_sms.ledger.transitions import LAPSED, lapse, reason_at, state_at, texted_twice

DEADLINE = 1_000.0


@pytest.fixture
def held(enter, store):
    """Insert a request in a state, claimed 100 seconds before its deadline."""

    def held(state):
        clock = lambda: DEADLINE - 100.0  # noqa: E731
        (claim,) = enter(clock=clock).commit(chunks=[request_of([b"k" * 16], ["27820000000"])], claim_seconds=100.0)
        with store.write(1) as connection:
            connection.execute(request.update().values(state=state))
        return claim.request_id

    return held


@pytest.mark.parametrize(
    ("state", "late", "expected"),
    [
        (CLAIMED, -1.0, CLAIMED),
        (CLAIMED, 0.0, CLAIMED),
        (CLAIMED, 0.5, UNKNOWN),
        (UNKNOWN, -1.0, UNKNOWN),
        (ACCEPTED, 0.5, ACCEPTED),
        (NOT_SENT, 0.5, NOT_SENT),
    ],
)
def test_a_claim_lapses_once_its_deadline_has_passed(store, held, state, late, expected):
    """Read or written down, it is the same rule; no other state changes."""
    held(state)
    now = DEADLINE + late
    why = LAPSED if state != expected else None
    with store.write(1) as connection:
        read = select(state_at(now), reason_at(now))
        assert [tuple(row) for row in connection.execute(read)] == [(expected, why)]
        lapse(connection, true(), now)
        written = select(request.c.state, request.c.reason)
        assert [tuple(row) for row in connection.execute(written)] == [(expected, why)]


# Messages that move


PEOPLE = people(3)
FIRST, *REST = PEOPLE


def lose(ledger, messages=PEOPLE):
    """Claim messages, and lose the response to their request."""
    request_id = claim(ledger, messages)
    close(ledger, request_id, UNKNOWN)
    return request_id


@pytest.fixture
def ledger(enter):
    return enter()


@pytest.fixture
def lost(ledger):
    """A request of three messages whose outcome is unknown."""
    return lose(ledger)


@pytest.fixture
def rows(store):
    """Give the requests that hold messages, and those that held them before: each with its number of messages."""

    def rows():
        with store.read() as connection:
            held = [connection.execute(select(each.c.request_id)).scalars() for each in (message, superseded)]
            return tuple(dict(Counter(each)) for each in held)

    return rows


def decide(ledger, store, request_id):
    resolve(store, request_id, NOT_SENT, "ann")


def supersede(ledger, store, request_id):
    ledger.supersede([request_id])


def refuse(ledger, store, request_id):
    close(ledger, request_id, NOT_SENT)


@pytest.mark.parametrize(
    ("gives_back", "on_record", "may_have_been_sent"),
    [(decide, {1: 3}, False), (supersede, {1: 3}, True), (refuse, {}, False)],
)
def test_a_decision_moves_messages_and_their_poster_deletes_them(
    ledger, store, lost, rows, gives_back, on_record, may_have_been_sent
):
    """All are free; who was texted perhaps stays on record, unless the poster itself knows that nobody was."""
    gives_back(ledger, store, lost)
    assert rows() == ({}, on_record)
    assert sent_again(ledger, PEOPLE) == ({m.key for m in PEOPLE} if may_have_been_sent else set())
    assert sent_again(ledger, [FIRST, outgoing(1)]) == ({FIRST.key} if may_have_been_sent else set())
    assert len(texted(store, FIRST.destination)) == len(on_record)


@pytest.mark.parametrize("gives_back", [decide, supersede])
def test_a_late_response_takes_back_what_is_free(ledger, enter, store, lost, rows, gives_back):
    """What another request has claimed meanwhile stays with it, and may go out twice."""
    gives_back(ledger, store, lost)
    other = enter(2)
    taken = claim(other, [FIRST])
    assert ledger.texted_twice() == []
    close(ledger, lost)
    assert rows() == ({lost: 2, taken: 1}, {lost: 1})
    assert [len(texted(store, each.destination)) for each in PEOPLE] == [2, 1, 1]
    for each, is_sure in ((CLAIMED, False), (UNKNOWN, False), (ACCEPTED, True)):
        if each != CLAIMED:
            close(other, taken, each)
        twice = [TextedTwice(lost, taken, is_sure, 1)]
        assert (ledger.texted_twice(), other.texted_twice(), enter(3).texted_twice()) == (twice, twice, [])


def test_messages_go_back_to_an_accepted_request_when_others_give_them_up(ledger, enter, store, lost, rows):
    """In each campaign by itself, and in the order of requests; what went out twice is said of each."""
    elsewhere = enter(campaign="b")
    lost = [lost, *(lose(each, some) for each, some in ((elsewhere, PEOPLE), (ledger, people(1, 3))))]
    assert (elsewhere.supersede(lost[1:2]), ledger.supersede([lost[0], lost[2]])) == (3, 4)
    (first, second), other = ((enter(2), enter(2, campaign="b")), enter(3))
    taken = [lose(second, [FIRST]), lose(other, people(1, 3)), lose(first, [FIRST])]
    for each, request_id in zip((ledger, elsewhere, ledger), lost, strict=True):
        close(each, request_id)
    twice = [(each.request_id, each.other_id, each.is_sure, each.messages) for each in ledger.texted_twice()]
    assert twice == [(lost[0], taken[2], False, 1), (lost[2], taken[1], False, 1)]
    with store.read() as connection:
        assert len(texted_twice(connection, ledger._campaign_id)) == 2
    assert first.supersede(taken[2:]) == 1
    assert rows() == ({lost[0]: 3, lost[1]: 2, taken[0]: 1, taken[1]: 1}, {lost[1]: 1, lost[2]: 1, taken[2]: 1})


@pytest.mark.parametrize("gives_back", [decide, supersede, refuse])
def test_what_a_later_request_gives_back_returns_to_the_accepted_one(ledger, enter, store, lost, rows, gives_back):
    """Nobody whom an accepted request has texted is free to be texted again."""
    decide(ledger, store, lost)
    other = enter(2)
    taken = claim(other, [FIRST])
    close(other, taken, UNKNOWN)
    close(ledger, lost)
    gives_back(other, store, taken)
    assert rows()[0] == {lost: 3}


@pytest.mark.parametrize("gives_back", [decide, supersede])
def test_a_late_refusal_of_a_superseded_request_leaves_nothing(ledger, enter, store, lost, rows, gives_back):
    """Its poster knows that it texted nobody: whoever has its messages now keeps them, and no other is unknown."""
    gives_back(ledger, store, lost)
    taken = claim(enter(2), [FIRST])
    close(ledger, lost, NOT_SENT)
    assert (rows(), sent_again(ledger, PEOPLE)) == (({taken: 1}, {}), set())
    assert named_requests(store, [lost])[0].state == NOT_SENT


@pytest.mark.parametrize(("state", "freed"), [(None, 0), (ACCEPTED, 0), (NOT_SENT, 0), (UNKNOWN, 3), (LAPSED, 3)])
def test_only_unknown_requests_are_superseded_and_once(ledger, clock, state, freed):
    """A live claim may be posted yet; a lapsed one is unknown, whether or not that is written down."""
    request_id = claim(ledger, PEOPLE)
    if state == LAPSED:
        clock.now += 61
    elif state is not None:
        close(ledger, request_id, state)
    assert (ledger.supersede([request_id]), ledger.supersede([request_id])) == (freed, 0)


@pytest.mark.parametrize("outcome", [UNKNOWN, CLAIMED])
def test_a_late_doubt_leaves_a_superseded_request_as_it_is(ledger, lost, rows, outcome):
    """Its poster's own *unknown* is written only over *claimed*; and nothing but the poster refuses or accepts it."""
    ledger.supersede([lost])
    if outcome == UNKNOWN:
        close(ledger, lost, UNKNOWN)
    else:
        ledger.lapse()
    assert (ledger.states([lost])[lost].state, rows()) == (SUPERSEDED, ({}, {lost: 3}))
