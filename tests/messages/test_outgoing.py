from __future__ import annotations

import pytest
from support.sending import people

from airflow_provider_sms.messages.outgoing import MessageColumns


@pytest.fixture
def messages():
    return [message._replace(row=row, parts=1 + row) for row, message in enumerate(people(5))]


def test_columns_are_the_messages_that_they_are_made_of(messages):
    """Whoever reads messages need not know whether they are objects or columns."""
    columns = MessageColumns.of(messages)
    assert list(columns) == messages
    assert (columns[0], columns[-1], columns[1:3]) == (messages[0], messages[-1], messages[1:3])
    assert [len(columns), columns.index(messages[2]), messages[3] in columns] == [5, 2, True]
    with pytest.raises(IndexError):
        columns[5]


def test_columns_stay_columns(messages):
    """Columns are not made of columns anew."""
    columns = MessageColumns.of(messages)
    assert MessageColumns.of(columns) is columns
    assert list(MessageColumns.of([])) == []


def test_columns_do_not_show_whom_they_text(messages):
    """A repr may end up in a log or a traceback."""
    shown = repr(MessageColumns.of(messages))
    assert not any(message.destination in shown or message.content in shown for message in messages)
