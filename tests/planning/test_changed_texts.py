from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.composed import composed
from support.engine import Text
from support.keys import request_of
from support.planning import checked, number, planned, texted
from support.sending import claim, claimant, close, outgoing, people

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.ledger import holders
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.forget import forget_number
from airflow_provider_sms.ledger.holders import GROUP_DESTINATION, CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN
from airflow_provider_sms.messages.compose import Composer
from airflow_provider_sms.planning.changed_texts import count_repeats, refuse_changed_texts
from airflow_provider_sms.stop_flag import StopFlag


def send(ledger, messages, state=ACCEPTED):
    """Send messages, and return the request."""
    request_id = claim(ledger, messages)
    close(ledger, request_id, state)
    return request_id


def messages(*blocks):
    """Return messages as the guard reads them."""

    def read():
        for block in blocks:
            numbers = [int(message.destination or GROUP_DESTINATION) for message in block]
            yield b"".join(message.key for message in block), np.array(numbers, np.int64)

    return read


def look(ledger, *blocks, stop=None):
    """Look at a table."""
    refuse_changed_texts(messages(*blocks), ledger, stop or StopFlag())


def changed(count, text="Now it is later"):
    return [outgoing(27_820_000_000 + n, text) for n in range(count)]


def test_a_first_try_reads_nothing(enter):
    """Without earlier claims the table is not read for this."""
    send(enter(1, run_id="other"), people(5))
    refuse_changed_texts(lambda: pytest.fail("It is read"), enter(1), StopFlag())


def test_the_same_table_passes(enter):
    """What was sent is there, and what is new was not claimed; nor is a second message to somebody a changed text.

    That is so also while others are gone from the table.
    """
    send(enter(1), people(5))
    look(enter(2), people(3), people(7, 3))
    look(enter(2), [*people(4), *changed(1)])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([changed(4), [*changed(5)[4:], *people(3, 5)]], r"^5 messages .* key_columns .* new campaign$"),
        # Messages are counted once: repeated rows do not hide that one is gone.
        (
            [[*people(4), *people(4), outgoing(27_820_000_004, "other")]],
            r"^1 message to a recipient that .* has another text",
        ),
    ],
)
def test_changed_texts_stop_the_later_try(enter, table, words):
    """The error says how many messages have another text, and what to do."""
    send(enter(1), people(5))
    with pytest.raises(InputError, match=words):
        look(enter(2), *table)


def test_a_changed_text_that_was_sent_already_is_no_new_one(enter):
    """What anybody in the campaign claimed is not sent again, so it cannot be a second text by this try."""
    send(enter(1), people(5))
    send(enter(1, task_id="other"), changed(5))
    look(enter(2), changed(5))


@pytest.mark.parametrize("said_by", ["the service", "a person"])
def test_what_was_not_sent_may_change(store, enter, said_by):
    """Nobody was texted by this task, so a new text is its first one, though another task has texted these people."""
    if said_by == "the service":
        send(enter(1), people(5), NOT_SENT)
    else:
        resolve(store, send(enter(1), people(5), UNKNOWN), NOT_SENT, "ann")
    send(enter(1, task_id="other"), people(5))
    look(enter(2), changed(5))


@pytest.mark.parametrize("other", [{"task_id": "other"}, {"run_id": "next"}, {"map_index": 3}], ids=str)
def test_what_is_unknown_and_was_sent_again_by_others_may_not_change(enter, other):
    """The task may have texted these people, whoever has their messages now: another task, run, or mapped copy."""
    unknown, again = send(enter(1), people(5), UNKNOWN), enter(1, **other)
    again.supersede([unknown])
    send(again, people(5))
    look(enter(2), people(5))
    with pytest.raises(InputError, match=r"^5 messages to recipients "):
        look(enter(2), changed(5))


@pytest.mark.parametrize("other", [{"task_id": "other"}, {"map_index": 3}], ids=str)
def test_other_tasks_and_copies_are_none_of_its_business(enter, other):
    """They may text the same people differently in one campaign."""
    send(enter(1, **other), people(5))
    send(enter(1), people(1, 100))
    look(enter(2), [*changed(5), *people(1, 100)])


# Whatever the campaign


def test_the_same_text_in_another_campaign_is_a_second_one(enter):
    """What the task claimed under another name is not sent again under this one."""
    send(enter(1), people(5))
    with pytest.raises(InputError, match=r"^3 messages .* campaign's name"):
        look(enter(2, campaign="other"), people(3), people(4, 10))


def test_a_group_whose_text_changed(enter):
    """The text to groups is guarded in the same way; it has no destination."""
    send(enter(1), [Text(b"a" * 16, None, "Hi")])
    with pytest.raises(InputError, match=r"^1 message to a recipient that .* has another text"):
        look(enter(2), [Text(b"b" * 16, None, "Hi again")])


# People who have had another text


FIVE = [number(n) for n in range(5)]
HI, HELLO = texted(FIVE), texted(FIVE, "Hello")
OF_MONDAY = claimant(2, run_id="monday")


