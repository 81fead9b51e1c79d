from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_sms.messages.message import Message


def test_repr_hides_text_and_number():
    """A message in a log or a traceback shows the length of its text and a masked number."""
    assert "content=<1 character>" in repr(Message("x", "27821234567"))
    expected = "Message(content=<9 characters>, destination='2782*****67')"
    assert expected == repr(Message("Hi Thandi", "27821234567"))


def test_messages_are_values():
    """Two messages with one text and one number are the same, and neither can change."""
    message = Message(content="Hi", destination="27821234567")
    assert Message("Hi", "27821234567") == message
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.content = "Bye"
