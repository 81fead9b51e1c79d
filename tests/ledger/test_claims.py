from __future__ import annotations

import traceback
from contextlib import contextmanager

import pytest
from support.keys import sent_again
from support.sending import chunk_of, claim, close, outgoing, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.transitions import fitting_cost

CLAIM_SECONDS = 60.0
DEADLINE = 1_000_060.0
AFTER = DEADLINE + 1


def claim_each(ledger, *requests):
    """Claim messages in one transaction, and return what each request won."""
    return ledger.commit(chunks=[chunk_of(each) for each in requests], claim_seconds=CLAIM_SECONDS)


def state_of(ledger, message):
    holder = ledger.holders([message.key]).get(message.key)
    return holder and holder.state


def test_a_claim_wins_what_is_free_by_position(enter, rows):
    """Of attempts that claim the same messages, the first wins each of them, and the others win the rest or nothing.

    Nothing is on record of a request that won nothing, nor is its request missed.
    """
    ledgers = [enter(number) for number in (1, 2, 3)]
    won = [claim_each(each, people(count))[0] for each, count in zip(ledgers, (3, 5, 5), strict=True)]
    ledgers[2].commit()
    assert [list(each.won) for each in won] == [[0, 1, 2], [3, 4], []]
    assert won[2].request_id is None
    of = [(won[0].request_id, 3, None), (won[1].request_id, 2, None)]
    assert rows("SELECT id, submitted, planned_cost FROM sms_request ORDER BY id") == of


def test_a_claim_is_of_a_message_in_a_campaign(enter):
    """Another campaign may claim the same message, and the same number may get another text."""
    (one, other), ledger = (outgoing(27820000000, text) for text in ("one", "two")), enter()
    found = [claim(who, [what]) for who, what in ((ledger, one), (enter(campaign="b"), one), (ledger, other))]
    assert None not in found


def test_a_response_corrects_a_lapsed_claim_and_is_final(enter, rows, clock):
    """A claim past its deadline is written down as unknown; a late response makes it accepted, whatever comes then."""
    first, second = enter(1), enter(2)
    request_id = claim(first, people(1))
    clock.now = AFTER
    second.lapse()
    assert rows("SELECT state, reason FROM sms_request") == [(UNKNOWN, LAPSED)]
    for late in (ACCEPTED, NOT_SENT):
        close(first, request_id, late)
        assert state_of(second, people(1)[0]) == ACCEPTED


def test_claims_whose_commit_raised_are_given_back_at_the_end(enter):
    """Finishing releases claims that nothing was posted under, since their commit raised; all others stay claims."""
    mine, other = enter(1), enter(2)
    done = claim(mine, people(1))
    claim(mine, people(1, 1))
    claim(other, people(1, 2))
    with raising_once_durable(mine), pytest.raises(LedgerError):
        claim(mine, people(1, 3))
    mine.finish([Outcome(done, ACCEPTED)])
    assert [state_of(other, message) for message in people(4)] == [ACCEPTED, "claimed", "claimed", None]


@pytest.mark.parametrize("supersedes", [False, True])
def test_claims_whose_commit_raised_are_given_back_though_another_task_called_them_unknown(enter, clock, supersedes):
    """They lapsed while the ledger did not answer, and nothing was posted under them; what was posted stays unknown."""
    mine, other = enter(1), enter(2)
    claim(mine, people(1))
    with raising_once_durable(mine), pytest.raises(LedgerError):
        claim(mine, people(1, 1))
    clock.now = AFTER
    other.lapse()
    if supersedes:
        other.supersede([other.holders([people(1, 1)[0].key])[people(1, 1)[0].key].request_id])
    mine.finish([])
    assert [state_of(other, message) for message in people(2)] == [UNKNOWN, None]
    assert sent_again(other, people(2)) == set()


def test_an_event_id_is_known_where_another_request_has_it(enter):
    """What is recorded of a request itself contradicts no response to it; another campaign has event ids of its own."""
    ledger = enter(1)
    done = claim(ledger, people(1))
    close(ledger, done, event_id=5)
    other = enter(2, campaign="d")
    assert ledger.known_events({done: 5, done + 1: 5, done + 2: 6}) == {done + 1}
    assert other.known_events({done + 1: 5}) == set()


@contextmanager
def raising_once_durable(ledger):
    """Let a ledger's transactions raise although they were committed."""
    write = ledger._write

    @contextmanager
    def durable_and_raising(**how):
        with write(**how) as connection:
            yield connection
        raise LedgerError("the connection is gone")

    ledger._write = durable_and_raising
    yield
    ledger._write = write


