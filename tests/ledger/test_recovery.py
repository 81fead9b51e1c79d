from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest
from sqlalchemy import delete, select, update
from support.sending import people

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.frequency_cap import FrequencyCap
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN, Chunk, Outcome
from airflow_provider_sms.ledger.purge import forget_campaign, old_campaigns
from airflow_provider_sms.ledger.recovery import UnrecordedOutcomes, files_in, read_file, record, write_file
from airflow_provider_sms.ledger.schema import claimant as claimants
from airflow_provider_sms.ledger.schema import message, request
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.ledger.transitions import REPEATED_EVENT

EVENT = 9_007_199_254_740_993


def chunk_of(messages):
    return Chunk([m.key for m in messages], [m.destination for m in messages])


def claimed(ledger, messages):
    """Claim messages, as a process does that ends before it records their outcome; return the request's id."""
    return ledger.commit(chunks=[chunk_of(messages)], claim_seconds=60.0)[0].request_id


def accepted(request_id, messages, event_id=EVENT):
    return Outcome(
        request_id,
        ACCEPTED,
        http_status=200,
        event_id=event_id,
        messages=len(messages),
        parts=len(messages),
        cost="3.5",
        response='{"Messages": 3}',
        chunk=chunk_of(messages),
        remaining_balance="96.5",
        least_price="1",
        most_price="1.5",
    )


def rows(store, *columns):
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(select(*columns).order_by(columns[0]))]


@pytest.fixture
def written(tmp_path, enter):
    """Write a file of what an attempt claimed and did not record; return it and the attempt's ledger."""

    def written(*outcomes_of, ledger=None, unposted=()):
        ledger = ledger or enter(1)
        unrecorded = UnrecordedOutcomes(ledger.origin(), [*outcomes_of], unposted)
        return write_file(tmp_path / "recovery", unrecorded)

    return written


def test_a_file_holds_all_that_was_kept(written, enter):
    """What is read is what was written: the attempt, the outcomes, and the messages that a late response needs."""
    ledger = enter(1, cap=FrequencyCap("all", 3600.0))
    first, second = people(3), people(2, 3)
    outcomes = [
        accepted(claimed(ledger, first), first),
        Outcome(claimed(ledger, second), NOT_SENT, http_status=429, reason="too many"),
    ]
    read = read_file(written(*outcomes, ledger=ledger, unposted=[7, 8]))
    assert (read.origin, read.outcomes, read.unposted) == (ledger.origin(), outcomes, [7, 8])


def test_only_its_owner_may_read_a_file(written):
    """It holds numbers. The folder that is made for it is its owner's, too."""
    path = written()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_has_the_numbers_of_accepted_requests_alone(written, enter):
    """No other outcome takes messages back, so nobody else's number is written."""
    path = written(Outcome(5, UNKNOWN, reason="lost", chunk=chunk_of(people(2))))
    assert people(1)[0].destination not in path.read_text()


def test_files_are_found_by_their_names(written, tmp_path):
    """Other files of the folder are nobody's business; a folder that is not there has none."""
    paths = {written(), written()}
    (tmp_path / "recovery" / "notes.json").write_text("{}")
    assert set(files_in(tmp_path / "recovery")) == paths
    assert len(paths) == 2
    assert files_in(tmp_path / "nowhere") == []


def test_outcomes_are_recorded_in_the_name_of_their_attempt(written, enter, store):
    """The ledger has afterwards what it would have had: outcomes, and free messages where nothing was sent."""
    ledger = enter(1)
    taken, refused, lost = people(3), people(2, 3), people(1, 5)
    ids = [claimed(ledger, messages) for messages in (taken, refused, lost)]
    path = written(
        accepted(ids[0], taken), Outcome(ids[1], NOT_SENT), Outcome(ids[2], UNKNOWN, reason="reset"), ledger=ledger
    )
    recorded = record(store, read_file(path))
    assert recorded == ({ids[0]: ACCEPTED, ids[1]: NOT_SENT, ids[2]: UNKNOWN}, [])
    columns = (request.c.id, request.c.state, request.c.event_id, request.c.cost, request.c.remaining_balance)
    assert rows(store, *columns) == [
        (ids[0], ACCEPTED, EVENT, "3.5", "96.5"),
        (ids[1], NOT_SENT, None, None, None),
        (ids[2], UNKNOWN, None, None, None),
    ]
    assert len(enter(2).holders([m.key for m in taken + refused + lost])) == 4
    assert len(rows(store, claimants.c.id)) == 2, "an attempt was registered anew"


