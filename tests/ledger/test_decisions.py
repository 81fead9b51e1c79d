from __future__ import annotations

import time

import pytest
from sqlalchemy import text
from support.reported import counts
from support.sending import chunk_of, claimant, people

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.ledger import decisions
from airflow_provider_sms.ledger.account import KeptEvidence
from airflow_provider_sms.ledger.attempts import adopt
from airflow_provider_sms.ledger.balances import note_evidence
from airflow_provider_sms.ledger.decisions import (
    close_by_balance,
    require_unknown,
    resolve,
)
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome, TextedTwice
from airflow_provider_sms.ledger.requests import named_requests

PROOF = KeptEvidence("charged", "The balance fell by 3 more than the responses account for.", 5.0)
PRICED = PROOF._replace(amount="3.3")
UNDECIDED_SUM = PRICED._replace(verdict="undecided")


def claim(ledger, messages):
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=60.0)[0]


@pytest.fixture
def first(enter):
    """The try that claims before the others."""
    return enter()


@pytest.fixture
def unknown(first):
    """A request of three messages whose answer was lost."""
    ledger = first
    claimed = claim(ledger, people(3))
    ledger.commit(outcomes=[Outcome(claimed.request_id, UNKNOWN, reason="timeout")])
    return claimed.request_id


@pytest.fixture
def column(store):
    """Read a column of the ledger."""

    def column(query):
        with store.read() as connection:
            return [value for (value,) in connection.execute(text(query))]

    return column


def test_what_was_sent_stays_claimed(store, enter, unknown):
    """A person who says that a request was accepted closes it, and nobody of it is texted again."""
    assert resolve(store, unknown, ACCEPTED, "ann") == 3
    assert {holder.state for holder in enter(2).holders([m.key for m in people(3)]).values()} == {ACCEPTED}


def test_what_was_not_sent_may_be_claimed_again(store, enter, unknown):
    """A person who says that a request was not sent frees its messages."""
    assert resolve(store, unknown, NOT_SENT, "ann") == 3
    assert len(claim(enter(2), people(3)).won) == 3


def test_the_ledger_says_who_decided(store, unknown, column):
    """Each decision is kept: about what, what, who, when."""
    resolve(store, unknown, ACCEPTED, "ann")
    assert column("SELECT id FROM sms_request WHERE decided_at > 0") == [unknown]
    assert column("SELECT decided_by FROM sms_request WHERE decided_at > 0") == ["ann"]
    assert column("SELECT decision FROM sms_request WHERE decided_at > 0") == [ACCEPTED]
    assert column("SELECT decided_at FROM sms_request WHERE decided_at > 0")[0] == pytest.approx(time.time(), abs=60)


def test_a_claim_past_its_deadline_can_be_resolved(store, enter, column):
    """What a dead process left behind is unknown, whether or not anybody has written that down."""
    claimed = claim(enter(), people(1))
    assert resolve(store, claimed.request_id, ACCEPTED, "ann") == 1
    assert column("SELECT state FROM sms_request") == [ACCEPTED]


def test_the_time_of_the_claim_stands_for_that_of_the_answer(store, enter, column, clock):
    """What a person calls accepted was sent when it was claimed, as far as anybody knows."""
    claimed = claim(enter(), people(1))
    resolve(store, claimed.request_id, ACCEPTED, "ann")
    assert column("SELECT finished_at FROM sms_request") == [clock.now]


def test_a_claim_that_may_be_under_way_is_not_resolved(store, enter, column):
    """Before the deadline its process may still record the truth; the error says until when."""
    claimed = claim(enter(clock=time.time), people(1))
    with pytest.raises(InputError, match=r"may still be under way.*UTC"):
        resolve(store, claimed.request_id, NOT_SENT, "ann")
    assert column("SELECT state FROM sms_request") == ["claimed"]
    assert column("SELECT count(decided_at) FROM sms_request") == [0]


@pytest.mark.parametrize(("state", "said"), [(ACCEPTED, "it is accepted"), (NOT_SENT, "it is not sent")])
def test_what_is_known_is_not_up_to_anybody(store, enter, state, said):
    """Only what is unknown is resolved; the error says what the request is."""
    ledger = enter()
    claimed = claim(ledger, people(1))
    ledger.commit(outcomes=[Outcome(claimed.request_id, state)])
    with pytest.raises(InputError, match=said):
        resolve(store, claimed.request_id, NOT_SENT, "ann")


