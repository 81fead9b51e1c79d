"""The durable ledger of claims: who may POST which message, and what became of it.

One rule carries the promise: a message is POSTed only by the process that inserted its claim, and only after that
insert is durable. A claim is a row whose key is unique within its campaign, so there is no lease and no leader.

.. code-block:: text

    claimed ──► accepted | unknown | not_sent
    unknown ──► accepted | not_sent            by a late response, or by a person's decision

``not_sent`` releases its messages: their rows are deleted, so that they can be claimed again, or go back to the unknown
request that they were taken from. A claim has a deadline; past it the claim has lapsed, and the request is unknown:
:mod:`airflow_provider_sms.ledger.transitions` decides that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import and_, delete, select, update

from airflow_provider_sms.exceptions import LedgerError, LedgerLostError
from airflow_provider_sms.ledger.attempts import (
    EarlierClaims,
    earlier_legs,
    of_task,
    register,
    registered,
)
from airflow_provider_sms.ledger.backend import again_if_busy, enter_campaign
from airflow_provider_sms.ledger.holders import Holders
from airflow_provider_sms.ledger.locks import campaign_lock
from airflow_provider_sms.ledger.model import (
    ACCEPTED,
    CLAIMED,
    NOT_SENT,
    UNKNOWN,
    Claim,
    Claimant,
    Outcome,
)
from airflow_provider_sms.ledger.pauses import open_pause
from airflow_provider_sms.ledger.request_queries import KeptResponses, read_records, requests_of_legs, resent_by
from airflow_provider_sms.ledger.schema import claimant, request
from airflow_provider_sms.ledger.transitions import (
    PATIENCE_SECONDS,
    RECORD_RESPONSE,
    fitting_cost,
    lapse,
    late_responses,
    record,
    take_again,
    take_over,
    values_of,
)
from airflow_provider_sms.service.elapsed import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import ColumnElement

    from airflow_provider_sms.ledger.account import Account
    from airflow_provider_sms.ledger.backend import LedgerBackend, RequestSize
    from airflow_provider_sms.ledger.holders import Holder
    from airflow_provider_sms.ledger.model import Chunk, TextedTwice
    from airflow_provider_sms.ledger.pauses import Pause
    from airflow_provider_sms.ledger.request_queries import RequestRow

FINISH_PATIENCE = 10.0
"""Seconds that the end of an attempt waits for another process's commit; short, since the wait is repeated."""


class _LateResponseError(Exception):
    """A response came after its request was closed: others may have its messages, so nobody may write beside it."""