def test_recording_twice_changes_nothing(written, enter, store, clock):
    """A file may be recorded by several tasks, or again by the process that wrote it and still lives."""
    ledger = enter(1)
    taken, refused = people(3), people(2, 3)
    ids = [claimed(ledger, taken), claimed(ledger, refused)]
    outcomes = [accepted(ids[0], taken), Outcome(ids[1], NOT_SENT)]
    unrecorded = read_file(written(*outcomes, ledger=ledger))
    first = record(store, unrecorded)
    again_claimed = claimed(enter(2), refused)
    before = rows(store, *request.c), rows(store, *message.c)
    clock.now += 5.0
    assert record(store, unrecorded) == first
    ledger.finish(outcomes)
    assert (rows(store, *request.c), rows(store, *message.c)) == before
    assert enter(3).holders([refused[0].key])[refused[0].key].request_id == again_claimed


def test_a_claim_that_was_surely_not_posted_is_given_back(written, enter, store):
    """A commit that raised may have become durable: its claims are free again, also once they count as unknown."""
    ledger, lapsed = enter(1), enter(1)
    request_id = claimed(ledger, people(2))
    late = lapsed.commit(chunks=[chunk_of(people(2, 2))], claim_seconds=-1.0)[0].request_id
    lapsed.lapse()
    done = claimed(ledger, people(1, 4))
    ledger.commit(outcomes=[Outcome(done, ACCEPTED)])
    assert record(store, read_file(written(ledger=ledger, unposted=[request_id, done, 99]))).states == {
        request_id: NOT_SENT,
        done: ACCEPTED,
    }
    assert record(store, read_file(written(ledger=lapsed, unposted=[late]))).states == {late: NOT_SENT}
    assert record(store, read_file(written(ledger=lapsed, unposted=[99]))).states == {}
    assert len(enter(2).holders([m.key for m in people(5)])) == 1


def test_a_claim_that_becomes_durable_while_its_file_is_recorded_is_given_back(written, enter, store, monkeypatch):
    """Its commit may end after the ledger was asked whether it has the attempt: what counts is read under the lock."""
    ledger, write, ended = enter(1), store.write, []
    late = claimed(ledger, people(1)) + 1
    path = written(ledger=ledger, unposted=[late])

    def write_after_the_commit(*arguments, **options):
        monkeypatch.setattr(store, "write", write)
        ended.append(claimed(ledger, people(2, 1)))
        return write(*arguments, **options)

    monkeypatch.setattr(store, "write", write_after_the_commit)
    assert (record(store, read_file(path)).states, ended) == ({late: NOT_SENT}, [late])
    assert enter(2).holders([m.key for m in people(2, 1)]) == {}


def test_a_late_response_takes_its_messages_back(written, enter, store):
    """Others may have claimed the messages since: the ledger knows who may have been texted twice."""
    ledger, messages = enter(1), people(3)
    request_id = claimed(ledger, messages)
    path = written(accepted(request_id, messages), ledger=ledger)
    with store.write(0) as connection:
        connection.execute(update(request).values(state=UNKNOWN))
    resolve(store, request_id, NOT_SENT, "ann")
    other = enter(2)
    other.commit(outcomes=[Outcome(claimed(other, messages[:1]), ACCEPTED)])
    recorded = record(store, read_file(path))
    assert (recorded.states, [twice.messages for twice in recorded.texted_twice]) == ({request_id: ACCEPTED}, [1])
    holders = enter(3).holders([m.key for m in messages])
    assert [holders[m.key].request_id == request_id for m in messages] == [False, True, True]


