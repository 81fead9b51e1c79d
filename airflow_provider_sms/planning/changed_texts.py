"""Changed texts and repeats: recipients who have had a text of the campaign, and would now get another one.

A text is part of a message, so another wording is another message.

A retry whose message holds the time of day, or whose rows were divided anew, has new keys, which the ledger has never
seen: it would text everybody twice. So before the first request the table is compared with earlier attempts' claims.

A *repeat* is a text from another task, or from another run of the task. It may be intended, so it is only counted. A
*duplicate* is something else, the same message in two rows of a table: :mod:`~airflow_provider_sms.messages.keys`.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.preview import GROUP_DESTINATION
from airflow_provider_sms.messages.keys import KEY_BYTES, key_bytes, key_halves
from airflow_provider_sms.messages.spool import Status
from airflow_provider_sms.planning.integers_on_disk import IntegersOnDisk
from airflow_provider_sms.recipients.columns import integers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import numpy.typing as npt

    from airflow_provider_sms.ledger.preview import CampaignPreview, EarlierClaims, HeldBlock
    from airflow_provider_sms.messages.spool import CheckedSpool
    from airflow_provider_sms.stop_flag import StopFlag

Messages: TypeAlias = "Callable[[], Iterator[tuple[bytes | memoryview, npt.NDArray[np.int64]]]]"
"""Yields the messages of a table: their keys, one after the other, and their destinations as numbers."""


def messages_of(spool: CheckedSpool, most: Status = Status.ACCEPTED) -> Messages:
    """Return the messages of the checked rows up to a status; the default leaves none out but suppressed ones."""

    def read() -> Iterator[tuple[memoryview, npt.NDArray[np.int64]]]:
        for rows in spool.batches():
            _, messages = rows.where(rows.statuses <= most)
            yield key_bytes(messages.column("key")), integers(messages.column("destination").cast(pa.int64()))

    return read


def refuse_changed_texts(messages: Messages, earlier: EarlierClaims, stop: StopFlag) -> None:
    """Refuse to send where recipients whose messages an earlier attempt claimed would now get another text.

    A recipient may have several messages in a table. So a text counts as changed only where a message that an earlier
    attempt claimed is no longer in the table, or is of another campaign, and the same recipient has a message in the
    table that nobody claimed. Where the table differs from the one that the earlier attempt planned, the same holds
    for claims of other mapped copies of the task: their tables may have been divided anew. The comparison takes 8 bytes
    of disk for each row of the table and each message that is gone, and nothing on a first attempt.

    :param messages: of the table, but for suppressed ones.
    :raises InputError: texts have changed; names their count, and what to do.
    :raises StoppedError: the comparison was stopped.
    :raises LedgerError: the ledger cannot be read.
    """
    if not earlier.any():
        return
    table, gone = _keys_of(messages), IntegersOnDisk()
    for numbers in _destinations_gone(earlier.own_blocks(), table, stop):
        gone.add(numbers)
    for numbers in _destinations_gone(earlier.blocks_of_copies(any_gone=bool(gone)), table, stop):
        # Copies text different groups, whose members are not known.
        gone.add(numbers[numbers != GROUP_DESTINATION])
    changed = 0
    for keys, numbers in messages() if gone else ():
        _require_running(stop)
        of_same_people = np.frombuffer(keys, f"V{KEY_BYTES}")[gone.contains(numbers)].tolist()
        held = earlier.held(of_same_people)
        changed += sum(key not in held for key in of_same_people)
    if changed:
        raise InputError(
            f"{changed} {by_count(changed, 'message to a recipient', 'messages to recipients')} that an earlier "
            f"attempt of this task claimed in this run {by_count(changed, 'has', 'have')} another text, other key "
            "columns or another campaign now, so people could be texted twice. Nothing was sent by this attempt. Is "
            "there a now() or the like in the message or in the campaign's name, did a column change, or does a mapped "
            "task get rows now that another one had? To continue, restore the text, the campaign and the rows that the "
            "task had. For the next run, say in key_columns what identifies a message besides its number. If a second "
            "text is intended, send it in a new run, under a new campaign"
        )


def _keys_of(messages: Messages) -> IntegersOnDisk:
    table = IntegersOnDisk()
    for keys, _ in messages():
        table.add(key_halves(keys)[:, 0])
    return table


def _require_running(stop: StopFlag) -> None:
    if stop.is_set():
        raise StoppedError("Told to stop, so nothing was sent")


def _destinations_gone(
    blocks: Generator[HeldBlock, None, None], table: IntegersOnDisk, stop: StopFlag
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the destinations of messages that earlier attempts hold and that the table no longer has."""
    with closing(blocks):
        for held in blocks:
            _require_running(stop)
            yield held.destinations[~(held.is_here & table.contains(held.halves))]


def count_repeats(preview: CampaignPreview, spool: CheckedSpool, stop: StopFlag) -> int:
    """Return how many of the people about to be texted have had another text of the campaign.

    A text counts if another task or run sent it, or may have, and the table does not hold it as well: a person with
    several messages in one table gets them on purpose. The messages of the campaign are read once, a block at a time,
    and only where others hold any.

    :raises StoppedError: the count was stopped.
    :raises LedgerError: the ledger cannot be read.
    """
    people, found, table = IntegersOnDisk(), IntegersOnDisk(), _keys_of(messages_of(spool))
    for _, numbers in messages_of(spool, Status.AGAIN)():
        people.add(numbers)
    with closing(preview.blocks_of_others()) as blocks:
        for halves, destinations in blocks:
            _require_running(stop)
            found.add(destinations[people.contains(destinations) & ~table.contains(halves)])
    return found.count_distinct()
