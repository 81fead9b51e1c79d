"""What a ledger knows of a campaign before it is sent, for a plan, which claims nothing and creates no campaign."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import and_, false, func, select

from airflow_provider_sms.ledger.attempts import ADOPTION, of_run
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import find_campaign
from airflow_provider_sms.ledger.model import ACCEPTED, FORGOTTEN_NUMBER, NOT_SENT, SUPERSEDED, UNKNOWN
from airflow_provider_sms.ledger.request_queries import superseded_keys
from airflow_provider_sms.ledger.schema import attempt, message, request, superseded
from airflow_provider_sms.ledger.transitions import current_state
from airflow_provider_sms.messages.keys import key_halves
from airflow_provider_sms.messages.spool import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    import numpy.typing as npt
    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant

GROUP_DESTINATION = -1
"""Stands for a group among destinations, which are numbers."""
_ROWS_AT_ONCE = 10_000
"""Messages in memory at a time."""


class CampaignPreview:
    """The messages that a campaign holds.

    :param campaign_name: it need not exist.
    :param resends: whether messages whose outcome is unknown are sent again.
    :param who: the attempt that asks; None means one of a task that has sent nothing.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        claimants: Collection[int] = (),
        *,
        resends: bool = False,
        who: Claimant | None = None,
    ) -> None:
        self._store = store
        self._resends = resends
        self._claimants = claimants
        self.held_by: set[int] = set()
        """Requests without an outcome that hold messages of the table."""
        self._id: int | None = None
        self._has_superseded = False
        self._of_others: ColumnElement[bool] = false()
        self.has_others = False
        """Whether another task, or another run of this one, has sent messages of the campaign, or may have."""
        store.fetch(lambda connection: self._look(connection, campaign_name, who))

    def _look(self, connection: Connection, campaign_name: str, who: Claimant | None) -> None:
        """Look whether the campaign holds anything: most hold nothing when they begin, and then no key is looked up."""
        if (found := find_campaign(connection, campaign_name)) is None:
            return
        here = request.c.campaign_id == found
        held = select(message.c.request_id).where(message.c.campaign_id == found).limit(1)
        superseded = select(request.c.id).where(here, request.c.state == SUPERSEDED).limit(1)
        self._has_superseded = connection.scalar(superseded) is not None
        if not (self._has_superseded or connection.scalar(held) is not None):
            return
        self._id = found
        ours = select(attempt.c.id).where(false() if who is None else of_run(who))
        self._of_others = and_(here, request.c.attempt_id.not_in(ours))
        others = select(request.c.id).where(self._of_others, request.c.state != NOT_SENT).limit(1)
        self.has_others = connection.scalar(others) is not None

    def held(self, keys: Sequence[bytes]) -> dict[bytes, Status]:
        """Return the keys that the campaign holds or may have sent, each with what that means for its row.

        A message that a live process has claimed may still go either way, and counts as unknown. One of a superseded
        request is sent again, whatever the policy is by now.
        """
        if self._id is None:
            return {}
        campaign_id, now = self._id, self._store.clock()

        def read(connection: Connection) -> dict[bytes, Status]:
            held: dict[bytes, Status] = {}
            for key, holder, state, deadline, claimant_id, *_ in self._store.holders(connection, campaign_id, keys):
                if state == ACCEPTED:
                    held[bytes(key)] = Status.ACCEPTED if claimant_id in self._claimants else Status.ALREADY_SENT
                    continue
                self.held_by.add(holder)
                is_lost = current_state(state, deadline, now) == UNKNOWN
                held[bytes(key)] = Status.AGAIN if is_lost and self._resends else Status.UNKNOWN
            if self._has_superseded:
                again = superseded_keys(connection, campaign_id, [key for key in keys if key not in held])
                held.update(dict.fromkeys(again, Status.AGAIN))
            return held

        return self._store.fetch(read)

    def blocks_of_others(self) -> Generator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], None, None]:
        """Yield the messages that other tasks and other runs hold in the campaign, a block at a time.

        Mapped copies of this task count as this task. There is no index of numbers, which would make every claim
        slower: where others hold any message, every message of the campaign is read.

        :returns: half of each key, and the destinations as numbers. Groups and forgotten people are left out.
        """
        if not self.has_others:
            return
        query = select(message.c.message_key, message.c.destination).where(
            message.c.campaign_id == self._id,
            message.c.destination > FORGOTTEN_NUMBER,
            message.c.request_id.in_(select(request.c.id).where(self._of_others)),
        )
        for keys, numbers in _blocks(self._store, query):
            yield key_halves(b"".join(keys))[:, 0], np.array(numbers, np.int64)


