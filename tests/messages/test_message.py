from __future__ import annotations

from airflow_provider_sms.messages.message import Message, Outgoing


def test_a_message_does_not_show_whom_it_texts():
    """A repr may end up in a log or a traceback: it shows the length of a text and a masked number, or neither."""
    assert "content=<1 character>" in repr(Message("x", "27821234567"))
    assert repr(Message("Hi Thandi", "27821234567")) == "Message(content=<9 characters>, destination='2782*****67')"
    outgoing = repr(Outgoing([b"k" * 16], ["278212"], ["Hi Thandi"], [1]))
    assert [each in outgoing for each in ("2782", "Thandi")] == [False, False]
