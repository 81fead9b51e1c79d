"""The attempts of a task: each is registered before it claims anything, and what earlier ones hold is found again."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import and_, func, insert, select

from airflow_provider_sms.ledger.backend import again_if_busy, in_pieces, new_id
from airflow_provider_sms.ledger.locks import REGISTER_LOCK
from airflow_provider_sms.ledger.model import NOT_SENT
from airflow_provider_sms.ledger.schema import claimant, message, progress, request, superseded
from airflow_provider_sms.messages.keys import key_halves

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence

    import numpy.typing as npt
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant


ADOPTION = 0
"""The try number under which the ledger records that a person adopted it for a task instance."""

GROUP_DESTINATION = -1
"""Stands for a group among destinations, which are numbers."""
_ROWS_AT_ONCE = 10_000
"""Messages in memory at a time."""


class _Attempt(NamedTuple):
    """An attempt of a task instance, or a leg of one.

    :param plan_id: the id of the plan that it was about to send; None where it noted none.
    """

    claimant_id: int
    map_index: int
    try_number: int
    plan_id: str | None


class HeldBlock(NamedTuple):
    """Messages that earlier attempts hold, as columns.

    :param halves: half of each key.
    :param destinations: as numbers.
    :param is_here: whether they belong to the campaign that is about to be sent.
    """

    halves: npt.NDArray[np.int64]
    destinations: npt.NDArray[np.int64]
    is_here: npt.NDArray[np.bool_]


def of_task(who: Claimant) -> ColumnElement[bool]:
    """Return the condition for claimants that are attempts of the same task instance."""
    return and_(
        claimant.c.dag_id == who.dag_id,
        claimant.c.task_id == who.task_id,
        claimant.c.run_id == who.run_id,
        claimant.c.map_index == who.map_index,
    )


def of_run(who: Claimant) -> ColumnElement[bool]:
    """Return the condition for claimants that are attempts of a task, or of a mapped copy of it, in the same run."""
    return and_(claimant.c.dag_id == who.dag_id, claimant.c.task_id == who.task_id, claimant.c.run_id == who.run_id)


def has_trace(store: LedgerBackend, who: Claimant, *, of_attempt: bool = False) -> bool:
    """Return whether any attempt of this task instance has used this ledger, or a person has adopted it for the task.

    :param of_attempt: whether it must have been this very attempt, such as in a leg before a deferral.
    :raises LedgerError: when the ledger cannot be read.
    """
    query = select(claimant.c.id).where(of_task(who))
    if of_attempt:
        query = query.where(claimant.c.try_number.in_((who.try_number, ADOPTION)))
    with store.read() as connection:
        return connection.execute(query.limit(1)).scalar() is not None


def register(store: LedgerBackend, who: Claimant, clock: Callable[[], float] | None = None) -> int:
    """Record an attempt in the ledger, before it claims anything.

    :param clock: seconds since the epoch; None means the ledger's own.
    :returns: the id of its claimant.
    :raises LedgerError: when it was not committed.
    """

    def write() -> int:
        with store.write(REGISTER_LOCK) as connection:
            started = {**who.columns(), "started_at": (clock or store.clock)()}
            return new_id(connection.execute(insert(claimant).values(started)))

    return again_if_busy(write)


def registered(store: LedgerBackend, claimant_id: int) -> dict[str, Any] | None:
    """Return the row of an attempt, by column; None where the ledger has no such attempt.

    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        row = connection.execute(select(claimant).where(claimant.c.id == claimant_id)).mappings().first()
    return None if row is None else dict(row)


def claimants_of_try(store: LedgerBackend, who: Claimant, claimant_id: int) -> frozenset[int]:
    """Return the claimants that made an attempt so far: each wait without a slot ends one process of it.

    :param claimant_id: the last of them.
    :raises LedgerError: when the ledger cannot be read.
    """
    made = and_(of_task(who), claimant.c.try_number == who.try_number, claimant.c.id <= claimant_id)
    with store.read() as connection:
        return frozenset(connection.execute(select(claimant.c.id).where(made)).scalars())