def test_a_late_response_counts_for_the_frequency_cap(written, enter, store):
    """Whoever was texted after all is protected again by the cap of their group."""
    cap = FrequencyCap("all", 3600.0)
    ledger, messages = enter(1, cap=cap), people(2)
    request_id = claimed(ledger, messages)
    path = written(accepted(request_id, messages), ledger=ledger)
    with store.write(0) as connection:
        connection.execute(update(request).values(state=UNKNOWN))
    resolve(store, request_id, NOT_SENT, "ann")
    assert enter(2, cap=cap).capped([messages[0].destination]) == set()
    record(store, read_file(path))
    assert enter(2, cap=cap).capped([messages[0].destination]) == {messages[0].destination}


def test_a_response_with_the_event_id_of_another_request_proves_nothing(written, enter, store):
    """The sender asks the ledger that of each response; it could not, so it is asked when the file is recorded."""
    ledger = enter(1)
    parts = people(1), people(1, 1), people(1, 2)
    ids = [claimed(ledger, messages) for messages in parts]
    ledger.commit(outcomes=[accepted(ids[0], parts[0], EVENT)])
    path = written(accepted(ids[1], parts[1], EVENT), accepted(ids[2], parts[2], EVENT + 1), ledger=ledger)
    expected = [(ids[0], ACCEPTED, None), (ids[1], UNKNOWN, REPEATED_EVENT), (ids[2], ACCEPTED, None)]
    for _ in range(2):
        record(store, read_file(path))
        assert rows(store, request.c.id, request.c.state, request.c.reason) == expected


def test_two_responses_of_a_file_with_one_event_id_are_not_both_believed(written, enter, store):
    """A connection can carry a response twice."""
    ledger = enter(1)
    ids = [claimed(ledger, people(1)), claimed(ledger, people(1, 1))]
    path = written(accepted(ids[0], people(1)), accepted(ids[1], people(1, 1)), ledger=ledger)
    assert record(store, read_file(path)).states == {ids[0]: ACCEPTED, ids[1]: UNKNOWN}


# A ledger that does not fit


def require_refused(store, path, words):
    """Recording raises, and nothing of the file is in the ledger."""
    before = rows(store, *request.c)
    with pytest.raises(InputError, match=words):
        record(store, read_file(path))
    assert rows(store, *request.c) == before
    assert path.exists()


@pytest.mark.parametrize(
    "changes", [{"try_number": 2}, {"run_id": "other"}, {"host": "h2"}, {"pid": 2}, {"started_at": 1.5}]
)
def test_a_ledger_with_another_attempt_in_its_place_is_refused(written, enter, store, changes):
    """Another ledger, or one that went back, numbers attempts and requests anew: nobody's outcome is another's."""
    ledger = enter(1)
    path = written(accepted(claimed(ledger, people(3)), people(3)), ledger=ledger)
    with store.write(0) as connection:
        connection.execute(update(claimants).values(**changes))
    require_refused(store, path, "does not have the attempt that wrote them: it is another ledger")


def test_another_ledger_is_refused(written, enter, tmp_path):
    """Both are named, so that a person finds the right one."""
    ledger = enter(1)
    path = written(accepted(claimed(ledger, people(3)), people(3)), ledger=ledger)
    other = open_sqlite(tmp_path / "other.db")
    require_refused(other, path, f"campaign c, and {tmp_path}/other.db does not have the attempt")
    other.close()


def test_a_ledger_that_lost_a_request_is_refused(written, enter, store):
    """Where one is missing, none is recorded: it went back, and may give the number to other people."""
    ledger = enter(1)
    ids = [claimed(ledger, people(1)), claimed(ledger, people(1, 1))]
    path = written(accepted(ids[0], people(1)), accepted(ids[1], people(1, 1), EVENT + 1), ledger=ledger)
    with store.write(0) as connection:
        connection.execute(delete(request).where(request.c.id == ids[1]))
    require_refused(store, path, f"does not have its request {ids[1]}: it went back")


