"""What the ledger tells of an account's balance: readings, and the requests that have moved it or may have.

:mod:`airflow_provider_sms.sending.evidence` follows the balance from one response to the next. That is right only
within a window from which nothing is missing. So a history has every request of the account between two moments that
was charged for, or may have been.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Float, and_, case, cast, delete, or_, select, update

from airflow_provider_sms.ledger.account import BALANCE, CHARGED, AccountHistory, KeptEvidence, Observation, OpenRequest
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.locks import BALANCE_LOCK, campaign_lock
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.schema import balance, campaign, decision, request
from airflow_provider_sms.ledger.transitions import lapse, state_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection
    from sqlalchemy.sql import Select

    from airflow_provider_sms.ledger.backend import LedgerBackend, Readable

OBSERVATIONS_AROUND = 200
"""Observations before and after the requests that are asked about: far more than are under way at once."""

LONGEST_REQUEST_SECONDS = 3600.0
"""Seconds from a request's claim to its outcome, at most. Earlier claims are not searched for open requests."""

DISORDER_SECONDS = 60.0
"""Seconds by which the times of two claims from different machines may contradict the order of their ids."""

IDS_OF_NO_ACCOUNT = 100_000
"""Ids below the first request asked about that are searched for requests without an account."""

IDS_BETWEEN = 2_000
"""Requests whose ids are this close share a history: separate ones would be mostly the same."""


def account_of(store: Readable, request_ids: Collection[int]) -> dict[int, str | None]:
    """Return the key of the account that each request was sent with; None where that was not recorded.

    :param request_ids: requests that the ledger does not have are left out.
    :raises LedgerError: when the ledger cannot be read.
    """
    found: dict[int, str | None] = {}
    with store.read() as connection:
        for piece in in_pieces(sorted(request_ids)):
            rows = connection.execute(select(request.c.id, request.c.account).where(request.c.id.in_(piece)))
            found.update((request_id, key) for request_id, key in rows)
    return found


def note_evidence(
    store: LedgerBackend,
    campaign_name: str,
    evidence: Mapping[int, KeptEvidence],
    *,
    keep_earlier_of: Collection[int] = (),
) -> None:
    """Record what the balance tells of a campaign's requests; no-op for requests that are not unknown.

    :param keep_earlier_of: requests whose evidence is recorded only where they have none yet.
    :raises LedgerError: when it was not committed.
    """
    with store.write(campaign_lock(campaign_name)) as connection:
        for request_id, kept in evidence.items():
            this = request.c.id == request_id
            lapse(connection, this, store.clock())
            noting = update(request).where(this, request.c.state == UNKNOWN)
            if request_id in keep_earlier_of:
                noting = noting.where(request.c.evidence.is_(None))
            connection.execute(noting.values(evidence=written_evidence(kept)))


def close_history(store: LedgerBackend, campaign_id: int, last_activity: float) -> None:
    """Forget what an account's balance was before the charges of one of its campaigns are deleted.

    Once the campaign is gone, its own charges would look like those of a request that was lost: one that was unknown at
    about that time, or a later one, where the balance was not observed in between. So no balance from before the
    campaign's end is kept, and unknown requests are detached from the account. A request keeps its account if the
    balance was observed between it and the campaign.

    :param campaign_id: the campaign's id.
    :param last_activity: when it was last used, seconds since the epoch.
    :raises LedgerError: when it was not committed.
    """
    of_campaign = request.c.campaign_id == campaign_id
    accounts = select(request.c.account).where(of_campaign, request.c.account.is_not(None)).distinct()
    unknown = select(request.c.id, request.c.account, request.c.claimed_at)
    with store.read() as connection:
        keys = set(connection.execute(accounts).scalars())
        if not keys:
            return
        others = list(connection.execute(select(campaign.c.id).where(campaign.c.id != campaign_id)).scalars())
        concerned = [
            row.id
            for piece in in_pieces(others)
            # By campaign and state: that index leads to the few that are open.
            for row in connection.execute(
                unknown.where(
                    request.c.campaign_id.in_(piece),
                    request.c.state.in_((CLAIMED, UNKNOWN)),
                    state_at(store.clock()) == UNKNOWN,
                )
            ).all()
            if row.account in keys and not _was_seen(connection, row.account, row.id, last_activity, row.claimed_at)
        ]
    for some in in_pieces(concerned):
        with store.write(BALANCE_LOCK) as connection:
            connection.execute(update(request).where(request.c.id.in_(some)).values(account=None))
    for key in sorted(keys):
        _forget_observations(store, key, last_activity)