class CampaignLedger:
    """The ledger as one attempt of one task sees it: the claims of one campaign.

    Not thread-safe: one thread owns it.

    :param store: the open database.
    :param campaign_name: within it each message goes out at most once.
    :param who: this attempt.
    :param kind: ``bulk`` or ``group``.
    :param clock: seconds since the epoch; None means the ledger's own.
    :param elapsed: seconds from any start, by a clock that nobody can set and that counts while the machine sleeps.
    :param claimant_id: this attempt's claimant, where it is registered already; None means that it is registered here.
    :param resumed: whether this is a later leg of the attempt: then the requests of its earlier legs count as its own.
    :param account: the account that it is sent with; None means that nothing about it is recorded.
    :param patience: seconds for which it tries to record its outcomes, and expects those of others after their claims.
    """

    def __init__(
        self,
        store: LedgerBackend,
        campaign_name: str,
        who: Claimant,
        *,
        kind: str = "bulk",
        clock: Callable[[], float] | None = None,
        elapsed: Callable[[], float] = elapsed,
        claimant_id: int | None = None,
        resumed: bool = False,
        account: Account | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.campaign_name = campaign_name
        self._store = store
        self._who = who
        self._resumed = resumed
        self._kind = kind
        self._account = account
        self.clock = store.clock if clock is None else clock
        self.elapsed = elapsed
        self.lapses_at = float("-inf")
        """When the claims of the last commit lapse, by :attr:`elapsed`: a deadline moves where a clock is set."""
        self.paused: Pause | None = None
        """The pause that held at the last commit."""
        self.patience = patience
        self.texted_twice: list[TextedTwice] = []
        """Messages of requests that were accepted after another request had claimed them."""
        self._last_claimed: int | None = None
        self._in_doubt: Sequence[int] = ()
        self._lock = campaign_lock(campaign_name)
        self._claimant_id = register(store, who, self.clock) if claimant_id is None else claimant_id
        self._registered = self._require_registered(who.columns())
        self.earlier_legs = earlier_legs(store, who, self._claimant_id) if resumed else frozenset()
        self._campaign_id = again_if_busy(self._enter)
        self._holders = Holders(store, self._campaign_id, self._claimant_id, self.earlier_legs, self.clock)
        self.responses = KeptResponses(store, self._campaign_id, who)
        """The responses of the service in the campaign."""

    def _enter(self) -> int:
        with self._write() as connection:
            return enter_campaign(connection, self.campaign_name, self.clock())

    def _write(self, patience: float | None = None, *, shared: bool = False) -> AbstractContextManager[Connection]:
        return self._store.write(self._lock, shared=shared, patience=patience)

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, Holder]:
        """Return the requests that hold messages, by message key; a key that is free is missing.

        :raises LedgerError: when the ledger cannot be read, or the campaign was purged.
        """
        with self._store.read() as connection:
            holders = self._holders.find(connection, keys, patience=self.patience)
            # After the query: it must not have found the messages of another campaign.
            self._require_campaign(connection)
        return holders

    def records(self, keys: Sequence[bytes]) -> tuple[dict[bytes, int], list[RequestRow]]:
        """Return the id of the request that holds each key, and those requests.

        :raises LedgerError: when the ledger cannot be read.
        """
        with self._store.read() as connection:
            held = self._holders.request_ids(connection, keys)
            return held, read_records(connection, set(held.values()), self._this_attempt, self.clock())

    def commit(
        self, *, outcomes: Sequence[Outcome] = (), chunks: Sequence[Chunk] = (), claim_seconds: float = 0.0
    ) -> list[Claim]:
        """Record outcomes, then claim chunks, all in one durable transaction.

        While the campaign is paused, outcomes are recorded and nothing is claimed; :attr:`paused` then holds the pause.

        :param outcomes: outcomes of requests that this attempt claimed.
        :param chunks: the messages to claim.
        :param claim_seconds: after how many seconds the new claims lapse.
        :returns: one claim for each chunk; none at all while the campaign is paused.
        :raises LedgerError: when it was not committed; then nothing of it may be relied on, and nothing may be sent.
        """
        if self._is_plain(outcomes, chunks):
            try:
                return self._commit(outcomes, chunks, claim_seconds, shared=True)
            except _LateResponseError:
                pass
        return self._commit(outcomes, chunks, claim_seconds, shared=False)

    def _require_campaign(self, connection: Connection) -> None:
        """Refuse to go on in a campaign that a purge has forgotten: its id may be another campaign's now."""
        if not self._store.has_campaign(connection, self._campaign_id, self.campaign_name):
            raise LedgerError(
                f"Campaign {self.campaign_name} was purged while this attempt used it. Nothing more is sent by this "
                "attempt; the next one begins the campaign anew"
            )

    def _is_plain(self, outcomes: Sequence[Outcome], chunks: Sequence[Chunk]) -> bool:
        """Return whether a commit writes no rows but those of its own requests: then others may run beside it.

        Messages that are released, or taken over, belong to other requests, too.
        """
        released = any(outcome.state == NOT_SENT for outcome in outcomes)
        return not released and not any(chunk.take_over for chunk in chunks)

    def _commit(
        self, outcomes: Sequence[Outcome], chunks: Sequence[Chunk], claim_seconds: float, *, shared: bool
    ) -> list[Claim]:
        claims: list[Claim] = []
        with self._write(shared=shared) as connection:
            states = self._own_states(connection, outcomes)
            self._require_whole(states, outcomes)
            if shared and late_responses(outcomes, states):
                raise _LateResponseError
            twice = self._record(connection, outcomes, states)
            self.paused = open_pause(connection, self._campaign_id)
            if self.paused is None and chunks:
                self._require_campaign(connection)
                # The deadline counts from here: other processes may have kept this one waiting for the lock.
                self.lapses_at = self.elapsed() + claim_seconds
                claims = self._claim(connection, chunks, self.clock() + claim_seconds)
        self.texted_twice += twice
        self._in_doubt = ()
        self._last_claimed = max((claim.request_id or 0 for claim in claims), default=0) or self._last_claimed
        return claims

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Record the last outcomes, and release the claims whose own commit raised although it became durable.

        Nothing was posted under these, so they are released even where another task has called them unknown meanwhile.
        A request that may have been posted is never released: if its outcome was recorded and it is open again, the
        ledger has gone back.

        :raises LedgerLostError: the ledger has lost requests; the outcomes of the others are recorded.
        :raises LedgerError: when it was not committed.
        """
        # This is repeated, with waits in between: none may wait as long for other processes as a claim does.
        with self._write(patience=FINISH_PATIENCE) as connection:
            # Only here: a commit that claims some of them may have ended while this one waited for the lock.
            states = self._own_states(connection, outcomes, self._in_doubt)
            given_back = [Outcome(each, NOT_SENT) for each in self._in_doubt if states.get(each) in (CLAIMED, UNKNOWN)]
            known = [outcome for outcome in outcomes if outcome.request_id in states]
            twice = self._record(connection, [*known, *given_back], states)
        self.texted_twice += twice
        self._in_doubt = ()
        self._require_whole(states, outcomes)

    def _require_registered(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return this attempt's row in the ledger, by column.

        A server that went back may give the id to another attempt.

        :param wanted: values that the row must have.
        :raises LedgerLostError: the ledger does not have the attempt.
        """
        row = registered(self._store, self._claimant_id)
        if row is None or any(row[name] != value for name, value in wanted.items()):
            raise LedgerLostError("The ledger has lost this attempt, which was committed to it. Nothing more is sent")
        return row

    def known_events(self, events: Mapping[int, int]) -> set[int]:
        """Return the requests whose event id is recorded for another request of the campaign, too.

        :param events: the event id of each request.
        :raises LedgerError: when the ledger cannot be read.
        """
        holders: dict[int, set[int]] = {}
        for event_id, request_id in self._store.requests_of_events(self._campaign_id, sorted(set(events.values()))):
            holders.setdefault(event_id, set()).add(request_id)
        return {each for each, event_id in events.items() if holders.get(event_id, set()) - {each}}

    def has_unknown(self) -> bool:
        """Return whether any request of the campaign is unknown, even one whose messages others have taken over.

        :raises LedgerError: when the ledger cannot be read.
        """
        unknown = select(request.c.id).where(request.c.campaign_id == self._campaign_id, request.c.state == UNKNOWN)
        with self._store.read() as connection:
            return connection.execute(unknown.limit(1)).scalar() is not None

    def _own_states(
        self, connection: Connection, outcomes: Iterable[Outcome], unposted: Iterable[int] = ()
    ) -> dict[int, str]:
        """Return the states of requests that exist: those of outcomes, of claims not posted, and of the last claim."""
        ids = {outcome.request_id for outcome in outcomes}.union(unposted)
        if self._last_claimed is not None:
            ids.add(self._last_claimed)
        return self._store.own_states(connection, self._registered, ids) if ids else {}

    def _require_whole(self, states: Collection[int], outcomes: Iterable[Outcome]) -> None:
        """Refuse a ledger that no longer has what was committed to it.

        Commits are lost from the end. So where the last claim exists, every earlier one does.

        :param states: the requests that were found.
        """
        wanted = {outcome.request_id for outcome in outcomes}
        if self._last_claimed is not None:
            wanted.add(self._last_claimed)
        if lost := sorted(wanted.difference(states)):
            raise LedgerLostError(
                f"The ledger has lost requests that were committed to it, the last of them {lost[-1]}: it went back to "
                "an earlier state, as by a failover to a standby that lagged, or by an older copy put in its place. "
                "Nothing more is sent. It has forgotten people who were texted, so do not send this campaign again "
                "before they are in the ledger or out of the table"
            )

    def _record(
        self, connection: Connection, outcomes: Sequence[Outcome], states: Mapping[int, str]
    ) -> list[TextedTwice]:
        """Record outcomes, and return the messages that turn out to have two requests.

        :param states: the states of their requests, before.
        """
        now = self.clock()
        responses = [values_of(outcome, now) for outcome in outcomes if outcome.state == ACCEPTED]
        if responses:
            RECORD_RESPONSE.run(connection, *responses)
        for outcome in outcomes:
            if outcome.state != ACCEPTED:
                record(connection, outcome, now)
        return [
            twice
            for outcome in late_responses(outcomes, states)
            for twice in take_again(self._store, connection, self._campaign_id, outcome)
        ]

    def _claim(self, connection: Connection, chunks: Sequence[Chunk], deadline: float) -> list[Claim]:
        claim = {
            "campaign_id": self._campaign_id,
            "claimant_id": self._claimant_id,
            "kind": self._kind,
            "state": CLAIMED,
            "claimed_at": self.clock(),
            "deadline": deadline,
            "account": None if self._account is None else self._account.key,
        }
        sizes = [self._size(chunk.destinations, chunk.parts) for chunk in chunks]
        ids = self._in_doubt = self._store.insert_requests(connection, claim, sizes)
        if self._store.insert_messages(connection, self._campaign_id, ids, chunks) == sum(size for size, *_ in sizes):
            return [Claim(request_id, range(size), deadline) for request_id, (size, *_) in zip(ids, sizes, strict=True)]
        return [
            self._claim_in_part(connection, chunk, request_id, deadline)
            for chunk, request_id in zip(chunks, ids, strict=True)
        ]

    def _size(self, destinations: Sequence[str | None], parts: Sequence[int | None]) -> RequestSize:
        """Return the size of a request, from the destinations and the SMS parts of its messages."""
        planned_parts = sum(cast("Sequence[int]", parts)) if parts and None not in parts else None
        cost = None if self._account is None else fitting_cost(str(self._account.cost(destinations, parts)))
        return len(destinations), planned_parts, cost

    def _shrink(self, connection: Connection, request_id: int, chunk: Chunk, won: Sequence[int]) -> None:
        """Record of a new request that it has fewer messages than it was inserted with, or delete one that has none."""
        this = request.c.id == request_id
        parts = [chunk.parts[place] for place in won] if chunk.parts else []
        size = self._size([chunk.destinations[place] for place in won], parts)
        values = dict(zip(("submitted", "planned_parts", "planned_cost"), size, strict=True))
        connection.execute(update(request).where(this).values(values) if won else delete(request).where(this))

    def _claim_in_part(self, connection: Connection, chunk: Chunk, request_id: int, deadline: float) -> Claim:
        """Return the claim of a chunk of which not all was free, and take over the messages that are sent again."""
        for key in chunk.keys:
            # Only this chunk's keys: take_over may still name messages that an earlier claim lost.
            if key in chunk.take_over:
                self._take_over(connection, key, chunk.take_over[key], request_id)
        held_by = self._holders.request_ids(connection, chunk.keys)
        # The first place of each key: a key that came twice would be posted twice.
        places = {key: position for position, key in reversed(list(enumerate(chunk.keys)))}
        won = sorted(position for key, position in places.items() if held_by[key] == request_id)
        if len(won) < len(chunk.keys):
            self._shrink(connection, request_id, chunk, won)
        return Claim(request_id if won else None, won, deadline)

    def _take_over(self, connection: Connection, key: bytes, unknown_id: int, request_id: int) -> None:
        """Move a message from a request that is unknown to a new one; no-op when anything has changed meanwhile."""
        lapse(connection, request.c.id == unknown_id, self.clock())
        take_over(connection, self._campaign_id, key, unknown_id, request_id)

    def lapse(self) -> None:
        """Record as unknown every request of the campaign whose claim has lapsed.

        :raises LedgerError: when it was not committed.
        """

        def write() -> None:
            with self._write() as connection:
                lapse(connection, request.c.campaign_id == self._campaign_id, self.clock())

        again_if_busy(write)

    @property
    def _this_attempt(self) -> ColumnElement[bool]:
        """The condition for its claimants: Airflow may run an attempt twice at once, and a deferred one has several."""
        if self._resumed:
            return and_(of_task(self._who), claimant.c.try_number == self._who.try_number)
        return claimant.c.id == self._claimant_id

    def earlier(self) -> EarlierClaims:
        """Return what earlier attempts of this task instance hold.

        :raises LedgerError: when the ledger cannot be read.
        """
        return EarlierClaims(self._store, self._campaign_id, self._who, self._claimant_id)

    def requests_of_earlier_legs(self) -> Iterator[RequestRow]:
        """Return the requests of earlier legs of this attempt that were sent or may have been, in order.

        They are read one by one, so the database must stay open meanwhile.

        :raises LedgerError: when the ledger cannot be read.
        """
        return requests_of_legs(self._store, self._campaign_id, self.earlier_legs)

    def resent_by_earlier_legs(self) -> frozenset[bytes]:
        """Return the keys of the unknown messages that earlier legs of this attempt posted again.

        :raises LedgerError: when the ledger cannot be read.
        """
        return resent_by(self._store, self._campaign_id, self.earlier_legs)
