"""Who holds a message: one reader of a campaign for its plan, its passes, its counts and its row report."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sqlalchemy import and_, bindparam, func, or_, select, true

from airflow_provider_sms.decimal_context import own_decimals
from airflow_provider_sms.ledger.attempts import of_run, of_task
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.campaigns import find_campaign
from airflow_provider_sms.ledger.model import (
    ACCEPTED,
    CLAIMED,
    FORGOTTEN_NUMBER,
    NOT_SENT,
    SUPERSEDED,
    UNKNOWN,
    Holder,
    SentRequest,
)
from airflow_provider_sms.ledger.requests import requests_among
from airflow_provider_sms.ledger.schema import attempt, message, request, same_message, superseded
from airflow_provider_sms.ledger.transitions import may_be_recorded, state_at, texted_twice
from airflow_provider_sms.messages.keys import key_halves, key_list
from airflow_provider_sms.messages.spool import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Table
    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.backend import LedgerBackend, Patience
    from airflow_provider_sms.ledger.model import Claimant, TextedTwice
    from airflow_provider_sms.ledger.requests import RequestRow


class Held(NamedTuple):
    """Who holds some messages, in the order of their keys.

    :param request_ids: the request that holds each message; 0 where it is free.
    :param requests: how these requests stand, by id.
    :param again: whether a superseded request had the message, which is free.
    """

    request_ids: npt.NDArray[np.int64]
    requests: Mapping[int, Holder]
    again: npt.NDArray[np.bool_]

    @property
    def are_free(self) -> npt.NDArray[np.bool_]:
        """Whether nobody holds a message."""
        return np.equal(self.request_ids, 0)

    def statuses(self, *, resends: bool = False) -> npt.NDArray[np.uint8]:
        """Return the status of each message: a live claim, which may go either way, counts as unknown.

        :param resends: whether unknown messages are sent again.
        """
        ids, places = np.unique(self.request_ids, return_inverse=True)
        of_ids = [_status(self.requests[each], resends=resends) if each else Status.FREE for each in ids.tolist()]
        return np.where(self.again, Status.AGAIN, np.array(of_ids, np.uint8)[places])

    def unsettled(self) -> dict[int, int]:
        """Return the requests that have no outcome, and how many of the messages each holds."""
        ids, messages = np.unique(self.request_ids[~self.are_free], return_counts=True)
        counts = zip(ids.tolist(), messages.tolist(), strict=True)
        return {each: count for each, count in counts if self.requests[each].state != ACCEPTED}


def _status(holder: Holder, *, resends: bool) -> Status:
    if holder.state == ACCEPTED:
        return Status.ACCEPTED if holder.mine else Status.ALREADY_SENT
    return Status.AGAIN if resends and holder.state == UNKNOWN else Status.UNKNOWN


GROUP_DESTINATION = -1
"""Stands for a group among destinations, which are numbers."""
HeldBlock: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]"
_REQUESTS_AT_ONCE = 100
"""Requests whose messages are in memory at a time."""
_RESPONSES_AT_ONCE = 1000
"""Responses in memory at a time: each may have several kilobytes."""

_STANDING = select(
    request.c.id, state_at(bindparam("now")), request.c.deadline, request.c.attempt_id, request.c.finished_at
).where(request.c.id.in_(bindparam("ids", expanding=True)))
_had = superseded.join(request, request.c.id == superseded.c.request_id)
_is_superseded = request.c.state == SUPERSEDED


class CampaignReader:
    """A campaign as one attempt of a task sees it; neither need be in the ledger, as in a dry run."""

    def __init__(self, store: LedgerBackend, campaign_name: str, who: Claimant) -> None:
        self.clock = store.clock
        self.claimants: frozenset[int] = frozenset()
        """The processes of the attempt: this one, and those that made it before it was deferred."""
        self._store = store
        self._who = who
        self._claimant_id: int | None = None
        # No campaign has 0.
        self._campaign_id = store.fetch(lambda connection: find_campaign(connection, campaign_name)) or 0

    @property
    def patience(self) -> Patience:
        """Tries again what fails while the ledger is away."""
        return self._store.patience

    def is_used(self) -> bool:
        """Return whether the campaign has any request: most have none when they begin, and no key is looked up."""
        return self._has(true())

    def look(self, keys: bytes | memoryview) -> Held:
        """Return who holds messages, by their keys, one after the other."""

        def read(connection: Connection) -> Held:
            request_ids = self._store.holders(connection, self._campaign_id, keys)
            requests = self._standing(connection, np.unique(request_ids[request_ids > 0]).tolist())
            again = self._superseded(connection, keys, request_ids == 0)
            self._check(connection)
            return Held(request_ids, requests, again)

        return self._store.fetch(read)

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, Holder]:
        """Return the requests that hold messages, by message key; a key that is free is missing."""
        held = self.look(b"".join(keys))
        pairs = zip(keys, held.request_ids.tolist(), strict=True)
        return {key: held.requests[request_id] for key, request_id in pairs if request_id}

    def _check(self, connection: Connection) -> None:
        """Refuse a ledger that does not have the attempt any more: what was read may be of another campaign."""

    def _superseded(
        self, connection: Connection, keys: bytes | memoryview, are_free: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return which free messages a superseded request had."""
        here, again = and_(superseded.c.campaign_id == self._campaign_id, _is_superseded), np.zeros_like(are_free)
        if not _is_any(connection, select(request.c.id).select_from(_had).where(here)):
            return again
        free = key_list(keys)
        places = {free[place]: place for place in np.flatnonzero(are_free).tolist()}
        query = select(superseded.c.message_key).select_from(_had).where(here)
        for some in in_pieces(list(places)):
            again[[places[key] for key in connection.scalars(query.where(superseded.c.message_key.in_(some)))]] = True
        return again

    def states(self, request_ids: Collection[int]) -> dict[int, Holder]:
        """Return how requests stand, by id; one that the ledger does not have is missing."""
        return self._store.fetch(lambda connection: self._standing(connection, sorted(request_ids)))

    def _standing(self, connection: Connection, request_ids: Sequence[int]) -> dict[int, Holder]:
        now, seconds = self.clock(), self.patience.seconds
        pieces = (connection.execute(_STANDING, {"ids": some, "now": now}) for some in in_pieces(request_ids))
        return {
            request_id: Holder(
                request_id,
                state,
                claimant_id in self.claimants,
                claimant_id != self._claimant_id and may_be_recorded(finished_at, deadline, now=now, seconds=seconds),
            )
            for request_id, state, deadline, claimant_id, finished_at in chain.from_iterable(pieces)
        }

    def requests(self, request_ids: Collection[int]) -> dict[int, RequestRow]:
        """Return requests by id."""
        found = self._store.fetch(lambda connection: requests_among(connection, request_ids, self.clock()))
        return {each.request_id: each for each in found}

    def resent(self, request_ids: Sequence[int]) -> set[int]:
        """Return which requests hold messages that a superseded request had."""
        same = same_message(message, superseded)
        query = select(message.c.request_id).distinct().select_from(_had.join(message, same)).where(_is_superseded)
        pieces = [query.where(message.c.request_id.in_(some)) for some in in_pieces(request_ids)]
        return self._store.fetch(lambda connection: {each for piece in pieces for each in connection.scalars(piece)})

    def has_unknown(self) -> bool:
        """Return whether any request of the campaign is unknown."""
        return self._has(and_(request.c.state.in_((CLAIMED, UNKNOWN)), state_at(self.clock()) == UNKNOWN))

    def has_others(self) -> bool:
        """Return whether another task, or another run of this one, has sent messages of the campaign, or may have."""
        return self._has(and_(request.c.state != NOT_SENT, self._of_others))

    def _has(self, which: ColumnElement[bool]) -> bool:
        query = select(request.c.id).where(request.c.campaign_id == self._campaign_id, which)
        return self._store.fetch(lambda connection: _is_any(connection, query))

    @property
    def _of_others(self) -> ColumnElement[bool]:
        return request.c.attempt_id.not_in(select(attempt.c.id).where(of_run(self._who)))

    def blocks_of_others(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield the messages that other tasks and other runs hold in the campaign or may have sent, in blocks.

        Mapped copies of this task count as this task. There is no index of numbers, which would make every claim
        slower: every message of the campaign is read.

        :returns: half of each key, and the destinations as numbers. Groups and forgotten people are left out.
        """
        theirs = select(request.c.id).where(request.c.campaign_id == self._campaign_id, self._of_others)
        had = superseded, theirs.where(_is_superseded)
        for table, requests in (had, (message, theirs), had):  # twice: messages move to it, and back, meanwhile
            numbered = select(table.c.message_key, table.c.destination).where(table.c.destination > FORGOTTEN_NUMBER)
            for keys, numbers in self._blocks(requests, table, numbered):
                yield key_halves(b"".join(keys))[:, 0], np.array(numbers, np.int64)

    def earlier(self) -> Iterator[HeldBlock]:
        """Yield the messages that attempts of this task instance hold in any campaign, or may have sent, in blocks.

        A message may come more than once. Those of a request that was not sent do not come.

        :returns: half of each key, the destinations as numbers, and whether they belong to this campaign.
        """
        mine = select(request.c.id).join(attempt).where(of_task(self._who))
        had = superseded, mine.where(request.c.state != NOT_SENT)
        for table, requests in (had, (message, mine), had):  # likewise
            # By their requests: the campaign may hold many times as many messages of other tasks.
            columns = (table.c[name] for name in ("message_key", "destination", "campaign_id"))
            for keys, numbers, campaigns in self._blocks(requests, table, select(*columns)):
                destinations = [GROUP_DESTINATION if number is None else number for number in numbers]
                is_here = np.array(campaigns, np.int64) == self._campaign_id
                yield key_halves(b"".join(keys))[:, 0], np.array(destinations, np.int64), is_here

    def _blocks(self, requests: Select[Any], table: Table, query: Select[Any]) -> Iterator[Sequence[Any]]:
        """Yield what a query reads of the messages of requests in a table, as columns, a block at a time."""
        ids = self._store.fetch(lambda connection: connection.scalars(requests).all())
        for some in in_pieces(ids, _REQUESTS_AT_ONCE):
            of_some = query.where(table.c.request_id.in_(some))
            if rows := self._store.fetch(lambda connection: connection.execute(of_some).all()):  # noqa: B023  # at once
                yield list(zip(*rows, strict=True))

    def texted_twice(self) -> list[TextedTwice]:
        """Return the messages that this attempt and another request texted, or may have."""
        return self._store.fetch(lambda connection: texted_twice(connection, self._campaign_id, sorted(self.claimants)))

    def count_accepted(self) -> int:
        """Count the messages that this process has sent, by its accepted requests."""
        sent = message.join(request, message.c.request_id == request.c.id)
        mine = and_(request.c.attempt_id == self._claimant_id, request.c.state == ACCEPTED)
        return self._number(select(func.count()).select_from(sent).where(mine))

    def sent_requests(self) -> Iterator[SentRequest]:
        """Yield the requests of this attempt that were sent, may have been, or were refused in whole."""
        names = ("id", "state", "submitted", "messages", "parts", "cost", "finished_at", "response")
        query = (
            select(*(request.c[name] for name in names))
            .where(
                request.c.campaign_id == self._campaign_id,
                request.c.attempt_id.in_(self.claimants),
                or_(request.c.state != NOT_SENT, request.c.response.is_not(None)),
            )
            .order_by(request.c.id)
            .limit(_RESPONSES_AT_ONCE)
        )
        last = 0
        while True:
            page = query.where(request.c.id > last)
            rows = self._store.fetch(lambda connection: connection.execute(page).all())  # noqa: B023  # at once
            for _, *columns in rows:
                yield SentRequest(*columns)
            if not rows:
                return
            last = rows[-1].id

    def last_request(self) -> int:
        """Return the id of the last request that was claimed in the ledger; 0 where there is none."""
        return self._number(select(func.max(request.c.id)))

    def sent_after(self, request_id: int, *, resends: bool) -> tuple[int, Decimal]:
        """Return how many messages the task instance has sent, or may have, and the credits that these were to cost.

        :param resends: whether unknown messages are sent again, so that the plan has them.
        """
        states = (ACCEPTED, CLAIMED, *(() if resends else (UNKNOWN,)))
        which = and_(of_task(self._who), request.c.id > request_id, state_at(self.clock()).in_(states))
        by_cost = select(request.c.planned_cost, func.count(), func.sum(request.c.submitted)).join(attempt).where(which)
        grouped = by_cost.group_by(request.c.planned_cost)
        rows = self._store.fetch(lambda connection: connection.execute(grouped).all())
        with own_decimals():
            cost = sum((Decimal(each or 0) * requests for each, requests, _ in rows), Decimal(0))
        return sum(int(messages) for *_, messages in rows), cost

    def count_responses(self) -> int:
        """Count the responses to this task instance's requests in this campaign, of all its attempts."""
        return self._number(select(func.count()).select_from(request.join(attempt)).where(self._is_response))

    def responses(self, limit: int) -> list[str]:
        """Return the first of them, in request order, as the ledger keeps them: JSON."""
        query = select(request.c.response).join(attempt).where(self._is_response).order_by(request.c.id).limit(limit)
        return self._store.fetch(lambda connection: list(connection.scalars(query)))

    def response_to(self, key: bytes) -> str | None:
        """Return the response to the request that holds a message, of any task; None where there is none."""
        its = and_(message.c.campaign_id == self._campaign_id, message.c.message_key == key)
        query = select(request.c.response).join(message, message.c.request_id == request.c.id).where(its)
        return self._store.fetch(lambda connection: connection.scalar(query))

    @property
    def _is_response(self) -> ColumnElement[bool]:
        here = request.c.campaign_id == self._campaign_id
        return and_(here, request.c.response.is_not(None), of_task(self._who))

    def _number(self, query: Select[Any]) -> int:
        return self._store.fetch(lambda connection: int(connection.scalar(query) or 0))


def _is_any(connection: Connection, query: Select[Any]) -> bool:
    return connection.scalar(query.limit(1)) is not None