def _forget_observations(store: LedgerBackend, key: str, until: float) -> None:
    """Forget the balances of an account that may have been observed before a moment; its charges stay known."""
    told = and_(request.c.account == key, request.c.remaining_balance.is_not(None), request.c.claimed_at <= until)
    with store.read() as connection:
        ids = list(connection.execute(select(request.c.id).where(told).order_by(request.c.id)).scalars())
    for some in in_pieces(ids):
        with store.write(BALANCE_LOCK) as connection:
            connection.execute(update(request).where(request.c.id.in_(some)).values(remaining_balance=None))
    asked = and_(
        balance.c.account == key,
        balance.c.asked_at <= until,
        # That an account was post-paid is no balance.
        balance.c.amount.is_not(None),
    )
    with store.write(BALANCE_LOCK) as connection:
        connection.execute(delete(balance).where(asked))


def _was_seen(connection: Connection, key: str, before_id: int, after: float, before: float) -> bool:
    """Return whether the balance of an account was seen between two moments.

    :param before_id: of the responses, only those to requests before this one count.
    """
    told = (
        select(request.c.claimed_at)
        .where(request.c.account == key, request.c.id < before_id, request.c.remaining_balance.is_not(None))
        .where(request.c.finished_at < before)
        .order_by(request.c.id.desc())
        .limit(1)
    )
    asked = (
        select(balance.c.asked_at)
        .where(balance.c.account == key, balance.c.amount.is_not(None))
        .where(balance.c.read_at < before)
        .order_by(balance.c.read_at.desc())
        .limit(1)
    )
    return any((connection.execute(query).scalar() or 0.0) > after for query in (told, asked))


def written_evidence(kept: KeptEvidence) -> str:
    """Return evidence as the ledger stores it: JSON."""
    return json.dumps(kept._asdict())


def kept_evidence(written: str | None) -> KeptEvidence | None:
    """Return evidence that the ledger has stored; None where it has none."""
    return None if written is None else KeptEvidence(**json.loads(written))


class _Row(NamedTuple):
    """A request, as far as it concerns its account. Times are seconds since the epoch."""

    id: int
    campaign_id: int
    kind: str
    state: str
    claimed_at: float
    deadline: float
    finished_at: float | None
    planned_parts: int | None
    least_price: str | None
    most_price: str | None
    cost: str | None
    remaining_balance: str | None
    evidence: str | None


def read_history(store: Readable, key: str, request_ids: Collection[int]) -> AccountHistory:
    """Return what is known of an account around some of its requests.

    :param key: the account's key.
    :param request_ids: a verdict is wanted on those that are unknown.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        ledger = _Account(connection, store.clock(), key)
        return ledger.history(ledger.rows(request_ids))


def read_histories(store: Readable, key: str, request_ids: Collection[int]) -> Iterator[AccountHistory]:
    """Return the histories around some requests of an account: one for requests that lie close together.

    Each unknown request is asked about in one of them. The database stays open meanwhile.

    :param key: the account's key.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        ledger = _Account(connection, store.clock(), key)
        for rows in ledger.runs(ledger.rows(request_ids)):
            yield ledger.history(rows)


