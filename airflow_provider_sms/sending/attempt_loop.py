"""The send of an attempt: passes over its messages, and between two of them what was lost or held by others is settled.

Nothing is counted here: who holds each message when the attempt ends says what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sms.sending.request_batch import Chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sms.messages.message import Outgoing
    from airflow_provider_sms.sending.sender import Sender
    from airflow_provider_sms.sending.settle import Settle

MAX_PASSES = 5
"""Passes of an attempt: two tasks that give messages back to each other do not pass them on for ever."""


def send(
    sender: Sender,
    settle: Settle,
    messages: Iterable[Outgoing],
    free_messages: Callable[[], Iterable[Outgoing]],
) -> None:
    """Send messages, and return when every request has an outcome that is recorded. What went wrong is in the sender.

    :param messages: the messages that were free when the table was checked, by request.
    :param free_messages: reads again which of the messages to send are free by now.
    """
    chunks, freed, passes = Chunks(messages), False, 1
    while True:
        is_over = sender.run(chunks)
        try:
            freed |= settle.run(sender)
        except Exception as error:  # noqa: BLE001  # of the ledger, the service or this code
            sender.fail(error)
        if not sender.goes_on or (is_over and not (freed and passes < MAX_PASSES)):
            return
        if is_over:
            chunks, freed, passes = Chunks(free_messages()), False, passes + 1
