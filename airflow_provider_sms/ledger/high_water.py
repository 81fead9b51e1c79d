"""How far a ledger had got, recorded outside of it: a ledger that has less has lost what was committed.

A failover to a standby that lags, an older backup that is put back, a file copied without its write-ahead log: each
leaves a ledger that opens, knows the task, and has forgotten whom it texted last. A mark belongs to one task instance,
whose requests are only ever deleted with their campaign, so neither figure falls while the ledger is whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, func, select

from airflow_provider_sms.ledger.attempts import ADOPTION, of_task
from airflow_provider_sms.ledger.schema import claimant, request

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.ledger.model import Claimant


class HighWater(NamedTuple):
    """How far a ledger has got, as one task instance sees it.

    :param highest: the highest id of its requests; 0 where it has made none.
    :param requests: how many it has made, whatever their outcome.
    """

    highest: int = 0
    requests: int = 0

    def is_below(self, other: HighWater) -> bool:
        """Return whether a ledger with this mark has less than it had when another mark was made."""
        return self.highest < other.highest or self.requests < other.requests


def high_water(store: LedgerBackend, who: Claimant) -> HighWater:
    """Return how far a ledger has got, from all requests of a task instance.

    :raises LedgerError: when the ledger cannot be read.
    """
    with store.read() as connection:
        ids = list(connection.execute(select(claimant.c.id).where(of_task(who))).scalars())
        if not ids:
            return HighWater()
        made = request.c.claimant_id.in_(select(claimant.c.id).where(of_task(who)))
        return _counted(connection.execute(select(func.max(request.c.id), func.count()).where(made)).one())


def raised(store: LedgerBackend, mark: HighWater, claimant_id: int) -> HighWater:
    """Return how far a ledger has got now: a mark, and the requests of an attempt since.

    Only the requests that were made since the mark are read.

    :param claimant_id: of the attempt, or of the leg of it, whose requests are counted.
    :raises LedgerError: when the ledger cannot be read.
    """
    newer = and_(request.c.id > mark.highest, request.c.claimant_id == claimant_id)
    with store.read() as connection:
        since = _counted(connection.execute(select(func.max(request.c.id), func.count()).where(newer)).one())
    return HighWater(max(mark.highest, since.highest), mark.requests + since.requests)


def adopted_at(store: LedgerBackend, who: Claimant) -> float | None:
    """Return when a person last adopted the ledger for a task instance, in seconds since the epoch; None means never.

    :raises LedgerError: when the ledger cannot be read.
    """
    adoption = and_(of_task(who), claimant.c.try_number == ADOPTION)
    with store.read() as connection:
        at: float | None = connection.execute(select(func.max(claimant.c.started_at)).where(adoption)).scalar()
    return at


def _counted(row: tuple[int | None, int]) -> HighWater:
    return HighWater(row[0] or 0, row[1])
