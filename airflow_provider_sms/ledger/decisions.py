"""What people decide about requests whose outcome is unknown, or what the balance proves, and who decided."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, select, update

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.ledger.account import BALANCE, CHARGED
from airflow_provider_sms.ledger.account_history import kept_evidence, written_evidence
from airflow_provider_sms.ledger.attempts import ADOPTION, of_task
from airflow_provider_sms.ledger.backend import in_pieces
from airflow_provider_sms.ledger.frequency_cap import lock_groups
from airflow_provider_sms.ledger.locks import ADOPTION_LOCK, DECISION_LOCK, campaign_lock
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, NOT_SENT, UNKNOWN
from airflow_provider_sms.ledger.request_queries import read_requests
from airflow_provider_sms.ledger.schema import campaign, claimant, decision, message, request
from airflow_provider_sms.ledger.transitions import current_state, fitting_cost, lapse, release, take_back

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.account import KeptEvidence
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant, RequestState
    from airflow_provider_sms.ledger.request_queries import RequestRow


RESEND = "resend"
FAIL = "fail"
SETTLED = "settled"
"""Nobody decided: the request had an outcome by the time of the person's answer."""

REQUESTS_AT_ONCE = 20
"""Requests closed in one transaction, up to 2,000 messages: a send of the campaign waits for a fraction of a second."""

_NO_PROOF: Mapping[str, str] = MappingProxyType({})


def resolve(store: LedgerBackend, request_id: int, state: str, who: str) -> int:
    """Close an unknown request by a person's decision.

    :param state: ``accepted``, or ``not_sent``, which frees its messages to be sent again.
    :param who: the person, for the record.
    :returns: how many messages the decision concerned.
    :raises InputError: there is no such request, or it is not unknown.
    :raises LedgerError: when it was not committed.
    """
    if not 0 < request_id < 2**63:
        raise InputError(f"The ledger has no request {request_id}")
    with store.read() as connection:
        name: str | None = connection.execute(
            select(campaign.c.name).select_from(request.join(campaign)).where(request.c.id == request_id)
        ).scalar()
    if name is None:
        raise InputError(f"The ledger has no request {request_id}")
    with store.write(campaign_lock(name)) as connection:
        groups = lock_groups(store, connection, [request_id]) if state == NOT_SENT else ()
        return _close(connection, request_id, state, who, now=store.clock(), groups=groups)


def resolve_all(
    store: LedgerBackend, campaign_name: str, request_ids: Sequence[int], state: str, who: str
) -> Iterator[dict[int, int]]:
    """Close unknown requests of a campaign, a few in each transaction; a request that has an outcome by then keeps it.

    :param state: ``accepted``, or ``not_sent``, which frees their messages to be sent again.
    :param who: the person, for the record.
    :returns: after each commit the requests that it closed, each with the count of its messages.
    :raises LedgerError: when a commit failed; what was yielded before it stays closed.
    """
    for some in in_pieces(request_ids, REQUESTS_AT_ONCE):
        closed: dict[int, int] = {}
        with store.write(campaign_lock(campaign_name)) as connection:
            groups = lock_groups(store, connection, some) if state == NOT_SENT else ()
            for request_id in some:
                with suppress(InputError):  # it has an outcome since
                    closed[request_id] = _close(connection, request_id, state, who, now=store.clock(), groups=groups)
        yield closed


def close_by_balance(
    store: LedgerBackend, campaign_name: str, closed: Mapping[int, tuple[RequestState, KeptEvidence]]
) -> dict[int, int]:
    """Close unknown requests of a campaign as the balance decides, a few in each transaction.

    A request that has an outcome by then keeps it.

    :param closed: by request, ``accepted`` or ``not_sent``, and the evidence.
    :returns: the requests that it closed, each with the count of the messages that it holds or has freed.
    :raises LedgerError: when a commit failed; what was committed before it stays closed.
    """
    done: dict[int, int] = {}
    for some in in_pieces(sorted(closed), REQUESTS_AT_ONCE):
        held: dict[int, int] = {}
        with store.write(campaign_lock(campaign_name)) as connection:
            freed = [each for each in some if closed[each][0] == NOT_SENT]
            groups = lock_groups(store, connection, freed) if freed else ()
            for request_id in some:
                state, evidence = closed[request_id]
                proof = {"reason": evidence.words, "evidence": written_evidence(evidence)}
                with suppress(InputError):  # it has an outcome since
                    held[request_id] = _close(
                        connection, request_id, state, BALANCE, now=store.clock(), groups=groups, proof=proof
                    )
        done.update(held)
    return done


