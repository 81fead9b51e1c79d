"""The frequency cap: who was texted last within a group of campaigns, or may have been, and when.

It is decided in the transaction that claims, under a lock of the group. So of two campaigns of a group that run at
once, one texts a person and the other does not. A transaction takes its campaign's lock first, and then those of the
groups in ascending order, before it writes of them: so none can wait in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import and_, bindparam, delete, insert, select, update

from airflow_provider_sms.ledger.backend import new_id
from airflow_provider_sms.ledger.compiled import Compiled
from airflow_provider_sms.ledger.locks import CONTACT_GROUP_LOCK
from airflow_provider_sms.ledger.model import Claim
from airflow_provider_sms.ledger.schema import contact, contact_group, message, request
from airflow_provider_sms.ledger.transitions import give_back

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy.engine import Connection

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Chunk

_AT_ONCE = 500

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FrequencyCap:
    """How often a person is texted by the campaigns of a group, all together.

    :param group: its name.
    :param min_seconds: the least between two claims of messages to one number; what is unknown counts as texted.
    """

    group: str
    min_seconds: float


def enter_group(store: LedgerBackend, name: str) -> int:
    """Give a group's id; one that is new is made.

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
    """Take the locks of the groups that a transaction is to write of, before it writes anything.

    A contact that becomes one of these requests' meanwhile, since a later one was not sent, is not given back: its
    person counts as texted when that request was claimed, which is long ago for the cap that let the later one through.

    :param releasing: the requests that may be released.
    :param claiming: the group of a cap; None: none.
    :returns: the groups.
    """
    groups = set() if claiming is None else {claiming}
    for some in _parts(releasing):
        groups.update(connection.execute(select(contact.c.group_id).where(contact.c.request_id.in_(some))).scalars())
    store.lock_groups(connection, sorted(groups))
    return frozenset(groups)


def lock_all_groups(store: LedgerBackend, connection: Connection) -> None:
    """Take the locks of all groups, for who cannot say which."""
    store.lock_groups(connection, sorted(connection.execute(select(contact_group.c.id)).scalars()))


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

    :param group_id: of the cap's group.
    """

    def __init__(self, store: LedgerBackend, cap: FrequencyCap, campaign_id: int) -> None:
        self._store = store
        self._cap = cap
        self._campaign_id = campaign_id
        self.group_id = enter_group(store, cap.group)

    def capped(self, destinations: Sequence[str], now: float) -> set[str]:
        """Say who was texted too short a time ago.

        :param now: seconds since the epoch.
        :raises LedgerError: when the ledger cannot be read.
        """
        since = now - self._cap.min_seconds
        with self._store.read(quick=True) as connection:
            return {str(each) for each in self._store.contacts_since(connection, self.group_id, since, destinations)}

    def apply(
        self, connection: Connection, chunks: Sequence[Chunk], claims: Sequence[Claim], now: float
    ) -> list[Claim]:
        """Take from claims that were just made whoever must not be texted yet; the others are texted now.

        What is taken from them is free, as before; what an unknown request held before is that request's again.

        :param claims: of the chunks, in the same transaction, under the group's lock.
        :param now: when they were made, seconds since the epoch.
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
        # What an unknown request texted, or did not, is what is sent again: it is no reason against that.
        granted = sum(_MOVE.run(connection, move).rowcount for move in moves)
        granted += self._store.insert_contacts(
            connection, self.group_id, wanted, claimed_at=now, unless_since=now - self._cap.min_seconds
        )
        if granted == len(wanted) == sum(len(claim.won) for claim in claims):
            return list(claims)
        return self._without_capped(connection, chunks, claims)

    def _without_capped(self, connection: Connection, chunks: Sequence[Chunk], claims: Sequence[Claim]) -> list[Claim]:
        ids = [claim.request_id for claim in claims if claim.request_id is not None]
        holders: dict[str, int] = {}
        for some in _parts(ids):
            rows = select(contact.c.destination, contact.c.request_id).where(
                contact.c.group_id == self.group_id, contact.c.request_id.in_(some)
            )
            holders.update((str(destination), holder) for destination, holder in connection.execute(rows))
        kept: list[Claim] = []
        keys: list[bytes] = []
        for chunk, claim in zip(chunks, claims, strict=True):
            won: list[int] = []
            capped: list[int] = []
            for position in claim.won:
                destination = chunk.destinations[position]
                # A person has one message: the first of theirs takes the place.
                free = destination is None or holders.get(destination) == claim.request_id
                (won if free else capped).append(position)
                if free and destination is not None:
                    del holders[destination]
            keys += [chunk.keys[position] for position in capped]
            kept.append(Claim(claim.request_id if won else None, won, claim.deadline, capped))
        for these in _parts(keys):
            self._give_up(connection, these, ids)
        for before, claim in zip(claims, kept, strict=True):
            its = request.c.id == before.request_id
            if before.request_id is not None and claim.request_id is None:
                connection.execute(delete(request).where(its))
            elif claim.capped:
                connection.execute(update(request).where(its).values(submitted=len(claim.won)))
        return kept

    def _give_up(self, connection: Connection, keys: Sequence[bytes], ids: Collection[int]) -> None:
        """Undo claims of messages."""
        its = and_(
            message.c.campaign_id == self._campaign_id, message.c.message_key.in_(keys), message.c.request_id.in_(ids)
        )
        give_back(connection, its)
        connection.execute(delete(message).where(its))


def _parts(values: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, _AT_ONCE)):
        yield some
