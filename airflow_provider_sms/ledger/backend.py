"""The ledger's database: durable, serialised where it must be, and of a version that this code knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from airflow_provider_sms.exceptions import LedgerError, LedgerVersionError
from airflow_provider_sms.ledger import schema
from airflow_provider_sms.ledger.locks import CREATION_LOCK
from airflow_provider_sms.ledger.migration import bring_up_to_date
from airflow_provider_sms.ledger.transitions import RECORD_ANSWER
from airflow_provider_sms.masking import mask_numbers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy.engine import Connection, CursorResult, Engine

    from airflow_provider_sms.ledger.model import Chunk

BUSY_SECONDS = 60.0
"""How long a process waits for another one's commit before it gives up."""

CLAIM_COLUMNS = ("campaign_id", "claimant_id", "kind", "state", "claimed_at", "deadline")
"""What the requests of one commit have in common, in the order in which statements name it."""

CONTACT_TAKEN = (
    "ON CONFLICT (group_id, destination) DO UPDATE SET "
    "before_request_id = sms_contact.request_id, before_at = sms_contact.claimed_at, "
    "request_id = excluded.request_id, claimed_at = excluded.claimed_at WHERE sms_contact.claimed_at <= "
)
"""What becomes of a contact that is there; the latest moment that is long enough ago follows."""

KEY_BYTES = 16
"""A message key's size."""

HolderRow = tuple[bytes, int, str, float, int, float]
"""Message key, request id, the request's state and deadline, the id of its claimant, and when it was claimed."""


class Readable(Protocol):
    """A ledger that can be read.

    :param clock: seconds since the epoch.
    """

    clock: Callable[[], float]

    def read(self) -> AbstractContextManager[Connection]:
        """Give a connection that sees what is committed and keeps no writer waiting.

        :raises LedgerError: when the ledger cannot be read.
        """


