from __future__ import annotations

import numpy as np
import pytest
from support.engine import Text
from support.keys import request_of
from support.sending import outgoing, people

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.ledger.decisions import resolve
from airflow_provider_sms.ledger.holders import GROUP_DESTINATION
from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, UNKNOWN, Outcome
from airflow_provider_sms.planning.changed_texts import refuse_changed_texts
from airflow_provider_sms.stop_flag import StopFlag


def send(ledger, messages, state=ACCEPTED):
    """Send messages, and return the request."""
    claim = ledger.commit(chunks=[request_of([m.key for m in messages], [m.destination for m in messages])])[0]
    ledger.commit(outcomes=[Outcome(claim.request_id, state)])
    return claim.request_id


def send_again(ledger, unknown, messages):
    """Send the messages of an unknown request again."""
    ledger.supersede([unknown])
    send(ledger, messages)


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

    def read():
        raise AssertionError("read")

    refuse_changed_texts(read, enter(1), StopFlag())


def test_the_same_table_passes(enter):
    """A later try of an unchanged table goes on: what was sent is there, what is new was not claimed."""
    send(enter(1), people(5))
    look(enter(2), people(3), people(7, 3))


def test_changed_texts_stop_the_later_try(enter):
    """The error says how many messages have another text, and what to do."""
    send(enter(1), people(5))
    with pytest.raises(InputError, match=r"^5 messages .* key_columns .* new campaign$"):
        look(enter(2), changed(4), [*changed(5)[4:], *people(3, 5)])


def test_a_second_message_is_no_changed_text_while_others_are_gone(enter):
    """Somebody left the table, and somebody else, whose claimed message is still there, has a second one."""
    send(enter(1), people(5))
    look(enter(2), [*people(4), *changed(1)])


def test_repeated_rows_do_not_hide_that_one_is_gone(enter):
    """Messages are counted once, however often the table repeats them."""
    send(enter(1), people(5))
    with pytest.raises(InputError, match=r"^1 message to a recipient that .* has another text"):
        look(enter(2), [*people(4), *people(4), outgoing(27_820_000_004, "other")])


def test_a_changed_text_that_was_sent_already_is_no_new_one(enter):
    """What anybody in the campaign claimed is not sent again, so it cannot be a second text by this try."""
    send(enter(1), people(5))
    send(enter(1, task_id="other"), changed(5))
    look(enter(2), changed(5))


def test_what_was_not_sent_may_change(enter):
    """Nobody was texted, so a new text is the first one."""
    send(enter(1), people(5), NOT_SENT)
    look(enter(2), changed(5))


@pytest.mark.parametrize("other", [{"task_id": "other"}, {"run_id": "next"}, {"map_index": 3}], ids=str)
def test_what_is_unknown_and_was_sent_again_by_others_may_not_change(enter, other):
    """The task may have texted these people, whoever has their messages now: another task, run, or mapped copy."""
    unknown = send(enter(1), people(5), UNKNOWN)
    send_again(enter(1, **other), unknown, people(5))
    look(enter(2), people(5))
    with pytest.raises(InputError, match=r"^5 messages to recipients "):
        look(enter(2), changed(5))


def test_what_was_not_sent_and_was_sent_by_others_may_change(store, enter):
    """A person has closed the unknown request as not sent, so only the other task has texted these people."""
    resolve(store, send(enter(1), people(5), UNKNOWN), NOT_SENT, "ann")
    send(enter(1, task_id="other"), people(5))
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


def test_it_can_be_stopped(enter):
    """A task that is told to stop does not go on reading."""
    send(enter(1), people(5))
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError):
        look(enter(2), people(5), stop=stop)
