"""The counts of a table's rows, each by who holds its message when the attempt ends.

No count is kept while messages are sent: sizes of requests, or "the rest", go wrong in some order of events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_provider_sms.messages.keys import key_bytes
from airflow_provider_sms.messages.spool import Status, rows_by_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sms.ledger.claims import CampaignLedger
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
    found = count_keys((key_bytes(messages.column("key")) for messages in batches), ledger)
    others = {name: getattr(checked, name) for name in ("invalid", "duplicate", "suppressed")}
    before = {name: getattr(checked, name) + getattr(found, name) for name in ("accepted", "already_sent")}
    return replace(found, **others, **before)


def count_keys(batches: Iterable[bytes | memoryview], ledger: CampaignLedger) -> RowCounts:
    """Return the counts of messages, by who holds them now, from their keys, one after the other."""
    statuses: Counter[Status] = Counter()
    unsettled: Counter[int] = Counter()
    awaited: set[int] = set()
    for keys in batches:
        held = ledger.look(keys)
        statuses.update(rows_by_status(held.statuses()))
        unsettled.update(its := held.unsettled())
        awaited.update(each for each in its if held.requests[each].awaited)
    return replace(counts_of_check(statuses), unsettled=unsettled, awaited=frozenset(awaited))
