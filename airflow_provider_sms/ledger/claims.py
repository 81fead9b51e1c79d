"""The durable ledger of claims: who may POST which message, and what became of it.

One rule carries the promise: a message is POSTed only by the process that inserted its claim, and only after that
insert is durable. A claim is a row whose key is unique within its campaign, so there is no lease and no leader.

.. code-block:: text

    claimed ──► accepted | unknown | not_sent
    unknown ──► accepted | not_sent            by a late response, a person, or the balance
    unknown ──► superseded                     a policy lets its messages be sent again
    not_sent ──► accepted                      by a late response after a decision
    superseded ──► accepted | not_sent         by a late response, or a late refusal

``not_sent`` and ``superseded`` hold no messages, so that these can be claimed again. Messages are deleted only where
the poster itself knows that nothing was sent; otherwise they move to ``sms_superseded``. A late response is recorded in
any state, and takes back what is free. A claim has a deadline; past it the claim has lapsed, and the request is
unknown: :mod:`airflow_provider_sms.ledger.transitions` decides that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import and_, bindparam, delete, select, update

from airflow_provider_sms.exceptions import LedgerLostError
from airflow_provider_sms.ledger.attempts import enter_campaign, processes_of_try, register
from airflow_provider_sms.ledger.backend import campaign_lock, in_pieces, joined
from airflow_provider_sms.ledger.campaigns import open_pause
from airflow_provider_sms.ledger.holders import CampaignReader
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, SUPERSEDED, UNKNOWN, Claim, Claimant, Outcome
from airflow_provider_sms.ledger.schema import attempt, request
from airflow_provider_sms.ledger.transitions import (
    RECORD_RESPONSE,
    REQUESTS_AT_ONCE,
    fitting_cost,
    is_late,
    lapse,
    record,
    restore,
    supersede,
    values_of,
)
from airflow_provider_sms.service.elapsed import elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql.elements import BindParameter

    from airflow_provider_sms.ledger.account import Account
    from airflow_provider_sms.ledger.backend import LedgerBackend, RequestSize
    from airflow_provider_sms.ledger.campaigns import Pause
    from airflow_provider_sms.messages.message import Outgoing

FINISH_PATIENCE = 10.0
"""Seconds that the end of an attempt waits for another process's commit; short, since the wait is repeated."""


_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_ITS = and_(request.c.attempt_id == attempt.c.id, request.c.id.in_(_IDS))
_THIS = and_(attempt.c.id == bindparam("this"), attempt.c.started_at == bindparam("at"))
_STATES = select(request.c.id, request.c.state).select_from(attempt.outerjoin(request, _ITS)).where(_THIS)
"""The states of requests of an attempt; a row of nothing where it has none of them."""
_REQUESTS_OF_EVENTS = select(request.c.event_id, request.c.id).where(
    request.c.campaign_id == bindparam("this"), request.c.event_id.in_(_IDS)
)
"""The requests of a campaign that have one of some event ids."""


class _LateResponseError(Exception):
    """A response came after its request was closed: others may have its messages, so nobody may write beside it."""


