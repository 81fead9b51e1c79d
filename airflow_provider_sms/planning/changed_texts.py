"""Changed texts and repeats: recipients who have had a text of the campaign, and would now get another one.

A text is part of a message, so another wording is another message.

A retry whose message holds the time of day, or whose rows were divided anew, has new keys, which the ledger has never
seen: it would text everybody twice. So before the first request the table is compared with earlier attempts' claims.

A *repeat* is a text from another task, or from another run of the task. It may be intended, so it is only counted. A
*duplicate* is something else, the same message in two rows of a table: :mod:`~airflow_provider_sms.messages.keys`.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.formatting import by_count
from airflow_provider_sms.ledger.attempts import GROUP_DESTINATION
from airflow_provider_sms.messages.integer_set import DiskBackedIntegers, are_in, key_halves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from airflow_provider_sms.ledger.attempts import EarlierClaims
    from airflow_provider_sms.ledger.preview import CampaignPreview
    from airflow_provider_sms.messages.blocks import Block
    from airflow_provider_sms.stop_flag import StopFlag


T = TypeVar("T")


class TableKeys:
    """The messages of a table: half of each key, which is enough to tell them apart, in 8 bytes of disk each."""

    def __init__(self) -> None:
        self._halves = DiskBackedIntegers(np.uint64)

    def add(self, keys: Sequence[bytes]) -> None:
        """Add the keys of some rows.

        :raises OSError: there is no room in the folder for temporary files.
        """
        self._halves.add(key_halves(keys))

    def sorted(self) -> npt.NDArray[np.uint64]:
        """Return all halves in ascending order, readable until this is closed."""
        return self._halves.sorted()

    def contain(self, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return which of the keys are among these."""
        return self._halves.contains(key_halves(keys))

    def count_distinct(self) -> int:
        """Return the number of messages, each counted once however many rows hold it."""
        return self._halves.count_distinct()

    def close(self) -> None:
        """Release the keys and their room on disk."""
        self._halves.close()


def refuse_changed_texts(
    blocks: Callable[[], Iterable[Block]],
    earlier: EarlierClaims,
    stop: StopFlag,
    keys: TableKeys | None = None,
) -> None:
    """Refuse to send where recipients whose messages an earlier attempt claimed would now get another text.

    A recipient may have several messages in a table. So a text counts as changed only where a message that an earlier
    attempt claimed is no longer in the table, or is of another campaign, and the same recipient has a message in the
    table that nobody claimed. Where the table differs from the one that the earlier attempt planned, the same holds
    for claims of other mapped copies of the task: their tables may have been divided anew. The comparison takes 8 bytes
    of disk for each row of the table and each message that is gone, and nothing on a first attempt.

    :param blocks: reads the table anew.
    :param stop: ends the comparison early.
    :param keys: those of the table; always closed, since a send need not hold them. None means that they are read with
        the blocks.
    :raises InputError: texts have changed; names their count, and what to do.
    :raises StoppedError: the comparison was stopped.
    :raises LedgerError: the ledger cannot be read.
    """
    if not earlier.any():
        if keys is not None:
            keys.close()
        return
    if keys is None:
        keys = TableKeys()
        for block in _until_stopped(blocks(), stop):
            keys.add(block.keys(0, len(block)))
    with DiskBackedIntegers(np.int64) as gone:
        with closing(keys):
            _add_destinations_gone(gone, keys.sorted(), earlier, stop)
        ordered = gone.sorted()
        if not len(ordered):
            return
        changed = sum(_count_changed(block, ordered, earlier) for block in _until_stopped(blocks(), stop))
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


def _until_stopped(blocks: Iterable[T], stop: StopFlag) -> Iterator[T]:
    for block in blocks:
        if stop.is_set():
            raise StoppedError("Told to stop, so nothing was sent")
        yield block


def _add_destinations_gone(
    gone: DiskBackedIntegers[np.int64], table: npt.NDArray[np.uint64], earlier: EarlierClaims, stop: StopFlag
) -> None:
    """Collect the destinations of messages that earlier attempts hold and that the table no longer has."""
    with closing(earlier.own_blocks()) as own:
        for held in _until_stopped(own, stop):
            gone.add(held.destinations[~(held.is_here & are_in(table, held.halves))])
    with closing(earlier.blocks_of_copies(any_gone=bool(len(gone)))) as copies:
        for held in _until_stopped(copies, stop):
            is_gone = ~(held.is_here & are_in(table, held.halves))
            # Copies text different groups, whose members are not known.
            gone.add(held.destinations[is_gone & (held.destinations != GROUP_DESTINATION)])


def _count_changed(block: Block, gone: npt.NDArray[np.int64], earlier: EarlierClaims) -> int:
    destinations = block.destinations(0, len(block))
    numbers = np.array([GROUP_DESTINATION if number is None else int(number) for number in destinations], np.int64)
    keys = block.keys(0, len(block))
    of_same_people = [keys[position] for position in np.flatnonzero(are_in(gone, numbers)).tolist()]
    held = earlier.held(of_same_people)
    return sum(key not in held for key in of_same_people)


def count_repeats(
    preview: CampaignPreview, table: TableKeys, people: DiskBackedIntegers[np.int64], stop: StopFlag
) -> int:
    """Return how many people have had another text of the campaign.

    A text counts if another task or run sent it, or may have, and the table does not hold it as well: a person with
    several messages in one table gets them on purpose. The messages of the campaign are read once, a block at a time,
    and only where others hold any.

    :param table: the messages of the table.
    :param people: the numbers that are about to be texted.
    :param stop: ends the count early.
    :raises StoppedError: the count was stopped.
    :raises LedgerError: the ledger cannot be read.
    :raises OSError: there is no room in the folder for temporary files.
    """
    if not len(people):
        return 0
    with DiskBackedIntegers(np.int64) as found, closing(preview.blocks_of_others()) as blocks:
        for halves, destinations in blocks:
            if stop.is_set():
                raise StoppedError("Told to stop while the rows were checked; nothing was sent")
            again = are_in(people.sorted(), destinations)
            again[again] = ~are_in(table.sorted(), halves[again])
            found.add(destinations[again])
        return found.count_distinct()