class LedgerBackend(ABC):
    """A database that holds a ledger; what its two kinds do in the same way.

    :param engine: SQLAlchemy's engine for it.
    :param description: which one it is, for the log.
    :param clock: seconds since the epoch, the same for every process that shares the ledger, whatever is done to the
        clock of its machine.
    """

    def __init__(self, engine: Engine, description: str, clock: Callable[[], float]) -> None:
        self.description = description
        self._engine = engine
        self.clock = clock

    @contextmanager
    def write(self, lock: int, *, patience: float | None = None) -> Iterator[Connection]:
        """Give a transaction that is durable once the block has ended without an error.

        :param lock: transactions with the same number come one after the other; 64 bits, signed.
        :param patience: seconds to wait for another process's commit, for what can be done without; None: as long as
            the store waits for all else.
        :raises LedgerError: when it cannot begin, fails within, or cannot be committed; nothing of it may be relied on.
        """
        with ledger_errors("written to"), self._engine.connect() as connection:
            writing = self._for_writing(connection, patience)
            with writing.begin():
                self._lock(writing, lock, patience)
                yield writing

    @contextmanager
    def read(self, *, quick: bool = False) -> Iterator[Connection]:  # noqa: ARG002  # a server's
        """Give a connection that sees what is committed and keeps no writer waiting.

        :param quick: whether a send waits for it, and so for no statement as long as for one that reads much.
        :raises LedgerError: when the ledger cannot be read.
        """
        with ledger_errors("read"), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def create_or_check(self) -> None:
        """Make the tables where there are none, and bring those of an older version of this package up to date.

        :raises LedgerVersionError: when a newer version of this package made them.
        """
        with self.write(CREATION_LOCK) as connection:
            schema.metadata.create_all(connection)
            version = connection.execute(select(schema.ledger_version.c.version)).scalar()
            if version is None:
                connection.execute(insert(schema.ledger_version).values(version=schema.SCHEMA_VERSION))
            elif version > schema.SCHEMA_VERSION:
                raise LedgerVersionError(
                    f"The ledger is of version {version}; this package knows up to {schema.SCHEMA_VERSION}. "
                    "Upgrade airflow-provider-sms here; nothing was sent"
                )
            elif version < schema.SCHEMA_VERSION:
                bring_up_to_date(connection, version)
                connection.execute(update(schema.ledger_version).values(version=schema.SCHEMA_VERSION))

    def _for_writing(self, connection: Connection, patience: float | None) -> Connection:  # noqa: ARG002  # SQLite's
        return connection

    @abstractmethod
    def _lock(self, connection: Connection, lock: int, patience: float | None) -> None:
        """Wait for other transactions with the same number."""

    def record_answers(self, connection: Connection, answers: Sequence[Mapping[str, Any]]) -> None:
        """Record the service's answers.

        :param answers: at least one, as :func:`~airflow_provider_sms.ledger.transitions.values_of` gives them.
        """
        RECORD_ANSWER.run(connection, *answers)

    @abstractmethod
    def insert_requests(
        self, connection: Connection, claim: Mapping[str, Any], submitted: Sequence[int]
    ) -> Sequence[int]:
        """Insert requests, and give their ids.

        :param claim: what they have in common, by column.
        :param submitted: how many messages each one has.
        """

    @abstractmethod
    def insert_messages(
        self, connection: Connection, campaign_id: int, request_ids: Sequence[int], chunks: Sequence[Chunk]
    ) -> int:
        """Insert the messages that are free, and say how many those were.

        :param request_ids: of the requests that the chunks are to be, just inserted.
        """

    @abstractmethod
    def lock_groups(self, connection: Connection, group_ids: Sequence[int]) -> None:
        """Wait for other transactions that write who was texted in groups of campaigns.

        :param group_ids: in ascending order.
        """

    @abstractmethod
    def insert_contacts(
        self,
        connection: Connection,
        group_id: int,
        wanted: Mapping[str, int],
        *,
        claimed_at: float,
        unless_since: float,
    ) -> int:
        """Write who is texted in a group by which request, and say how many of them could be.

        :param wanted: the requests by destination.
        :param unless_since: who was texted after this moment is not, seconds since the epoch.
        """

    @abstractmethod
    def contacts_since(
        self, connection: Connection, group_id: int, since: float, destinations: Sequence[str]
    ) -> Iterable[int]:
        """Say which of some people were texted in a group after a moment.

        :param since: the moment, seconds since the epoch.
        """

    @abstractmethod
    def own_states(self, connection: Connection, claimant_id: int, request_ids: Collection[int]) -> dict[int, str]:
        """Return the states of those of some requests that are there and were made by a claimant.

        :param request_ids: at least one.
        """

    @abstractmethod
    def holders(self, connection: Connection, campaign_id: int, keys: Sequence[bytes]) -> Iterable[HolderRow]:
        """Give the requests that hold any of the keys."""


def numbers(chunk: Chunk) -> list[int | None]:
    """Give a chunk's destinations as the ledger keeps them."""
    return [None if destination is None else int(destination) for destination in chunk.destinations]


def joined(keys: Sequence[bytes]) -> bytes:
    """Give keys as one value, of which a statement takes its pieces."""
    value = b"".join(keys)
    if len(value) != KEY_BYTES * len(keys):
        raise ValueError(f"a message key is of {KEY_BYTES} bytes")
    return value


def enter_campaign(connection: Connection, name: str, now: float) -> int:
    """Give a campaign's id, within a transaction under its lock; one that is new is made.

    :param now: seconds since the epoch.
    """
    campaign = schema.campaign
    found: int | None = connection.execute(select(campaign.c.id).where(campaign.c.name == name)).scalar()
    return new_id(connection.execute(insert(campaign).values(name=name, created_at=now))) if found is None else found


def new_id(inserted: CursorResult[Any]) -> int:
    """Give the id of a row that was inserted."""
    key = inserted.inserted_primary_key
    if key is None:
        raise LedgerError("The database gave no id for a new row")
    return int(key[0])


@contextmanager
def ledger_errors(done: str) -> Iterator[None]:
    """Raise what the database raises as an error of the ledger."""
    try:
        yield
    except SQLAlchemyError as error:
        # Only the first line, and "from None": a server's second one quotes the row, with somebody's number.
        cause = getattr(error, "orig", None) or error
        words = mask_numbers_in(str(cause).partition("\n")[0])
        raise LedgerError(f"The ledger cannot be {done}: {type(cause).__name__}: {words}") from None