@pytest.fixture
def hold(enter):
    """Send a table as an attempt of monday's run would; a state of None leaves the claim open."""

    def hold(rows, state=ACCEPTED, **who):
        (batch,) = rows.to_batches()
        prepared = composed(Composer(None, "text"), batch)
        ledger = enter(**{"run_id": "monday", **who})
        (held,) = ledger.commit(chunks=[request_of(prepared.keys, prepared.destinations)], claim_seconds=60.0)
        if state is not None:
            close(ledger, held.request_id, state)

    return hold


@pytest.fixture
def plan(store):
    """Plan a table as the run of tuesday."""

    def plan(rows, campaign="c", *, resends=False, who=None, **how):
        asks = claimant(run_id="tuesday") if who is None else who
        return planned(rows, campaign=CampaignReader(store, campaign, asks), resends=resends, **how)

    return plan


@pytest.mark.parametrize(
    ("held", "table", "how", "found"),
    [
        # The same wording again texts nobody again, and who gets another one of the same table has had no other text.
        ([(HI, {})], texted([*FIVE, number(7)]), {}, (5, 1, 0)),
        ([(HI, {})], pa.concat_tables([HI, HELLO]), {}, (5, 5, 0)),
        # Everybody counts who has had another text, or may have, and once, however many they get now or had before.
        *(
            ([(HI[:3], {"state": state})], pa.concat_tables([HELLO, texted(FIVE[:1], "and more")]), {}, (0, 6, 3))
            for state in (ACCEPTED, UNKNOWN, None)
        ),
        ([(HI, {}), (HELLO, {"task_id": "other"})], texted(FIVE[:2], "Good evening"), {}, (0, 2, 2)),
        ([(HI, {})], HELLO, {}, (0, 5, 5)),
        ([(HI, {})], HELLO, {"campaign": "d"}, (0, 5, 0)),
        # A replaced attempt is refused with a changed text by itself, and mapped copies may send different things.
        *(([(HI, who)], HELLO, {"who": OF_MONDAY}, (0, 5, 0)) for who in ({"try_number": 1}, {"map_index": 3})),
        *(([(HI, who)], HELLO, {"who": OF_MONDAY}, (0, 5, 5)) for who in ({"task_id": "other"}, {"dag_id": "x"})),
        # People who are on a list, or whose rows are invalid or gone, are not texted.
        ([(HI, {})], texted([*FIVE[:3], "x"], "Hello"), {"suppress": HI[:1]}, (0, 2, 2)),
        # Unknown messages that are resent go out again in the same words.
        ([(HI, {"state": UNKNOWN})], HI, {"resends": True}, (0, 5, 0)),
        ([(HI, {"state": UNKNOWN})], HELLO, {"resends": True}, (0, 5, 5)),
    ],
    ids=range(15),
)
def test_people_who_have_had_another_text_are_counted(hold, plan, held, table, how, found):
    """In this campaign, by what another task or run sent; they are told before they get one more."""
    for rows, who in held:
        hold(rows, **who)
    planned = plan(table, **how)
    assert (planned.already_sent, planned.to_send, planned.repeats) == found


def test_groups_and_forgotten_people_are_nobody(hold, plan, enter, store):
    """The ledger has no number of theirs."""
    hold(HI[:1])
    enter(run_id="monday").commit(chunks=[request_of([outgoing(1).key], [None])], claim_seconds=60.0)
    assert plan(HELLO).repeats == 1
    forget_number(store, FIVE[0], ["c"])
    assert plan(HELLO).repeats == 0


def test_people_whom_a_superseded_request_may_have_texted_are_counted(hold, plan, enter):
    """Its messages are free, and nobody knows whether they went out."""
    hold(HI, UNKNOWN)
    assert enter(2, run_id="monday").supersede([1]) == 5
    assert plan(HELLO).repeats == 5


def test_a_campaign_is_read_a_block_at_a_time(hold, store, monkeypatch):
    """However many messages it holds, only some are in memory, and people in several blocks count once."""
    hold(HI)
    hold(texted(FIVE[:3], "Hello"))
    monkeypatch.setattr(holders, "_REQUESTS_AT_ONCE", 1)
    campaign = CampaignReader(store, "c", claimant(run_id="tuesday"))
    sizes = [(len(halves), len(destinations)) for halves, destinations in campaign.blocks_of_others()]
    assert sizes == [(5, 5), (3, 3)]
    assert planned(texted(FIVE, "Good evening"), campaign=campaign).repeats == 5


def test_both_looks_can_be_stopped(enter, hold, store):
    """A task that is told to stop does not go on reading: either may take seconds."""
    send(enter(1), people(5))
    hold(HI)
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError):
        look(enter(2), people(5), stop=stop)
    with pytest.raises(StoppedError):
        count_repeats(CampaignReader(store, "c", claimant()), checked(HELLO).spool, stop)