class CampaignLedger(CampaignReader):
    """The ledger as one attempt of one task sees it: the claims of one campaign.

    Not thread-safe: one thread owns it.

    :param elapsed: seconds from any start, by a clock that nobody can set and that counts while the machine sleeps.
    :param account: the account that it is sent with; None means that nothing about it is recorded.
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
        account: Account | None = None,
    ) -> None:
        super().__init__(store, campaign_name, who)
        self._kind = kind
        self._account = account
        self.clock = store.clock if clock is None else clock
        self.elapsed = elapsed
        self.lapses_at = float("-inf")
        """When the claims of the last commit lapse, by :attr:`elapsed`: a deadline moves where a clock is set."""
        self.paused: Pause | None = None
        """The pause that held at the last commit."""
        self._last_claimed: int | None = None
        self.lost: LedgerLostError | None = None
        """The error that told that the ledger has gone back; None where it has not."""
        self._in_doubt: Sequence[int] = ()
        self._lock = campaign_lock(campaign_name)
        own = self._claimant_id = register(store, who, self.clock) if claimant_id is None else claimant_id
        made = processes_of_try(store, who, own)
        if own not in made:
            raise self._gone_back(())
        self._started_at, self.claimants = made[own], frozenset(made)
        self._campaign_id = store.save(
            self._lock, lambda connection: enter_campaign(connection, campaign_name, own, self.clock())
        )

    def _write(self, patience: float | None = None, *, shared: bool = False) -> AbstractContextManager[Connection]:
        return self._store.write(self._lock, shared=shared, patience=patience)

    def _check(self, connection: Connection) -> None:
        # After the query: a file gives the id of a campaign that was purged to another one.
        self._own_states(connection, ())

    def commit(
        self, *, outcomes: Sequence[Outcome] = (), chunks: Sequence[Outgoing] = (), claim_seconds: float = 0.0
    ) -> list[Claim]:
        """Record outcomes, then claim chunks, all in one durable transaction.

        While the campaign is paused, outcomes are recorded and nothing is claimed; :attr:`paused` then holds the pause.

        :param claim_seconds: after how many seconds the new claims lapse.
        :returns: one claim for each chunk; none at all while the campaign is paused.
        :raises LedgerError: when it was not committed; then nothing of it may be relied on, and nothing may be sent.
        """
        if all(outcome.state != NOT_SENT for outcome in outcomes):
            # It writes no rows but those of its own requests: others may run beside it.
            try:
                return self._commit(outcomes, chunks, claim_seconds, shared=True)
            except _LateResponseError:
                pass
        return self._commit(outcomes, chunks, claim_seconds, shared=False)

    def _commit(
        self, outcomes: Sequence[Outcome], chunks: Sequence[Outgoing], claim_seconds: float, *, shared: bool
    ) -> list[Claim]:
        claims: list[Claim] = []
        with self._write(shared=shared) as connection:
            states = self._own_states(connection, outcomes)
            self._require_whole(states, outcomes)
            if shared and any(is_late(each, states[each.request_id]) for each in outcomes):
                raise _LateResponseError
            self._record(connection, outcomes, states)
            self.paused = open_pause(connection, self._campaign_id)
            if self.paused is None and chunks:
                # The deadline counts from here: other processes may have kept this one waiting for the lock.
                self.lapses_at = self.elapsed() + claim_seconds
                claims = self._claim(connection, chunks, self.clock() + claim_seconds)
        self._in_doubt = ()
        self._last_claimed = max((claim.request_id or 0 for claim in claims), default=0) or self._last_claimed
        return claims

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Record the last outcomes, and release the claims whose own commit raised although it became durable.

        Nothing was posted under these, so they are released even where another task has called them unknown meanwhile.
        A request that may have been posted is never released: if its outcome was recorded and it is open again, the
        ledger has gone back.

        :raises LedgerLostError: the ledger has lost requests; the outcomes of the others are recorded.
        """
        # This is repeated, with waits in between: none may wait as long for other processes as a claim does.
        with self._write(patience=FINISH_PATIENCE) as connection:
            # Only here: a commit that claims some of them may have ended while this one waited for the lock.
            states = self._own_states(connection, outcomes, self._in_doubt)
            unposted = (CLAIMED, UNKNOWN, SUPERSEDED)
            given_back = [Outcome(each, NOT_SENT) for each in self._in_doubt if states.get(each) in unposted]
            known = [outcome for outcome in outcomes if outcome.request_id in states]
            self._record(connection, [*known, *given_back], states)
        self._in_doubt = ()
        self._require_whole(states, outcomes)

    def require_whole(self) -> None:
        """Refuse a ledger that no longer has what was committed to it: what it tells would be wrong."""
        self._require_whole(self._store.fetch(lambda connection: self._own_states(connection, ())), ())

    def known_events(self, events: Mapping[int, int]) -> set[int]:
        """Return the requests whose event id is recorded for another request of the campaign, too."""
        values = {"this": self._campaign_id, "ids": sorted(set(events.values()))}
        known = self._store.fetch(lambda connection: connection.execute(_REQUESTS_OF_EVENTS, values).all())
        return {each for each, its in events.items() if any(its == event and each != other for event, other in known)}

    def _own_states(
        self, connection: Connection, outcomes: Iterable[Outcome], unposted: Iterable[int] = ()
    ) -> dict[int, str]:
        """Return the states of requests that exist: those of outcomes, of claims not posted, and of the last claim."""
        ids = sorted(self._expected(outcomes).union(unposted))
        rows = connection.execute(_STATES, {"this": self._claimant_id, "at": self._started_at, "ids": ids}).all()
        if not rows:
            raise self._gone_back(self._expected(outcomes))
        return {request_id: state for request_id, state in rows if request_id is not None}

    def _expected(self, outcomes: Iterable[Outcome]) -> set[int]:
        """Return the requests that must be there. Commits are lost from the end: with the last claim, each is there."""
        last = () if self._last_claimed is None else (self._last_claimed,)
        return {outcome.request_id for outcome in outcomes}.union(last)

    def _require_whole(self, states: Collection[int], outcomes: Iterable[Outcome]) -> None:
        """Refuse a ledger that no longer has what was committed to it."""
        if lost := self._expected(outcomes).difference(states):
            raise self._gone_back(lost)

    def _gone_back(self, lost: Collection[int]) -> LedgerLostError:
        """Return the error for a ledger that has lost this attempt, or requests of it."""
        what = f"requests that were committed to it, the last of them {max(lost)}" if lost else "this attempt"
        self.lost = LedgerLostError(
            f"The ledger has lost {what}: it went back to an earlier state, as by a failover to a standby that lagged, "
            "or by an older copy put in its place, or a purge has forgotten the campaign. Nothing more is sent. It has "
            "forgotten people who were texted, so do not send this campaign again before they are in the ledger or out "
            "of the table"
        )
        return self.lost

    def _record(self, connection: Connection, outcomes: Sequence[Outcome], states: Mapping[int, str]) -> None:
        """Record outcomes."""
        now = self.clock()
        responses = [values_of(outcome, now) for outcome in outcomes if outcome.state == ACCEPTED]
        if responses:
            RECORD_RESPONSE.run(connection, *responses)
        for outcome in outcomes:
            if outcome.state != ACCEPTED:
                record(connection, outcome, now)
        if any(each.state == NOT_SENT or is_late(each, states[each.request_id]) for each in outcomes):
            restore(connection, self._campaign_id)

    def _claim(self, connection: Connection, chunks: Sequence[Outgoing], deadline: float) -> list[Claim]:
        claim = {
            "campaign_id": self._campaign_id,
            "attempt_id": self._claimant_id,
            "kind": self._kind,
            "state": CLAIMED,
            "claimed_at": self.clock(),
            "deadline": deadline,
            "account": None if self._account is None else self._account.key,
        }
        sizes = [self._size(chunk) for chunk in chunks]
        ids = self._in_doubt = self._store.insert_requests(connection, claim, sizes)
        if self._store.insert_messages(connection, self._campaign_id, ids, chunks) == sum(size for size, *_ in sizes):
            return [Claim(request_id, range(size), deadline) for request_id, (size, *_) in zip(ids, sizes, strict=True)]
        return [
            self._claim_in_part(connection, chunk, request_id, deadline)
            for chunk, request_id in zip(chunks, ids, strict=True)
        ]

    def _size(self, messages: Outgoing) -> RequestSize:
        parts = None if None in messages.parts else sum(cast("Sequence[int]", messages.parts))
        cost = None if self._account is None else self._account.cost(messages.destinations, messages.parts)
        return len(messages), parts, None if cost is None else fitting_cost(str(cost))

    def _shrink(self, connection: Connection, request_id: int, won: Outgoing) -> None:
        """Record of a new request that it has fewer messages than it was inserted with, or delete one that has none."""
        this = request.c.id == request_id
        values = dict(zip(("submitted", "planned_parts", "planned_cost"), self._size(won), strict=True))
        connection.execute(update(request).where(this).values(values) if len(won) else delete(request).where(this))

    def _claim_in_part(self, connection: Connection, chunk: Outgoing, request_id: int, deadline: float) -> Claim:
        """Return the claim of a chunk of which not all was free."""
        held_by = self._store.holders(connection, self._campaign_id, joined(chunk.keys))
        # The first place of each key: a key that came twice would be posted twice.
        places = {key: position for position, key in reversed(list(enumerate(chunk.keys)))}
        won = sorted(position for position in places.values() if held_by[position] == request_id)
        if len(won) < len(chunk):
            self._shrink(connection, request_id, chunk.at(won))
        return Claim(request_id if won else None, won, deadline)

    def lapse(self) -> None:
        """Record as unknown every request of the campaign whose claim has lapsed."""
        its = request.c.campaign_id == self._campaign_id
        self._store.save(self._lock, lambda connection: lapse(connection, its, self.clock()))

    def supersede(self, request_ids: Sequence[int]) -> int:
        """Let the messages of unknown requests be sent again, and return how many became free."""

        def write(some: Sequence[int]) -> int:
            here = self._campaign_id
            return self._store.save(self._lock, lambda connection: supersede(connection, here, some, self.clock()))

        return sum(map(write, in_pieces(request_ids, REQUESTS_AT_ONCE)))
