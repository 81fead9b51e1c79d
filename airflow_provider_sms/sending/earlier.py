"""What earlier tries of the same task left in the ledger, and whether a new try may go on from there."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sqlalchemy import and_, func, insert, select

from airflow_provider_sms.exceptions import InputError, StoppedError
from airflow_provider_sms.messages.ordered import are_in
from airflow_provider_sms.messages.spilled import SpilledIntegers
from airflow_provider_sms.sending.schema import claimant, message, request
from airflow_provider_sms.sending.store import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import numpy.typing as npt
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.sending.blocks import Block
    from airflow_provider_sms.sending.claims import Claimant
    from airflow_provider_sms.sending.stop import StopSignal
    from airflow_provider_sms.sending.store import Store

_REGISTER_LOCK = 0x5355_4D54
_GROUP = -1
_ROWS_AT_ONCE = 10_000

Part = TypeVar("Part")


def of_task(who: Claimant) -> ColumnElement[bool]:
    """Give the condition for claimants that are tries of the same task instance."""
    return and_(
        claimant.c.dag_id == who.dag_id,
        claimant.c.task_id == who.task_id,
        claimant.c.run_id == who.run_id,
        claimant.c.map_index == who.map_index,
    )


def has_trace(store: Store, who: Claimant) -> bool:
    """Say whether any try of this task instance has been in this ledger, or somebody has vouched for it.

    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        return connection.execute(select(claimant.c.id).where(of_task(who)).limit(1)).scalar() is not None


def register(store: Store, who: Claimant, clock: Callable[[], float] | None = None) -> int:
    """Leave the trace of a try in the ledger, before it claims anything.

    :param clock: seconds since the epoch; None for the store's.
    :returns: the id of its claimant.
    :raises LedgerError: when it was not committed.
    """
    with store.write(_REGISTER_LOCK) as connection:
        return new_id(
            connection.execute(insert(claimant).values({**who.columns(), "started_at": (clock or store.clock)()}))
        )


class EarlierClaims:
    """The messages of a campaign that earlier tries of this task instance hold.

    What an earlier try that still lives claims from now on is none of them.

    :param campaign_id: in the ledger.
    :param claimant_id: this try's, which is none of the earlier ones.
    """

    def __init__(self, store: Store, campaign_id: int, who: Claimant, claimant_id: int) -> None:
        self._store = store
        self._campaign_id = campaign_id
        with store.read() as connection:
            tries = connection.execute(select(claimant.c.id).where(of_task(who), claimant.c.id != claimant_id))
            self._tries = tuple(tries.scalars())
            self._last = connection.execute(select(func.max(request.c.id))).scalar() or 0

    def any(self) -> bool:
        """Say whether there are any.

        :raises LedgerError: when the ledger cannot be read.
        """
        if not self._tries:
            return False
        with self._store.read() as connection:
            return connection.execute(select(message.c.request_id).where(self._held).limit(1)).scalar() is not None

    def held(self, keys: Sequence[bytes]) -> set[bytes]:
        """Say which of the keys anybody holds in the campaign.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            return {key for key, *_ in self._store.holders(connection, self._campaign_id, keys)}

    def blocks(self) -> Generator[tuple[list[bytes], list[int]], None, None]:
        """Give their keys and destinations, a block at a time."""
        query = select(message.c.message_key, message.c.destination).where(self._held)
        with (
            self._store.read() as connection,
            closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
        ):
            for block in rows.partitions(_ROWS_AT_ONCE):
                yield [bytes(key) for key, _ in block], [_GROUP if number is None else number for _, number in block]

    @property
    def _held(self) -> ColumnElement[bool]:
        # By their requests: the campaign may hold many times as many messages of other tasks.
        theirs = select(request.c.id).where(
            request.c.campaign_id == self._campaign_id,
            request.c.claimant_id.in_(self._tries),
            request.c.id <= self._last,
        )
        return message.c.request_id.in_(theirs)


class TableKeys:
    """Which messages a table has: half of each one's key, enough to tell them apart, in 8 bytes a row on disk."""

    def __init__(self) -> None:
        self._halves = SpilledIntegers(np.uint64)

    def add(self, keys: Sequence[bytes]) -> None:
        """Take in the keys of some rows.

        :raises OSError: there is no room in the folder for temporary files.
        """
        self._halves.add(_halves(keys))

    def in_order(self) -> npt.NDArray[np.uint64]:
        """Give all of them in order, to read until they are closed."""
        return self._halves.sorted()

    def count_distinct(self) -> int:
        """Count the messages, each once however many rows give it."""
        return self._halves.count_distinct()

    def close(self) -> None:
        """Forget them, and give their room back."""
        self._halves.close()


def refuse_changed_texts(
    blocks: Callable[[], Iterable[Block]], earlier: EarlierClaims, stop: StopSignal, keys: TableKeys | None = None
) -> None:
    """Refuse to send where recipients whom an earlier try claimed would now get another text.

    A recipient may have several messages in a table. So a text counts as changed only where a message that an earlier
    try claimed is no longer in the table, and the same recipient has one there that nobody claimed. Takes 8 bytes of
    disk for each row of the table, and nothing on a first try.

    :param blocks: reads the table anew.
    :param stop: ends the look early.
    :param keys: of the table, where they are known; closed in any case, since a send need not hold them. None: they
        are read.
    :raises InputError: says how many, and what to do.
    :raises StoppedError: when it was told to stop.
    :raises LedgerError: when the ledger cannot be read.
    """
    if not earlier.any():
        if keys is not None:
            keys.close()
        return
    if keys is None:
        keys = TableKeys()
        for block in _until_stopped(blocks(), stop):
            keys.add(block.keys(0, len(block)))
    with closing(keys):
        gone = _destinations_not_among(keys.in_order(), earlier, stop)
    if not len(gone):
        return
    changed = sum(_count_changed(block, gone, earlier) for block in _until_stopped(blocks(), stop))
    if changed:
        raise InputError(
            f"{changed} messages to recipients that an earlier try of this task claimed have another text or other key "
            "columns now, so people could be texted twice. Nothing was sent by this try. Is there a now() or the like "
            "in the message, or did a column change? To go on, give it back the text that it had. For the next run, "
            "say in key_columns what identifies a message beside its number. Where a second text is meant, give a new "
            "campaign"
        )


def _until_stopped(parts: Iterable[Part], stop: StopSignal) -> Iterator[Part]:
    for part in parts:
        if stop.is_set():
            raise StoppedError("Told to stop before anything was sent")
        yield part


def _halves(keys: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    halves: npt.NDArray[np.uint64] = np.frombuffer(b"".join(keys), np.uint64)[::2].copy()
    return halves


def _destinations_not_among(
    table: npt.NDArray[np.uint64], earlier: EarlierClaims, stop: StopSignal
) -> npt.NDArray[np.int64]:
    gone = [np.empty(0, np.int64)]
    with closing(earlier.blocks()) as blocks:
        for keys, destinations in _until_stopped(blocks, stop):
            gone.append(np.array(destinations, np.int64)[~are_in(table, _halves(keys))])
    return np.unique(np.concatenate(gone))


def _count_changed(block: Block, gone: npt.NDArray[np.int64], earlier: EarlierClaims) -> int:
    destinations = block.destinations(0, len(block))
    numbers = np.array([_GROUP if number is None else int(number) for number in destinations], np.int64)
    keys = block.keys(0, len(block))
    of_same_people = [keys[position] for position in np.flatnonzero(are_in(gone, numbers)).tolist()]
    held = earlier.held(of_same_people)
    return sum(key not in held for key in of_same_people)