def _close(
    connection: Connection,
    request_id: int,
    state: str,
    who: str,
    *,
    now: float,
    groups: Collection[int],
    proof: Mapping[str, str] = _NO_PROOF,
) -> int:
    """Close an unknown request, and return how many messages it holds or frees.

    :param now: seconds since the epoch.
    :param groups: contact groups in which the request has contacts, and whose locks are held; needed for ``not_sent``.
    Of an accepted one, it states what the evidence of the balance tells: the sum, and the parts.

    :param proof: the balance's evidence and its words, where it decides; empty where a person does.
    :raises InputError: it is not unknown; then nothing has changed.
    """
    lapse(connection, request.c.id == request_id, now)
    written = (
        proof.get("evidence")
        or connection.execute(select(request.c.evidence).where(request.c.id == request_id)).scalar()
    )
    told = kept_evidence(written)
    sums: dict[str, Any] = {}
    if state == ACCEPTED and told is not None and told.verdict == CHARGED:
        sums["cost"] = None if told.amount is None else fitting_cost(told.amount)
        sums["parts"] = None if told.in_part else request.c.planned_parts
    settled = connection.execute(
        update(request)
        .where(request.c.id == request_id, request.c.state == UNKNOWN)
        .values(state=state, finished_at=func.coalesce(request.c.finished_at, request.c.claimed_at), **proof, **sums)
    )
    if settled.rowcount == 0:
        raise InputError(_not_unknown(connection, request_id))
    if state == ACCEPTED:
        take_back(connection, request_id)
    its = select(func.count()).select_from(message).where(message.c.request_id == request_id)
    held: int = connection.execute(its).scalar_one()
    if state == NOT_SENT:
        release(connection, request_id, groups)
    decided = {"decision": state, "decided_by": who, "decided_at": now}
    asked = update(decision).where(decision.c.request_id == request_id, decision.c.decision.is_(None))
    if connection.execute(asked.values(decided)).rowcount == 0:
        connection.execute(insert(decision).values(request_id=request_id, **decided))
    return held


def ask(
    store: LedgerBackend, campaign_name: str, who: Claimant, claimant_id: int, request_ids: Collection[int]
) -> list[RequestRow]:
    """Record which requests a person is asked about, in place of those that an earlier attempt asked about.

    Airflow shows the first question of a task instance for ever, whatever it asks later. So a later question may be
    about the same requests, or some of them, but not about others.

    :param claimant_id: of this attempt.
    :param request_ids: requests that are unknown, or whose claim has lapsed; at least one.
    :returns: those that are still unknown, in order.
    :raises InputError: another question was asked before; says what to do.
    :raises LedgerError: when it was not committed.
    """
    its = decision.c.asked_by.in_(select(claimant.c.id).where(of_task(who)))
    with store.write(campaign_lock(campaign_name)) as connection:
        its_campaign = select(campaign.c.id).where(campaign.c.name == campaign_name).scalar_subquery()
        lapse(connection, request.c.campaign_id == its_campaign, store.clock())
        shown = set(connection.execute(select(decision.c.request_id).where(its)).scalars())
        if shown and not shown.issuperset(request_ids):
            raise InputError(
                "A person was asked about other requests before, and Airflow would show that question again. "
                "Close these with airflow-sms ledger resolve, then clear the task"
            )
        connection.execute(delete(decision).where(decision.c.decision.is_(None), its))
        connection.execute(
            insert(decision), [{"request_id": each, "asked_by": claimant_id} for each in sorted(request_ids)]
        )
    return questions(store, who)