def test_a_request_that_is_not_there(store):
    """A wrong number is an error that names it."""
    with pytest.raises(InputError, match="no request 77"):
        resolve(store, 77, ACCEPTED, "ann")


def test_a_superseded_request_is_not_up_to_anybody(store, first, unknown):
    """Its messages were sent again, or will be."""
    first.supersede([unknown])
    with pytest.raises(InputError, match="sent again"):
        resolve(store, unknown, ACCEPTED, "ann")


@pytest.mark.parametrize("said", [ACCEPTED, NOT_SENT])
def test_an_answer_that_comes_later_than_the_decision_is_kept(store, enter, said, column):
    """The service knows better than a person: its late answer is recorded with the event id."""
    ledger = enter()
    claimed = claim(ledger, people(1))
    resolve(store, claimed.request_id, said, "ann")
    ledger.commit(outcomes=[Outcome(claimed.request_id, ACCEPTED, event_id=5, response="{}")])
    assert column("SELECT state FROM sms_request") == [ACCEPTED]
    assert column("SELECT event_id FROM sms_request") == [5]


def test_a_late_doubt_changes_no_decision(store, first, unknown, column):
    """A process that learns nothing of its request leaves what a person said."""
    resolve(store, unknown, ACCEPTED, "ann")
    first.commit(outcomes=[Outcome(unknown, NOT_SENT)])
    assert column("SELECT state FROM sms_request") == [ACCEPTED]
    assert column("SELECT count(*) FROM sms_message") == [3]


def test_a_task_is_adopted_with_the_name_of_who_answers_for_it(store, column):
    """A task instance that the ledger does not know gets a trace there that is no try's."""
    adopt(store, claimant(0, map_index=3, host="ann@office", pid=0))
    assert column("SELECT dag_id || task_id || run_id FROM sms_attempt") == ["dtr"]
    assert column("SELECT map_index FROM sms_attempt") == [3]
    assert column("SELECT try_number FROM sms_attempt") == [0]
    assert column("SELECT host FROM sms_attempt") == ["ann@office"]
    assert column("SELECT started_at FROM sms_attempt")[0] == pytest.approx(time.time(), abs=60)


def test_what_cannot_be_resolved_is_said_before_anybody_is_asked(store, enter, unknown):
    """A look refuses what the decision would refuse, and lets through what is unknown."""

    def look(request_id):
        require_unknown(*named_requests(store, [request_id]))

    look(unknown)
    look(claim(enter(2), people(1, 10)).request_id)
    resolve(store, unknown, ACCEPTED, "ann")
    with pytest.raises(InputError, match="it is accepted"):
        look(unknown)
    under_way = claim(enter(clock=time.time), people(1, 20)).request_id
    with pytest.raises(InputError, match="may still be under way"):
        look(under_way)


@pytest.mark.parametrize("request_id", [0, -1, 2**63, 10**23])
def test_a_number_that_no_request_can_have(store, request_id):
    """Numbers that the database cannot hold are refused like those of no request."""
    with pytest.raises(InputError, match="no request"):
        resolve(store, request_id, ACCEPTED, "ann")


def test_the_balance_closes_requests(store, first, unknown, column):
    """Those that were charged hold their messages, the others free theirs; the ledger says why, and who: nobody."""
    other, third = (claim(first, people(2, start)).request_id for start in (10, 20))
    first.commit(outcomes=[Outcome(each, UNKNOWN, reason="timeout") for each in (other, third)])
    closed = {
        unknown: (ACCEPTED, PRICED),
        other: (NOT_SENT, PROOF),
        third: (ACCEPTED, PROOF),
    }
    assert close_by_balance(store, "c", closed) == {unknown: 3, other: 2, third: 2}
    assert column("SELECT state FROM sms_request ORDER BY id") == [ACCEPTED, NOT_SENT, ACCEPTED]
    assert column("SELECT cost FROM sms_request ORDER BY id") == ["3.3", None, None]
    assert set(column("SELECT reason FROM sms_request")) == {PROOF.words}
    assert {row.evidence for row in named_requests(store, closed)} == {PRICED, PROOF}
    assert column("SELECT decided_by FROM sms_request WHERE decided_at > 0") == ["balance"] * 3
    assert column("SELECT decision FROM sms_request WHERE decided_at > 0 ORDER BY id") == [ACCEPTED, NOT_SENT, ACCEPTED]
    assert column("SELECT count(*) FROM sms_message") == [5]