@pytest.mark.parametrize(
    "told",
    [
        *({"event_id": event_id} for event_id in (2**63 - 1, 2**63, 2**64, -(2**63))),
        {"messages": 2**31},
        {"parts": 2**31},
        *({"cost": cost} for cost in ("0." + "3" * 60, "-1E-400", "123456789.123456789012345678901234567890123456")),
    ],
    ids=str,
)
def test_no_figure_costs_the_record_of_a_send(enter, rows, told):
    """An event id, a count or a cost that no column holds, on either store, keeps no outcome from being recorded."""
    ledger = enter()
    close(ledger, claim(ledger, people(1)), **told)
    ((state, cost),) = rows("SELECT state, cost FROM sms_request")
    assert (state, float(cost or 0)) == (ACCEPTED, pytest.approx(float(told.get("cost", 0))))


@pytest.mark.parametrize("digits", [1, 39, 40])
def test_a_cost_that_its_column_holds_is_kept_as_it_came(digits):
    """It is rounded only where it has more than 40 characters, to 30 digits."""
    assert fitting_cost("7" * digits) == "7" * digits
    assert fitting_cost("7" * 41) == "7." + "7" * 28 + "8E+40"


@pytest.fixture
def breaking(monkeypatch):
    """Have the insert of a message fail in the database, by a statement that quotes its number."""

    def breaking(ledger, number):
        insert = ledger._store.insert_messages

        def failing(connection, campaign_id, request_ids, chunks):
            if any(number in chunk.destinations for chunk in chunks):
                connection.exec_driver_sql(f"INSERT INTO no_such_table VALUES ({number})")
            return insert(connection, campaign_id, request_ids, chunks)

        monkeypatch.setattr(ledger._store, "insert_messages", failing)
        return ledger

    return breaking


def test_a_failed_commit_keeps_nothing(enter, breaking):
    """Outcomes and claims share one transaction: all of it is durable, or none."""
    first, second, third = people(3)
    ledger = breaking(enter(), third.destination)
    chunks, outcome = [chunk_of([second]), chunk_of([third])], Outcome(claim(ledger, [first]), ACCEPTED)
    with pytest.raises(LedgerError):
        ledger.commit(outcomes=[outcome], chunks=chunks, claim_seconds=CLAIM_SECONDS)
    assert state_of(ledger, first) == "claimed"
    assert ledger.holders([second.key, third.key]) == {}


def test_requests_of_one_commit_may_be_of_any_size_and_share_messages(enter, rows):
    """Each message is under the first request that has it, with its own number, and each request says how many it has.

    Who posts what a claim won must not post one message twice, whatever was asked for.
    """
    ledger, messages = enter(), people(12)
    parts = [messages[:3], messages[2:4], messages[4:11], [messages[11], messages[0], messages[11]]]
    claims = claim_each(ledger, *parts)
    assert [list(each.won) for each in claims] == [[0, 1, 2], [1], [*range(7)], [0]]
    assert [each.request_id for each in claims] == sorted({each.request_id for each in claims})
    for part, claimed in zip(parts, claims, strict=True):
        won = [part[place] for place in claimed.won]
        held = rows(f"SELECT message_key, destination FROM sms_message WHERE request_id = {claimed.request_id}")
        assert {bytes(key): str(number) for key, number in held} == {m.key: m.destination for m in won}
        assert rows(f"SELECT submitted FROM sms_request WHERE id = {claimed.request_id}") == [(len(won),)]


def test_errors_of_the_ledger_show_no_number(enter, breaking):
    """A database error quotes its statement, never the numbers in it."""
    (person,) = people(1)
    with pytest.raises(LedgerError) as caught:
        claim(breaking(enter(), person.destination), [person])
    assert person.destination not in "".join(traceback.format_exception(caught.value))


def test_a_campaign_knows_of_unknown_requests(enter):
    """A send is careful where answers were lost before, whoever lost them."""
    first, second = enter(1), enter(2)
    lost = claim(first, people(1))
    assert not second.has_unknown()
    close(first, lost, UNKNOWN)
    assert second.has_unknown()
    second.supersede([lost])
    assert not second.has_unknown()


def test_what_a_process_has_sent_is_counted_by_its_accepted_requests(enter):
    """In this campaign, by this process: neither what is unknown, nor what others sent."""
    ledger, other = enter(1), enter(2)
    for each, start, state in ((ledger, 0, ACCEPTED), (ledger, 10, UNKNOWN), (other, 20, ACCEPTED)):
        close(each, claim(each, people(3, start)), state)
    claim(ledger, people(3, 30))
    assert (ledger.count_accepted(), other.count_accepted(), enter(1).count_accepted()) == (3, 3, 0)
