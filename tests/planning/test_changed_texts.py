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


@pytest.fixture
def hold(enter):
    """Send a table as an attempt of monday's run would; a state of None leaves the claim open."""

    def hold(rows, state=ACCEPTED, *, key_columns=None, **who):
        (batch,) = rows.to_batches()
        prepared = composed(Composer(None, "text", key_columns=key_columns), batch)
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


def test_the_same_wording_again_texts_nobody_again(hold, plan):
    """The campaign has sent these messages; who gets another one of the same table has had no other text than its."""
    hold(texted(FIVE))
    again = plan(texted([*FIVE, number(7)]))
    assert (again.already_sent, again.to_send, again.repeats) == (5, 1, 0)
    both = plan(pa.concat_tables([texted(FIVE), texted(FIVE, "Hello")]))
    assert (both.already_sent, both.to_send, both.repeats) == (5, 5, 0)


@pytest.mark.parametrize("state", [ACCEPTED, UNKNOWN, None], ids=str)
def test_another_wording_texts_them_again(hold, plan, state):
    """Everybody counts who has had another text, or may have, however many messages they get now."""
    hold(texted(FIVE[:3]), state)
    other = pa.concat_tables([texted(FIVE, "Hello"), texted(FIVE[:1], "and another one")])
    assert (plan(other).to_send, plan(other).repeats) == (6, 3)


def test_people_count_once_and_in_their_campaign(hold, plan):
    """However many texts they had; neither do others' texts count in another campaign, nor does it read them."""
    hold(texted(FIVE))
    assert (plan(texted(FIVE, "Hello"), "d").repeats, plan(texted(FIVE, "Hello")).repeats) == (0, 5)
    hold(texted(FIVE, "Hello"), task_id="other")
    assert plan(texted(FIVE[:2], "Good evening")).repeats == 2


@pytest.mark.parametrize(
    ("who", "people"), [({"try_number": 1}, 0), ({"map_index": 3}, 0), ({"task_id": "other"}, 5), ({"dag_id": "x"}, 5)]
)
def test_attempts_of_the_same_task_in_the_same_run_do_not_count(hold, plan, who, people):
    """A replaced attempt is refused with a changed text by itself, and mapped copies may send different things."""
    hold(texted(FIVE), **who)
    assert plan(texted(FIVE, "Hello"), who=claimant(2, run_id="monday")).repeats == people


def test_only_people_who_are_texted_count(hold, plan):
    """Not those on a list, nor those whose rows are invalid or gone."""
    hold(texted(FIVE))
    table = texted([*FIVE[:3], "x"], "Hello")
    assert plan(table, suppress=texted(FIVE[:1])).repeats == 2


def test_key_columns_say_what_another_message_is(hold, plan):
    """With them other words are the same message; other values in them are another one."""
    hold(texted(FIVE).append_column("invoice", pa.array(["1"] * 5)), key_columns=["invoice"])
    same = texted(FIVE, "Hello").append_column("invoice", pa.array(["1"] * 5))
    other = texted(FIVE).append_column("invoice", pa.array(["1", "1", "1", "2", "2"]))
    assert (plan(same, key_columns=["invoice"]).repeats, plan(same, key_columns=["invoice"]).to_send) == (0, 0)
    assert plan(other, key_columns=["invoice"]).repeats == 2


def test_unknown_messages_that_are_resent_are_no_other_text(hold, plan):
    """They go out again in the same words."""
    hold(texted(FIVE), UNKNOWN)
    again = plan(texted(FIVE), resends=True)
    assert (again.to_send, again.repeats) == (5, 0)
    assert plan(texted(FIVE, "Hello"), resends=True).repeats == 5


def test_groups_and_forgotten_people_are_nobody(hold, plan, enter, store):
    """The ledger has no number of theirs."""
    hold(texted(FIVE[:1]))
    enter(run_id="monday").commit(chunks=[request_of([outgoing(1).key], [None])], claim_seconds=60.0)
    assert plan(texted(FIVE, "Hello")).repeats == 1
    forget_number(store, FIVE[0], ["c"])
    assert plan(texted(FIVE, "Hello")).repeats == 0


def test_a_campaign_is_read_a_block_at_a_time(hold, store, monkeypatch):
    """However many messages it holds, only some are in memory, and people in several blocks count once."""
    hold(texted(FIVE))
    hold(texted(FIVE[:3], "Hello"))
    monkeypatch.setattr(holders, "_REQUESTS_AT_ONCE", 1)
    campaign = CampaignReader(store, "c", claimant(run_id="tuesday"))
    sizes = [(len(halves), len(destinations)) for halves, destinations in campaign.blocks_of_others()]
    assert sizes == [(5, 5), (3, 3)]
    assert planned(texted(FIVE, "Good evening"), campaign=campaign).repeats == 5


def test_both_looks_can_be_stopped(enter, hold, store):
    """A task that is told to stop does not go on reading: either may take seconds."""
    send(enter(1), people(5))
    hold(texted(FIVE))
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError):
        look(enter(2), people(5), stop=stop)
    with pytest.raises(StoppedError):
        count_repeats(CampaignReader(store, "c", claimant()), checked(texted(FIVE, "Hello")).spool, stop)
