"""The frequency cap: which recipients a group of campaigns texted last, or may have texted, and when.

The cap is decided in the transaction that claims, under a lock of the group. So of two campaigns of a group that run at
once, one texts a recipient and the other does not. A transaction takes its campaign's lock first, and then those of the
groups in ascending order, before it writes any contact: so no two transactions wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, insert, select, union, update

from airflow_provider_sms.ledger.backend import Compiled, in_pieces, new_id
from airflow_provider_sms.ledger.locks import CONTACT_GROUP_LOCK
from airflow_provider_sms.ledger.model import NOT_SENT, Claim
from airflow_provider_sms.ledger.schema import contact, contact_group, former_holder, message, request

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Chunk


@dataclass(frozen=True, slots=True)
class FrequencyCap:
    """How often a recipient is texted by the campaigns of a group, all together.

    :param group: the group's name.
    :param min_seconds: the fewest seconds between two claims for one number; an unknown message counts as texted.
    """

    group: str
    min_seconds: float


def enter_group(store: LedgerBackend, name: str) -> int:
    """Return a contact group's id, and create the group where it is new.

    :raises LedgerError: when the ledger cannot be read, or it was not committed.
    """
    query = select(contact_group.c.id).where(contact_group.c.name == name)
    with store.read() as connection:
        found: int | None = connection.execute(query).scalar()
    if found is not None:
        return found
    with store.write(CONTACT_GROUP_LOCK) as connection:
        found = connection.execute(query).scalar()
        return new_id(connection.execute(insert(contact_group).values(name=name))) if found is None else found


def lock_groups(
    store: LedgerBackend, connection: Connection, releasing: Sequence[int], claiming: int | None = None
) -> frozenset[int]:
    """Take the locks of the contact groups that a transaction may write in, before it writes anything.

    A contact that goes back to one of these requests meanwhile, because a later request was not sent, is not given back
    again: its recipient counts as texted when that request was claimed, which is long ago for the cap that let the
    later one through.

    :param releasing: the requests that may be released.
    :param claiming: the group of a cap; None means that no cap applies.
    :returns: the groups.
    """
    groups = set() if claiming is None else {claiming}
    for piece in in_pieces(releasing):
        groups.update(connection.execute(select(contact.c.group_id).where(contact.c.request_id.in_(piece))).scalars())
    store.lock_groups(connection, sorted(groups))
    return frozenset(groups)


def lock_all_groups(store: LedgerBackend, connection: Connection) -> None:
    """Take the locks of all contact groups, for a transaction that may write in any of them."""
    store.lock_groups(connection, sorted(connection.execute(select(contact_group.c.id)).scalars()))


_HOLDING = (message, former_holder)
"""The tables that tell which requests hold a message, or held it before."""

_MOVE = Compiled(
    update(contact)
    .where(
        contact.c.group_id == bindparam("its_group"),
        contact.c.destination == bindparam("person"),
        contact.c.request_id == bindparam("unknown"),
    )
    .values(request_id=bindparam("new"), claimed_at=bindparam("now"))
)


class Capping:
    """The cap on the claims of one campaign.

    :param group_id: the id of the cap's group.
    """

    def __init__(self, store: LedgerBackend, cap: FrequencyCap) -> None:
        self._store = store
        self._cap = cap
        self.group_id = enter_group(store, cap.group)

    def capped(self, destinations: Sequence[str], now: float) -> set[str]:
        """Return the destinations that were texted too recently.

        :param now: seconds since the epoch.
        :raises LedgerError: when the ledger cannot be read.
        """
        since = now - self._cap.min_seconds
        with self._store.read() as connection:
            return {str(each) for each in self._store.contacts_since(connection, self.group_id, since, destinations)}

    def apply(
        self, connection: Connection, chunks: Sequence[Chunk], claims: Sequence[Claim], now: float
    ) -> Sequence[Claim]:
        """Return claims without the recipients who must not be texted yet; record that the others are texted now.

        :param claims: the claims of the chunks, made in the same transaction, under the group's lock.
        :param now: when they were made, seconds since the epoch.
        :returns: the claims themselves where nobody is capped; else one claim in place of each, whose capped messages
            the caller frees. The request of a claim that wins nothing is None.
        """
        wanted: dict[str, int] = {}
        moves: list[dict[str, float]] = []
        for chunk, claim in zip(chunks, claims, strict=True):
            if claim.request_id is None:
                continue
            for position in claim.won:
                destination, key = chunk.destinations[position], chunk.keys[position]
                if destination is None or destination in wanted:
                    continue
                wanted[destination] = claim.request_id
                if key in chunk.take_over:
                    moves.append(
                        {
                            "its_group": self.group_id,
                            "person": int(destination),
                            "unknown": chunk.take_over[key],
                            "new": claim.request_id,
                            "now": now,
                        }
                    )
        # A message that is sent again replaces the contact of the unknown request, which is no reason against it.
        granted = sum(_MOVE.run(connection, move).rowcount for move in moves)
        granted += self._store.insert_contacts(
            connection, self.group_id, wanted, claimed_at=now, unless_since=now - self._cap.min_seconds
        )
        if granted == len(wanted) == sum(len(claim.won) for claim in claims):
            return claims
        return self._without_capped(connection, chunks, claims)

    def _without_capped(self, connection: Connection, chunks: Sequence[Chunk], claims: Sequence[Claim]) -> list[Claim]:
        holders: dict[str, int] = {}
        for piece in in_pieces([claim.request_id for claim in claims if claim.request_id is not None]):
            rows = select(contact.c.destination, contact.c.request_id).where(
                contact.c.group_id == self.group_id, contact.c.request_id.in_(piece)
            )
            holders.update((str(destination), holder) for destination, holder in connection.execute(rows))
        kept: list[Claim] = []
        for chunk, claim in zip(chunks, claims, strict=True):
            won: list[int] = []
            capped: list[int] = []
            for position in claim.won:
                destination = chunk.destinations[position]
                # A recipient gets one message: the first one takes the contact.
                free = destination is None or holders.get(destination) == claim.request_id
                (won if free else capped).append(position)
                if free and destination is not None:
                    del holders[destination]
            kept.append(Claim(claim.request_id if won else None, won, claim.deadline, capped))
        return kept


def give_back_contacts(connection: Connection, request_id: int, groups: Collection[int]) -> None:
    """Restore the contacts of the recipients whom a request did not text: texted by another request, or by none.

    :param groups: the contact groups, whose locks are held.
    """
    before = request.alias()
    of_request = and_(contact.c.request_id == request_id, contact.c.group_id.in_(groups))
    rows = connection.execute(
        select(contact.c.group_id, contact.c.destination, before.c.claimed_at, before.c.id)
        .select_from(
            contact.outerjoin(before, and_(before.c.id == contact.c.before_request_id, before.c.state != NOT_SENT))
        )
        .where(of_request)
    ).all()
    if not rows:
        return
    others = _other_holders(connection, request_id)
    connection.execute(delete(contact).where(of_request))
    given_back: list[dict[str, Any]] = []
    for group_id, destination, *earlier in rows:
        texted = others.get(destination, set()) | ({tuple(earlier)} if earlier[1] is not None else set())
        if texted:
            last, other, *_ = [*sorted(texted, reverse=True), (None, None)]
            given_back.append(
                {
                    "group_id": group_id,
                    "destination": destination,
                    "claimed_at": last[0],
                    "request_id": last[1],
                    "before_at": other[0],
                    "before_request_id": other[1],
                }
            )
    if given_back:
        connection.execute(insert(contact), given_back)


def _other_holders(connection: Connection, request_id: int) -> dict[int, set[tuple[float, int]]]:
    """Return the other requests with a request's messages that may have been sent, by destination.

    A message that another request was accepted with has gone back there. So what the request held before counts, too.

    :returns: when each was claimed, and its id.
    """
    key = ("campaign_id", "message_key")
    its = union(
        *(select(*(table.c[name] for name in key)).where(table.c.request_id == request_id) for table in _HOLDING)
    ).subquery()
    of_its = and_(*(message.c[name] == its.c[name] for name in key))
    also = and_(*(former_holder.c[name] == its.c[name] for name in key))
    holders = union(
        select(message.c.destination, message.c.request_id).select_from(its.join(message, of_its)),
        select(message.c.destination, former_holder.c.request_id).select_from(
            its.join(message, of_its).join(former_holder, also)
        ),
    ).subquery()
    rows = connection.execute(
        select(holders.c.destination, request.c.claimed_at, request.c.id)
        .select_from(holders.join(request, request.c.id == holders.c.request_id))
        .where(request.c.state != NOT_SENT)
    )
    found: dict[int, set[tuple[float, int]]] = {}
    for destination, claimed_at, holder in rows:
        found.setdefault(destination, set()).add((claimed_at, holder))
    return found