class EarlierClaims:
    """The messages that earlier attempts of this task, in this DAG run, hold in any campaign, or may have sent.

    Messages of other mapped copies of the task count only where the tables must have changed, since copies may text one
    recipient different things on purpose. An earlier attempt may still live: what it claims from now on does not count.

    :param campaign_id: the campaign's id in the ledger.
    :param claimant_id: the claimant of this attempt, or of this leg of it.
    """

    def __init__(self, store: LedgerBackend, campaign_id: int, who: Claimant, claimant_id: int) -> None:
        self._store = store
        self._campaign_id = campaign_id
        query = (
            select(claimant.c.id, claimant.c.map_index, claimant.c.try_number, progress.c.plan)
            .select_from(claimant.outerjoin(progress))
            .where(of_run(who), claimant.c.try_number != ADOPTION)
            .order_by(claimant.c.id)
        )
        with store.read() as connection:
            attempts = [_Attempt(*row[:3], _plan_id(row[3])) for row in connection.execute(query)]
            self._last = connection.execute(select(func.max(request.c.id))).scalar() or 0
            own = [each for each in attempts if each.map_index == who.map_index]
            self._own = [each.claimant_id for each in own if each.claimant_id != claimant_id]
            claimed = select(request.c.claimant_id).distinct().where(request.c.claimant_id.in_(self._own))
            have_claimed = set(connection.execute(claimed).scalars()) if self._own else set()
        copies = [each for each in attempts if each.map_index != who.map_index]
        self._copies = [each.claimant_id for each in copies]
        self._moved = _of_changed_tables(copies)
        self._table_changed = _has_changed(own, claimant_id, have_claimed)

    def any(self) -> bool:
        """Return whether earlier attempts hold any messages.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            return any(
                connection.execute(held.limit(1)).scalar() is not None
                for held in self._held_by([*self._own, *self._of_copies(self._table_changed)], message.c.request_id)
            )

    def held(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys that any request of the campaign holds.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            return {key for key, *_ in self._store.holders(connection, self._campaign_id, keys)}

    def own_blocks(self) -> Generator[HeldBlock, None, None]:
        """Return the messages that earlier attempts of this task instance hold, a block at a time."""
        return self._blocks(self._own)

    def blocks_of_copies(self, *, any_gone: bool) -> Generator[HeldBlock, None, None]:
        """Return the messages that other mapped copies of the task hold, a block at a time.

        Where the table of this copy has not changed, only copies whose own table has changed since count.

        :param any_gone: whether any message that this task instance claimed is no longer in its table.
        """
        return self._blocks(self._of_copies(any_gone if self._table_changed is None else self._table_changed))

    def _of_copies(self, changed: bool | None) -> list[int]:  # noqa: FBT001  # private
        return self._copies if changed else self._moved

    def _blocks(self, claimants: Sequence[int]) -> Generator[HeldBlock, None, None]:
        columns = (message.c.message_key, message.c.destination, message.c.campaign_id)
        for query in self._held_by(claimants, *columns):
            with (
                self._store.read() as connection,
                closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
            ):
                for block in rows.partitions(_ROWS_AT_ONCE):
                    keys, numbers, campaigns = zip(*block, strict=True)
                    yield HeldBlock(
                        key_halves(b"".join(keys))[:, 0],
                        np.array([GROUP_DESTINATION if number is None else number for number in numbers], np.int64),
                        np.array(campaigns, np.int64) == self._campaign_id,
                    )

    def _held_by(self, claimants: Sequence[int], *columns: ColumnElement[Any]) -> Iterator[Select[Any]]:
        """Return queries for the messages that claimants hold, and those that were superseded.

        A message may be found more than once. A request that was not sent counts in neither.
        """
        for piece in in_pieces(claimants):
            # By their requests: the campaign may hold many times as many messages of other tasks.
            theirs = and_(request.c.claimant_id.in_(piece), request.c.id <= self._last)
            yield select(*columns).where(message.c.request_id.in_(select(request.c.id).where(theirs)))
            moved = (superseded.c[each.name] for each in columns)
            of_theirs = superseded.c.request_id.in_(select(request.c.id).where(theirs, request.c.state != NOT_SENT))
            yield select(*moved).where(of_theirs)


def _has_changed(own: Sequence[_Attempt], claimant_id: int, have_claimed: Collection[int]) -> bool | None:
    """Return whether a task instance is about to send a different table than before; None where that is not known.

    Its table is compared with those from which it claimed anything, or else with its first one: an attempt that was
    refused has planned a table, too.

    :param own: its attempts, in order.
    :param claimant_id: the claimant of the present one.
    :param have_claimed: the claimants that have claimed anything.
    """
    plan = next((each.plan_id for each in own if each.claimant_id == claimant_id), None)
    planned = [each for each in own if each.claimant_id != claimant_id and each.plan_id is not None]
    before = [each for each in planned if each.claimant_id in have_claimed] or planned[:1]
    return plan not in {each.plan_id for each in before} if before else None


def _of_changed_tables(attempts: Sequence[_Attempt]) -> list[int]:
    """Return the attempts whose task instance has planned another table since."""
    newest = {each.map_index: each for each in attempts}
    plans = {index: each.plan_id for index, each in newest.items()}
    return [
        each.claimant_id
        for each in attempts
        if each.try_number < newest[each.map_index].try_number
        and None not in (each.plan_id, plans[each.map_index])
        and each.plan_id != plans[each.map_index]
    ]


def _plan_id(noted: str | None) -> str | None:
    return None if noted is None else json.loads(noted).get("id")


def count_requests(store: LedgerBackend, who: Claimant) -> int:
    """Return how many requests the attempts of a task instance have made, whatever their outcome.

    :raises LedgerError: when the ledger cannot be read.
    """
    made = request.c.claimant_id.in_(select(claimant.c.id).where(of_task(who)))
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(request).where(made)).scalar() or 0
