"""The counts of a table's rows, each by who holds its message when the attempt ends.

No count is kept while messages are sent: sizes of requests, or "the rest", go wrong in some order of events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.messages.spool import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sms.ledger.claims import CampaignLedger
    from airflow_provider_sms.ledger.model import Holder
    from airflow_provider_sms.messages.spool import CheckedSpool


COUNTS = ("accepted", "unknown", "not_sent", "invalid", "duplicate", "suppressed", "already_sent")
"""The counts of which each row is in exactly one; they add up to ``rows``."""
COUNT_OF = {**{each: each.name.lower() for each in Status}, Status.FREE: "not_sent", Status.AGAIN: "unknown"}
"""The count of a row as it was checked."""


@dataclass(frozen=True)
class RowCounts:
    """The rows of a table, each in one of the seven counts.

    :param unsettled: of the unknown rows, how many each request holds, by its id.
    :param awaited: of these, the requests of other processes that may still record an outcome.
    """

    accepted: int = 0
    unknown: int = 0
    not_sent: int = 0
    invalid: int = 0
    duplicate: int = 0
    suppressed: int = 0
    already_sent: int = 0
    unsettled: Mapping[int, int] = field(default_factory=dict)
    awaited: frozenset[int] = frozenset()

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(getattr(self, name) for name in COUNTS)

    def in_doubt(self) -> RowCounts:
        """Return the counts where the ledger may hold, or have forgotten, any message: none is surely not sent."""
        return replace(self, unknown=self.unknown + self.not_sent, not_sent=0)


def counts_of_check(statuses: Mapping[Status, int]) -> RowCounts:
    """Return the counts of rows as they were checked, where nothing was sent since."""
    found: Counter[str] = Counter()
    for status, rows in statuses.items():
        found[COUNT_OF[status]] += rows
    return RowCounts(**found, unsettled={}, awaited=frozenset())


def count_rows(spool: CheckedSpool, statuses: Mapping[Status, int], ledger: CampaignLedger) -> RowCounts:
    """Return the counts of rows, of which so many had each status when they were checked, by who holds them now."""
    checked = counts_of_check(statuses)
    to_send = statuses[Status.FREE] + statuses[Status.AGAIN]
    sent = ledger.count_accepted() if to_send else 0
    if sent == to_send and not statuses[Status.UNKNOWN]:
        return replace(checked, accepted=checked.accepted + sent, unknown=0, not_sent=0)
    batches = (rows.where(rows.statuses <= Status.UNKNOWN)[1] for rows in spool.batches())
    found = count_keys((messages.column("key").to_pylist() for messages in batches), ledger)
    others = {name: getattr(checked, name) for name in ("invalid", "duplicate", "suppressed")}
    before = {name: getattr(checked, name) + getattr(found, name) for name in ("accepted", "already_sent")}
    return replace(found, **others, **before)


def count_keys(batches: Iterable[Sequence[bytes]], ledger: CampaignLedger) -> RowCounts:
    """Return the counts of messages by who holds them now."""
    found: Counter[str] = Counter()
    unsettled: Counter[int] = Counter()
    awaited: set[int] = set()
    for keys in batches:
        holders, again = ledger.look(keys)
        found.update(count_of(holders.get(key), is_superseded=key in again) for key in keys)
        open_holders = [each for each in holders.values() if each.state != ACCEPTED]
        unsettled.update(each.request_id for each in open_holders)
        awaited.update(each.request_id for each in open_holders if each.awaited)
    return RowCounts(**found, unsettled=unsettled, awaited=frozenset(awaited))


def count_of(holder: Holder | None, *, is_superseded: bool) -> str:
    """Return the count that a message is in."""
    if holder is None:
        return "unknown" if is_superseded else "not_sent"
    if holder.state != ACCEPTED:
        return "unknown"
    return "accepted" if holder.mine else "already_sent"
