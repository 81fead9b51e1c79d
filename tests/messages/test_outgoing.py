from __future__ import annotations

from support.sending import people


def test_a_message_does_not_show_whom_it_texts():
    """A repr may end up in a log or a traceback."""
    (message,) = people(1)
    shown = f"{message!r} {[message]}"
    assert message.destination not in shown
    assert message.content not in shown