@pytest.mark.parametrize(("evidence", "cost"), [(PRICED, "3.3"), (PROOF, None), (UNDECIDED_SUM, None)])
@pytest.mark.parametrize(("said", "is_counted"), [(ACCEPTED, True), (NOT_SENT, False)])
def test_a_person_who_says_that_it_was_sent_says_what_the_balance_knows_of_its_cost(
    store, unknown, column, evidence, cost, said, is_counted
):
    """Evidence that a request was charged for states the cost of one that a person closes as sent, if it knows that."""
    note_evidence(store, "c", {unknown: evidence})
    resolve(store, unknown, said, "ann")
    assert column("SELECT cost FROM sms_request") == [cost if is_counted else None]
    assert counts(store).of_unknown_cost == (1 if is_counted and cost is None else 0)


def test_the_balance_closes_a_lapsed_claim(store, first, clock):
    """What a dead process left behind is unknown, whether or not anybody has written that down."""
    store.clock = clock
    claimed = claim(first, people(1)).request_id
    assert close_by_balance(store, "c", {claimed: (ACCEPTED, PROOF)}) == {}
    clock.now += 61
    assert close_by_balance(store, "c", {claimed: (ACCEPTED, PROOF)}) == {claimed: 1}


@pytest.mark.parametrize("state", [ACCEPTED, NOT_SENT])
def test_an_outcome_is_better_founded_than_the_balance(store, first, unknown, state, column):
    """A request that has one by then keeps it, and with it the words of before."""
    first.commit(outcomes=[Outcome(unknown, state, reason="told", response="{}")])
    assert close_by_balance(store, "c", {unknown: (ACCEPTED, PRICED)}) == {}
    assert column("SELECT state FROM sms_request") == [state]
    assert column("SELECT reason FROM sms_request") == ["told"]
    assert column("SELECT cost FROM sms_request") + column("SELECT evidence FROM sms_request") == [None, None]
    assert column("SELECT count(decided_at) FROM sms_request") == [0]


@pytest.mark.parametrize("said", [ACCEPTED, NOT_SENT])
def test_a_late_response_is_better_founded_than_the_balance(store, first, unknown, said, column):
    """What the service says at last is recorded, with its messages and its cost."""
    close_by_balance(store, "c", {unknown: (said, PRICED)})
    told = {"messages": 3, "cost": "3", "response": "{}"}
    first.commit(outcomes=[Outcome(unknown, ACCEPTED, **told)])
    names = ("state", "cost", "reason", "response")
    assert [column(f"SELECT {name} FROM sms_request")[0] for name in names] == [ACCEPTED, "3", None, "{}"]
    assert column("SELECT request_id FROM sms_message") == [unknown] * 3
    assert first.texted_twice() == []


def test_a_late_response_says_who_was_texted_twice(store, enter, first, unknown):
    """Where the balance had freed messages, and another request has sent them since."""
    close_by_balance(store, "c", {unknown: (NOT_SENT, PROOF)})
    second = enter(2)
    again = claim(second, people(3)).request_id
    second.commit(outcomes=[Outcome(again, ACCEPTED, response="{}")])
    first.commit(outcomes=[Outcome(unknown, ACCEPTED, response="{}")])
    assert first.texted_twice() == [TextedTwice(unknown, again, is_sure=True, messages=3)]


def test_what_was_closed_before_an_error_stays_closed(store, first, monkeypatch, column):
    """A few are closed in each transaction: sends of the campaign wait for none of them long."""
    monkeypatch.setattr(decisions, "REQUESTS_AT_ONCE", 2)
    ids = [claim(first, people(1, start)).request_id for start in range(5)]
    first.commit(outcomes=[Outcome(each, UNKNOWN) for each in ids])
    write, lock = store.write, []

    def failing(number, **how):
        lock.append(number)
        if len(lock) == 3:
            raise LedgerError("The ledger cannot be written to")
        return write(number, **how)

    monkeypatch.setattr(store, "write", failing)
    with pytest.raises(LedgerError):
        close_by_balance(store, "c", dict.fromkeys(ids, (ACCEPTED, PROOF)))
    assert column("SELECT state FROM sms_request ORDER BY id") == [ACCEPTED] * 4 + [UNKNOWN]