def questions(store: LedgerBackend, who: Claimant) -> list[RequestRow]:
    """Return the requests that this task instance asks a person about and that are still unknown, in order.

    :raises LedgerError: when the ledger cannot be read.
    """
    asked = select(decision.c.request_id).select_from(decision.join(claimant))
    asked = asked.where(decision.c.decision.is_(None), of_task(who))
    with store.read() as connection:
        unknown = and_(request.c.id.in_(asked), request.c.state == UNKNOWN)
        return read_requests(connection, unknown, store.clock())


def answer(store: LedgerBackend, who: Claimant, said: str, by: str) -> int:
    """Record and apply a person's decision about all requests that this task instance asked about.

    A request that has an outcome by now keeps it.

    :param said: ``accepted``, ``resend`` or ``fail``.
    :param by: the person.
    :returns: how many requests the decision concerned.
    :raises LedgerError: when it was not committed.
    """
    asked = [question.request_id for question in questions(store, who)]
    for request_id in asked if said == ACCEPTED else ():
        with suppress(InputError):  # it has an outcome since
            resolve(store, request_id, ACCEPTED, by)
    with store.write(DECISION_LOCK) as connection:
        tries = select(claimant.c.id).where(of_task(who))
        still_open = and_(decision.c.decision.is_(None), decision.c.asked_by.in_(tries))
        unknown = decision.c.request_id.in_(select(request.c.id).where(request.c.state == UNKNOWN))
        if said != ACCEPTED:  # which is recorded already
            decided = {"decision": said, "decided_by": by, "decided_at": store.clock()}
            connection.execute(update(decision).where(still_open, unknown).values(decided))
        # Kept, since Airflow has shown the question.
        connection.execute(update(decision).where(still_open).values(decision=SETTLED, decided_at=store.clock()))
    return len(asked)


def to_resend(store: LedgerBackend, campaign_name: str, who: Claimant) -> frozenset[int]:
    """Return the requests of a campaign whose messages a person told this task instance to post again.

    The latest decision about a request counts, whichever task asked for it.

    :raises LedgerError: when the ledger cannot be read.
    """
    query = (
        select(decision.c.request_id, decision.c.decision, decision.c.asked_by)
        .select_from(decision.join(request, request.c.id == decision.c.request_id).join(campaign))
        .where(campaign.c.name == campaign_name, decision.c.decision.is_not(None))
        .order_by(decision.c.decided_at, decision.c.id)
    )
    with store.read() as connection:
        tries = set(connection.execute(select(claimant.c.id).where(of_task(who))).scalars())
        latest = {request_id: (said, by) for request_id, said, by in connection.execute(query)}
    return frozenset(request_id for request_id, (said, by) in latest.items() if said == RESEND and by in tries)


def _not_unknown(connection: Connection, request_id: int) -> str:
    row = connection.execute(select(request.c.state, request.c.deadline).where(request.c.id == request_id)).first()
    if row is None:  # its campaign was purged meanwhile
        return f"The ledger has no request {request_id} any more"
    state, deadline = row
    if state == CLAIMED:
        until = datetime.fromtimestamp(deadline, timezone.utc)
        return (
            f"Request {request_id} may still be under way: its process can record what becomes of it until "
            f"{until:%Y-%m-%d %H:%M:%S} UTC. Try again then"
        )
    known = "accepted" if state == ACCEPTED else "not sent"
    return f"Request {request_id} is not unknown: it is {known}"


def require_unknown(store: LedgerBackend, request_id: int) -> None:
    """Refuse a request that :func:`resolve` would refuse, before a person is asked.

    :raises InputError: it has an outcome, or may be under way.
    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        query = select(request.c.state, request.c.deadline).where(request.c.id == request_id)
        state, deadline = connection.execute(query).one()
        if current_state(state, deadline, store.clock()) != UNKNOWN:
            raise InputError(_not_unknown(connection, request_id))


def adopt(store: LedgerBackend, task: Claimant) -> None:
    """Let a task instance go on with a ledger that lacks some or all of what its earlier attempts wrote.

    :param task: the task instance; its ``host`` names the person who takes responsibility, for the record.
    :raises LedgerError: when it was not committed.
    """
    with store.write(ADOPTION_LOCK) as connection:
        connection.execute(
            insert(claimant).values({**task.columns(), "try_number": ADOPTION, "started_at": store.clock()})
        )