def test_a_request_of_another_attempt_is_not_taken_for_ones_own(written, enter, store):
    """A server that went back gives numbers anew."""
    ledger, other = enter(1), enter(2)
    path = written(accepted(claimed(other, people(1)), people(1)), ledger=ledger)
    require_refused(store, path, "does not have its request")


def test_a_purged_campaign_is_refused(written, enter, store, clock):
    """What was forgotten stays forgotten, and the campaign is not made anew."""
    ledger = enter(1)
    request_id = claimed(ledger, people(3))
    path = written(accepted(request_id, people(3)), ledger=ledger)
    ledger.commit(outcomes=[Outcome(request_id, ACCEPTED)])
    for old in old_campaigns(store, clock.now + 1.0):
        forget_campaign(store, old)
    require_refused(store, path, "has no campaign 'c': it was purged")
    assert old_campaigns(store, clock.now + 1.0) == []


# A file that is damaged

WRONG = {
    "a state": lambda kept: kept["outcomes"][0].update(state="sent"),
    "an open state": lambda kept: kept["outcomes"][0].update(state="claimed"),
    "a request": lambda kept: kept["outcomes"][0].update(request_id="1"),
    "an event id": lambda kept: kept["outcomes"][0].update(event_id=2**70),
    "a cost": lambda kept: kept["outcomes"][0].update(cost=3),
    "a key": lambda kept: kept["outcomes"][0]["keys"].__setitem__(0, "00"),
    "a number": lambda kept: kept["outcomes"][0]["destinations"].__setitem__(0, "x"),
    "numbers": lambda kept: kept["outcomes"][0]["destinations"].pop(),
    "a field": lambda kept: kept["outcomes"][0].pop("reason"),
    "an origin": lambda kept: kept.pop("origin"),
    "a claimant": lambda kept: kept["origin"]["claimant"].pop("pid"),
    "a start": lambda kept: kept["origin"]["claimant"].update(started_at=10**400),
    "outcomes": lambda kept: kept.update(outcomes=None),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_with_a_wrong_value_is_refused(written, enter, what):
    """It is named, nothing of it is quoted, and it stays."""
    ledger = enter(1)
    path = written(accepted(claimed(ledger, people(2)), people(2)), ledger=ledger)
    kept = json.loads(path.read_text())
    WRONG[what](kept)
    path.write_text(json.dumps(kept))
    with pytest.raises(InputError, match=f"^{path} is damaged, or is not a recovery file. None of it was recorded"):
        read_file(path)
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"version": 1}', b"[" * 100_000])
def test_a_file_that_is_no_recovery_file_is_refused(tmp_path, content):
    """Whatever lies there, the error names the file."""
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{path} is damaged, or is not a recovery file"):
        read_file(path)
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_refused(written):
    """It may mean something else there."""
    path = written()
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(InputError, match="has version 2, and this airflow-provider-sms knows version 1"):
        read_file(path)


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    """As after another task has recorded it."""
    with pytest.raises(InputError, match=r"nowhere\.json cannot be read: No such file or directory"):
        read_file(tmp_path / "nowhere.json")


def test_a_ledger_that_fails_leaves_an_error_of_the_ledger(written, enter, store, monkeypatch):
    """Whoever records can then try again."""
    ledger = enter(1)
    unrecorded = read_file(written(accepted(claimed(ledger, people(1)), people(1)), ledger=ledger))

    def fail(*_, **__):
        raise LedgerError("gone")

    monkeypatch.setattr(store, "write", fail)
    with pytest.raises(LedgerError, match="gone"):
        record(store, replace(unrecorded))
    assert rows(store, request.c.state) == [(CLAIMED,)]
