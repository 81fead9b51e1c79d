from __future__ import annotations

import traceback
from contextlib import contextmanager

import pytest
from sqlalchemy import select
from support.keys import sent_again
from support.sending import chunk_of, outgoing, people

from airflow_provider_sms.exceptions import LedgerError
from airflow_provider_sms.ledger.model import ACCEPTED, LAPSED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.ledger.schema import message, request

CLAIM_SECONDS = 60.0
DEADLINE = 1_000_060.0
AFTER = DEADLINE + 1


def claim(ledger, messages):
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=CLAIM_SECONDS)[0]


def record(ledger, claimed, state, **fields):
    ledger.commit(outcomes=[Outcome(claimed.request_id, state, **fields)])


def state_of(ledger, message):
    holder = ledger.holders([message.key]).get(message.key)
    return holder and holder.state


def test_a_free_message_is_won_by_the_first_claim_only(enter):
    """Of two tries that claim the same messages, one wins each of them."""
    first, second = enter(1), enter(2)
    assert list(claim(first, people(3)).won) == [0, 1, 2]
    assert claim(second, people(3)).request_id is None


def test_overlapping_claims_win_only_what_is_free(enter):
    """A chunk that partly belongs to somebody else is won in part, by position."""
    claim(enter(1), people(3))
    won = claim(enter(2), people(5))
    assert list(won.won) == [3, 4]


def test_a_claim_is_durable_before_it_is_known(enter, open_store):
    """What a claim returns can be read by another connection at once."""
    claim(enter(1), people(1))
    assert state_of(enter(2, into=open_store()), people(1)[0]) == "claimed"


def test_campaigns_do_not_see_each_other(enter):
    """The same message may be claimed once in each campaign."""
    claim(enter(campaign="a"), people(1))
    assert list(claim(enter(campaign="b"), people(1)).won) == [0]


def test_the_same_number_with_another_text_is_another_message(enter):
    """Claims are by message, not by number."""
    ledger = enter()
    claim(ledger, [outgoing(27820000000, "one")])
    assert list(claim(ledger, [outgoing(27820000000, "two")]).won) == [0]


def test_not_sent_releases_its_messages(enter):
    """What was surely not sent can be claimed again."""
    first = enter(1)
    record(first, claim(first, people(2)), NOT_SENT)
    assert list(claim(enter(2), people(2)).won) == [0, 1]


@pytest.mark.parametrize("state", [ACCEPTED, UNKNOWN])
def test_accepted_and_unknown_keep_their_messages(enter, state):
    """Only a person or a policy sends again what may have been sent."""
    first = enter(1)
    record(first, claim(first, people(2)), state)
    assert claim(enter(2), people(2)).request_id is None
    assert state_of(enter(2), people(1)[0]) == state


def test_a_late_answer_corrects_unknown(enter, clock):
    """An answer that arrives after its request was called unknown makes it accepted."""
    first, second = enter(1), enter(2)
    claimed = claim(first, people(1))
    clock.now = AFTER
    second.lapse()
    record(first, claimed, ACCEPTED)
    assert state_of(second, people(1)[0]) == ACCEPTED


def test_an_outcome_is_final(enter):
    """What was accepted is not called anything else later, and keeps its messages."""
    ledger = enter()
    claimed = claim(ledger, people(1))
    record(ledger, claimed, ACCEPTED)
    record(ledger, claimed, NOT_SENT)
    assert state_of(ledger, people(1)[0]) == ACCEPTED


def test_claims_whose_commit_raised_are_given_back_at_the_end(enter):
    """Finishing releases claims that nothing was posted under, since their commit raised; all others stay claims."""
    mine, other = enter(1), enter(2)
    done = claim(mine, people(1))
    claim(mine, people(1, 1))
    claim(other, people(1, 2))
    with raising_once_durable(mine), pytest.raises(LedgerError):
        claim(mine, people(1, 3))
    mine.finish([Outcome(done.request_id, ACCEPTED)])
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
    done = claim(ledger, people(1)).request_id
    ledger.commit(outcomes=[Outcome(done, ACCEPTED, event_id=5)])
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


def test_lapsing_is_kept_for_those_who_read_the_ledger(enter, store, clock):
    """A claim past its deadline is written down as unknown, with the reason."""
    claim(enter(1), people(1))
    clock.now = AFTER
    enter(2).lapse()
    with store.read() as connection:
        rows = connection.exec_driver_sql("SELECT state, reason FROM sms_request").all()
    assert [tuple(row) for row in rows] == [(UNKNOWN, LAPSED)]