class _Account:
    """Reads the requests and the readings of one account, within one transaction.

    :param now: seconds since the epoch.
    :param key: the account's key.
    """

    def __init__(self, connection: Connection, now: float, key: str) -> None:
        self._connection = connection
        self._now = now
        self._key = key
        self._prices: dict[int, Sequence[Decimal]] = {}

    def rows(self, request_ids: Collection[int]) -> list[_Row]:
        """Return those of the requests that are unknown, in the order of their ids."""
        pieces = in_pieces(sorted(request_ids))
        found = [row for piece in pieces for row in self._read(self._select().where(request.c.id.in_(piece)))]
        return [row for row in found if row.state == UNKNOWN]

    def runs(self, rows: Iterable[_Row]) -> Iterator[list[_Row]]:
        """Divide requests, in order, into runs that lie close together."""
        run: list[_Row] = []
        for row in rows:
            near = run and (row.id - run[-1].id <= IDS_BETWEEN or row.claimed_at <= max(map(self._settled, run)))
            if run and not near:
                yield run
                run = []
            run.append(row)
        if run:
            yield run

    def history(self, asked: Sequence[_Row]) -> AccountHistory:
        """Return what is known around the requests that are asked about."""
        if not asked:
            return AccountHistory((), ())
        begin = min(row.claimed_at for row in asked)
        start, end = self._start(asked[0].id, begin), self._end(asked[-1].id, max(map(self._settled, asked)))
        observations: list[Observation] = []
        open_requests: list[OpenRequest] = []
        rows = self._around(asked, start, end)
        closed_by = self._closed_by(rows)
        wanted = {row.id for row in asked}
        for row in rows:
            seen, settled = self._observed(row), self._settled(row, closed_by.get(row.id))
            if seen is not None and start <= seen.begin and seen.end <= end:
                observations.append(seen)
            elif start < settled and row.claimed_at < end:
                open_requests += self._open(row, closed_by.get(row.id), settled, is_asked=row.id in wanted)
        observations += self._readings(start, end)
        open_requests += self._of_no_account(asked, begin)
        return AccountHistory(sorted(observations, key=lambda each: each.end), open_requests)

    def _start(self, first_id: int, begin: float) -> float:
        """Return the moment at which the history begins, with enough observations between it and a request.

        :param first_id: the first request that is asked about.
        :param begin: when it was claimed.
        """
        ended = and_(self._observing(), request.c.id < first_id, request.c.finished_at < begin)
        query = select(request.c.claimed_at).where(ended).order_by(request.c.id.desc()).limit(OBSERVATIONS_AROUND)
        moments = list(self._connection.execute(query).scalars())
        return min(moments) if len(moments) == OBSERVATIONS_AROUND else float("-inf")

    def _end(self, last_id: int, settled: float) -> float:
        """Return the moment at which the history ends, likewise.

        :param last_id: the last request that is asked about.
        :param settled: when all that are asked about have settled.
        """
        later = and_(self._observing(), request.c.id > last_id, request.c.claimed_at > settled)
        query = select(request.c.finished_at).where(later).order_by(request.c.id).limit(OBSERVATIONS_AROUND)
        moments = list(self._connection.execute(query).scalars())
        return max(moments) if len(moments) == OBSERVATIONS_AROUND else float("inf")

    def _around(self, asked: Sequence[_Row], start: float, end: float) -> list[_Row]:
        """Return the requests that were charged between two moments, or may have been."""
        charged = or_(request.c.remaining_balance.is_(None), request.c.finished_at >= start)
        query = self._select().where(request.c.account == self._key, request.c.claimed_at <= end, charged)
        # By id, almost exactly the order of the claims: no other account's rows are read.
        ids = select(request.c.id).where(request.c.account == self._key).limit(1)
        long_ago = start - LONGEST_REQUEST_SECONDS
        before = ids.where(request.c.id < asked[0].id, request.c.claimed_at < long_ago).order_by(request.c.id.desc())
        after = ids.where(request.c.id > asked[-1].id, request.c.claimed_at > end + DISORDER_SECONDS)
        if start > float("-inf") and (first := self._connection.execute(before).scalar()) is not None:
            query = query.where(request.c.id > first)
        if end < float("inf"):
            last = self._connection.execute(after.order_by(request.c.id)).scalar()
            query = query if last is None else query.where(request.c.id < last)
        return self._read(query.order_by(request.c.id))

    def _of_no_account(self, asked: Sequence[_Row], begin: float) -> Iterator[OpenRequest]:
        """Yield the requests of that time whose account is not known: they may have been charged to this one.

        An earlier version of this package records no account, and may still run beside this one.

        :param begin: when the first of the requests that are asked about was claimed.
        """
        query = self._select().where(
            request.c.account.is_(None),
            request.c.state != NOT_SENT,
            request.c.id > asked[0].id - IDS_OF_NO_ACCOUNT,
            request.c.claimed_at <= max(map(self._settled, asked)),
        )
        for row in self._read(query):
            settled = row.finished_at if row.state == ACCEPTED and row.finished_at is not None else self._settled(row)
            if settled >= begin:
                most = None if row.cost is None else Decimal(row.cost)
                in_flight = row.state == CLAIMED
                yield OpenRequest(
                    row.id, Decimal(0), most, None, row.claimed_at, settled, is_asked=False, in_flight=in_flight
                )

    def _observed(self, row: _Row) -> Observation | None:
        """Return the balance that the response to a request stated; None where it stated none, or no charge."""
        if row.remaining_balance is None or row.finished_at is None:
            return None
        cost = "0" if row.cost is None and row.state == NOT_SENT else row.cost
        if cost is None:
            return None
        amount, end = Decimal(row.remaining_balance), row.finished_at
        return Observation(amount, Decimal(cost), row.claimed_at, end, row.id)

    def _open(self, row: _Row, closed_by: str | None, settled: float, *, is_asked: bool) -> Iterator[OpenRequest]:
        """Yield a request as one that may have been charged for, unless it surely was not.

        :param closed_by: who decided that it was accepted or not sent; None where nobody did.
        :param settled: when it was charged for at the latest, seconds since the epoch.
        """
        # A person may be wrong about it.
        is_sure = closed_by is None or closed_by == BALANCE
        is_charged = row.state == ACCEPTED and is_sure
        if row.state == NOT_SENT and is_sure:
            return
        bounds = self._bounds(row)
        if is_charged and row.cost is not None:
            cost = Decimal(row.cost)
            if not cost:
                return
            bounds = (cost, cost, cost)
        yield OpenRequest(
            row.id,
            *bounds,
            row.claimed_at,
            settled,
            is_asked=is_asked,
            is_charged=is_charged,
            in_flight=row.state == CLAIMED,
        )

    def _settled(self, row: _Row, closed_by: str | None = None) -> float:
        """Return the moment before which a request was charged for, if at all.

        :param closed_by: who decided that it was accepted or not sent; None where nobody did.
        """
        if row.state in (ACCEPTED, NOT_SENT) and closed_by is None and row.finished_at is not None:
            return row.finished_at
        if row.state == CLAIMED:
            return row.deadline
        kept = kept_evidence(row.evidence)
        settles_at = None if kept is None else kept.settles_at
        if kept is not None and kept.verdict == CHARGED and settles_at is not None:
            return settles_at
        return row.deadline

    def _bounds(self, row: _Row) -> tuple[Decimal, Decimal | None, Decimal | None]:
        """Return the least and the most that a request cost, and the least that all of it cost."""
        prices = list(self._prices_of(row.campaign_id))
        if not prices or row.least_price != row.most_price:
            # Its recipients may be in networks that no response was about, but for which the caller named a price.
            prices += [Decimal(price) for price in (row.least_price, row.most_price) if price is not None]
        if row.kind == "group" or row.planned_parts is None or not prices:
            return Decimal(0), None, None
        least, most = min(prices), max(prices)
        return least, most * row.planned_parts, least * row.planned_parts

    def _prices_of(self, campaign_id: int) -> Sequence[Decimal]:
        """Return what the service charged for an SMS part; empty where no response tells.

        The responses are those in the campaign; where it has none yet, those to the account's last requests.
        """
        if campaign_id not in self._prices:
            is_free = case((cast(request.c.cost, Float) == 0, 1), else_=0)
            priced = (
                select(request.c.least_price, request.c.most_price, is_free)
                .where(request.c.account == self._key, request.c.state == ACCEPTED)
                .where(request.c.remaining_balance.is_not(None), request.c.least_price.is_not(None))
            )
            found = self._connection.execute(priced.where(request.c.campaign_id == campaign_id).distinct()).all()
            if not found:
                last = priced.order_by(request.c.id.desc()).limit(OBSERVATIONS_AROUND)
                found = self._connection.execute(last).all()
            # A response that charged nothing has no price: the expected one is still there.
            prices = [Decimal(0) if free else Decimal(price) for *both, free in found for price in both]
            self._prices[campaign_id] = prices
        return self._prices[campaign_id]

    def _closed_by(self, rows: Iterable[_Row]) -> dict[int, str]:
        """Return who last decided what became of each request without a response."""
        ids = [row.id for row in rows if row.state in (ACCEPTED, NOT_SENT) and row.remaining_balance is None]
        who: dict[int, str] = {}
        for piece in in_pieces(ids):
            query = (
                select(decision.c.request_id, decision.c.decided_by)
                .where(decision.c.request_id.in_(piece), decision.c.decision.in_((ACCEPTED, NOT_SENT)))
                .order_by(decision.c.id)
            )
            who.update((request_id, by) for request_id, by in self._connection.execute(query))
        return who

    def _readings(self, start: float, end: float) -> Iterator[Observation]:
        """Return the balances that were asked for between two moments."""
        columns = (balance.c.amount, balance.c.asked_at, balance.c.read_at)
        query = select(*columns).where(balance.c.account == self._key, balance.c.amount.is_not(None))
        if start > float("-inf"):
            query = query.where(balance.c.read_at > start)
        for amount, asked_at, read_at in self._connection.execute(query.order_by(balance.c.read_at)):
            if start <= asked_at and read_at <= end:
                yield Observation(Decimal(amount), Decimal(0), asked_at, read_at)

    def _observing(self) -> Any:
        return and_(
            request.c.account == self._key,
            request.c.remaining_balance.is_not(None),
            request.c.finished_at.is_not(None),
        )

    def _select(self) -> Select[Any]:
        state = state_at(self._now).label("state")
        return select(*(state if name == "state" else request.c[name] for name in _Row._fields))

    def _read(self, query: Select[Any]) -> list[_Row]:
        return [_Row(*row) for row in self._connection.execute(query)]