def _blocks(store: LedgerBackend, query: Select[Any]) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query as columns, a block at a time."""
    with (
        store.read() as connection,
        closing(connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)) as rows,
    ):
        for block in rows.partitions(_ROWS_AT_ONCE):
            yield list(zip(*block, strict=True))


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


class EarlierClaims:
    """The messages that earlier attempts of this task, in this DAG run, hold in any campaign, or may have sent.

    Messages of other mapped copies of the task count only where the tables must have changed, since copies may text one
    recipient different things on purpose. An earlier attempt may still live: what it claims from now on does not count.
    """

    def __init__(self, store: LedgerBackend, campaign_id: int, who: Claimant, claimant_id: int) -> None:
        self._store = store
        self._campaign_id = campaign_id
        query = (
            select(attempt.c.id, attempt.c.map_index, attempt.c.try_number, attempt.c.plan)
            .where(of_run(who), attempt.c.try_number != ADOPTION)
            .order_by(attempt.c.id)
        )
        with store.read() as connection:
            attempts = [_Attempt(*row[:3], _plan_id(row[3])) for row in connection.execute(query)]
            self._last = connection.execute(select(func.max(request.c.id))).scalar() or 0
            own = [each for each in attempts if each.map_index == who.map_index]
            self._own = [each.claimant_id for each in own if each.claimant_id != claimant_id]
            claimed = select(request.c.attempt_id).distinct().where(request.c.attempt_id.in_(self._own))
            have_claimed = set(connection.execute(claimed).scalars()) if self._own else set()
        copies = [each for each in attempts if each.map_index != who.map_index]
        self._copies = [each.claimant_id for each in copies]
        self._moved = _of_changed_tables(copies)
        self._table_changed = _has_changed(own, claimant_id, have_claimed)

    def any(self) -> bool:
        """Return whether earlier attempts hold any messages."""
        queries = self._held_by([*self._own, *self._of_copies(self._table_changed)], message.c.request_id)
        first = [query.limit(1) for query in queries]
        return self._store.fetch(lambda connection: any(connection.scalar(each) is not None for each in first))

    def held(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys that any request of the campaign holds."""
        here = self._campaign_id
        return self._store.fetch(lambda connection: {key for key, *_ in self._store.holders(connection, here, keys)})

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
            for keys, numbers, campaigns in _blocks(self._store, query):
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
            theirs = and_(request.c.attempt_id.in_(piece), request.c.id <= self._last)
            yield select(*columns).where(message.c.request_id.in_(select(request.c.id).where(theirs)))
            moved = (superseded.c[each.name] for each in columns)
            of_theirs = superseded.c.request_id.in_(select(request.c.id).where(theirs, request.c.state != NOT_SENT))
            yield select(*moved).where(of_theirs)


def _has_changed(own: Sequence[_Attempt], claimant_id: int, have_claimed: Collection[int]) -> bool | None:
    """Return whether a task instance is about to send a different table than before; None where that is not known.

    Its table is compared with those from which it claimed anything, or else with its first one: an attempt that was
    refused has planned a table, too.

    :param own: its attempts, in order.
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