@pytest.mark.parametrize("event_id", [2**63 - 1, 2**63, 2**64, -(2**63)])
def test_no_event_id_costs_the_record_of_a_send(enter, event_id):
    """An event id that the column cannot hold does not keep an outcome from being recorded."""
    ledger = enter()
    record(ledger, claim(ledger, people(1)), ACCEPTED, event_id=event_id)
    assert state_of(ledger, people(1)[0]) == ACCEPTED


@pytest.mark.parametrize("field", ["messages", "parts"])
def test_no_count_costs_the_record_of_a_send(enter, field):
    """A count that the column cannot hold, on either store, does not keep an outcome from being recorded."""
    ledger = enter()
    record(ledger, claim(ledger, people(1)), ACCEPTED, **{field: 2**31})
    assert state_of(ledger, people(1)[0]) == ACCEPTED


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
    claimed = claim(ledger, [first])
    chunks, outcome = [chunk_of([second]), chunk_of([third])], Outcome(claimed.request_id, ACCEPTED)
    with pytest.raises(LedgerError):
        ledger.commit(outcomes=[outcome], chunks=chunks, claim_seconds=CLAIM_SECONDS)
    assert state_of(ledger, first) == "claimed"
    assert ledger.holders([second.key, third.key]) == {}


def test_chunks_of_one_commit_may_share_a_message(enter):
    """Of two chunks that claim the same message at once, the first wins it."""
    messages = people(5)
    claims = enter().commit(chunks=[chunk_of(messages[:3]), chunk_of(messages[2:])], claim_seconds=CLAIM_SECONDS)
    assert [list(claimed.won) for claimed in claims] == [[0, 1, 2], [1, 2]]
    assert [claimed.request_id for claimed in claims] == sorted({claimed.request_id for claimed in claims})


def test_chunks_of_one_commit_may_be_of_any_size(enter, store):
    """Each message is under its own chunk's request, with its own number, and each request says how many it has."""
    ledger, messages = enter(), people(12)
    parts = [messages[:3], messages[3:4], messages[4:11], messages[11:]]
    claims = ledger.commit(chunks=[chunk_of(part) for part in parts], claim_seconds=CLAIM_SECONDS)
    of_message, of_request = select(message.c.message_key, message.c.destination), select(request.c.submitted)
    with store.read() as connection:
        for part, claimed in zip(parts, claims, strict=True):
            held = connection.execute(of_message.where(message.c.request_id == claimed.request_id))
            assert {bytes(key): str(number) for key, number in held} == {m.key: m.destination for m in part}
            submitted = connection.execute(of_request.where(request.c.id == claimed.request_id)).scalar_one()
            assert submitted == len(part)


def test_a_message_that_comes_twice_in_a_chunk_is_won_once(enter):
    """Who posts what a claim won must not post one message twice, whatever was asked for."""
    first, second = people(2)
    assert list(claim(enter(), [first, second, first]).won) == [0, 1]


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
    record(first, lost, UNKNOWN)
    assert second.has_unknown()
    second.supersede([lost.request_id])
    assert not second.has_unknown()


def test_what_a_process_has_sent_is_counted_by_its_accepted_requests(enter):
    """In this campaign, by this process: neither what is unknown, nor what others sent."""
    ledger, other = enter(1), enter(2)
    for each, start, state in ((ledger, 0, ACCEPTED), (ledger, 10, UNKNOWN), (other, 20, ACCEPTED)):
        record(each, claim(each, people(3, start)), state)
    claim(ledger, people(3, 30))
    assert (ledger.count_accepted(), other.count_accepted(), enter(1).count_accepted()) == (3, 3, 0)


def test_requests_stand_as_others_see_them(enter, clock):
    """One that is not there is missing; a claim that has lapsed is unknown, and may still be recorded."""
    ledger, other = enter(1), enter(2)
    sent, open_ = claim(ledger, people(1)), claim(ledger, people(1, 1))
    record(ledger, sent, ACCEPTED)
    clock.now = AFTER
    found = other.states([sent.request_id, open_.request_id, 99])
    assert {each: (holder.state, holder.mine, holder.awaited) for each, holder in found.items()} == {
        sent.request_id: (ACCEPTED, False, False),
        open_.request_id: (UNKNOWN, False, True),
    }
