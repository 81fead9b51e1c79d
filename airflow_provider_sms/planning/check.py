"""The check of a table: every row is read and judged before the first request, and is sent as it was checked.

:meth:`CheckedTable.read` is the one pass over the source: each row becomes a message or an invalid row, and goes to a
:class:`.CheckedSpool`. :meth:`CheckedTable.decide` then gives each row of the spool its :class:`.Status`.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sms.messages.keys import Fingerprint, key_bytes, keys_with_texts
from airflow_provider_sms.messages.spool import CheckedSpool, Status, rows_by_status
from airflow_provider_sms.planning.changed_texts import count_repeats
from airflow_provider_sms.planning.estimate import Estimate
from airflow_provider_sms.planning.invalid_rows import InvalidRows
from airflow_provider_sms.planning.limits import Limits
from airflow_provider_sms.planning.plan import Plan
from airflow_provider_sms.recipients.columns import constant

if TYPE_CHECKING:
    from airflow_provider_sms.ledger.holders import CampaignReader
    from airflow_provider_sms.messages.compose import Composer
    from airflow_provider_sms.planning.prices import Prices
    from airflow_provider_sms.planning.suppression import SuppressedNumbers
    from airflow_provider_sms.recipients.batches import Source
    from airflow_provider_sms.service.responses import Balance
    from airflow_provider_sms.stop_flag import StopFlag

_THREADS = 2
"""Batches that are composed at once: most of the work is Arrow's, which leaves Python's lock to others."""


class CheckedTable:
    """Everything known about a table before the first request."""

    def __init__(self, composer: Composer, prices: Prices) -> None:
        self.invalid = InvalidRows("cannot be texted")
        self.spool = CheckedSpool()
        self.counts: Counter[Status] = Counter()
        """Rows by status, once they are decided."""
        self.held_by: set[int] = set()
        """Requests without an outcome that hold messages of the table."""
        self.estimate = Estimate(prices)
        self._repeats = 0
        self._fingerprint = Fingerprint()
        self._composer = composer

    @property
    def to_send(self) -> int:
        """Messages to send."""
        return self.counts[Status.FREE] + self.counts[Status.AGAIN]

    def read(self, source: Source, stop: StopFlag, limits: Limits | None = None) -> None:
        """Read and compose every row, and refuse too many of them soon: a batch beyond the limit may be read."""
        limits = limits or Limits()
        batches = source.batches(self._composer.columns, self._composer.check)
        with ThreadPoolExecutor(_THREADS) as threads:
            while some := list(islice(batches, _THREADS)):
                for rows in threads.map(self._composer.compose, some):
                    self.spool.add(rows)
                    stop.require_running()
                    columns, reasons, destinations = map(rows.column, ("column", "reason", "destination"))
                    of_number = pc.equal(columns, constant(self._composer.columns[0]))
                    self.invalid.add(columns, reasons, pc.if_else(of_number, destinations, constant(None)))
                    limits.check_rows(self.invalid.rows)
        pa.default_memory_pool().release_unused()  # what the threads would keep
        limits.check_enough(self.invalid.rows)
        self.spool.finish()

    def decide(
        self,
        stop: StopFlag,
        suppressed: SuppressedNumbers | None = None,
        campaign: CampaignReader | None = None,
        *,
        resends: bool = False,
    ) -> None:
        """Set the status of each row, and count the messages to send; without a campaign the ledger is not asked."""
        looks = campaign is not None and campaign.is_used()
        for rows in self.spool.batches():
            stop.require_running()
            statuses, first = rows.statuses, rows.statuses == Status.FREE
            _, messages = rows.where(first)
            keys = key_bytes(messages.column("key"))
            by_text = self._composer.keyed_by_text
            self._fingerprint.add(keys if by_text else keys_with_texts(keys, messages.column("content").to_pylist()))
            if campaign is not None and looks:
                held = campaign.look(keys)
                self.held_by.update(held.unsettled())
                statuses[first] = held.statuses(resends=resends)
            if suppressed is not None:
                # What this attempt has sent stays accepted: the person has opted out since.
                opted_out = suppressed.mask(messages.column("destination")) & (statuses[first] != Status.ACCEPTED)
                statuses[first] = np.where(opted_out, Status.SUPPRESSED, statuses[first])
            self.counts.update(rows_by_status(rows.statuses))
            self.estimate.add(*rows.where(rows.statuses <= Status.AGAIN))
        if campaign is not None and self.to_send:
            self._repeats = count_repeats(campaign, self.spool, stop)

    def plan(self, campaign: str, *, chunk_size: int, balance: Balance | None) -> Plan:
        """Return the plan of the table, each row of which is decided."""
        return Plan(
            id=self._fingerprint.hexdigest(),
            campaign=campaign,
            rows=self.invalid.rows,
            invalid=self.invalid.reasons,
            duplicate=self.counts[Status.DUPLICATE],
            suppressed=self.counts[Status.SUPPRESSED],
            already_sent=self.counts[Status.ALREADY_SENT] + self.counts[Status.ACCEPTED],
            unknown=self.counts[Status.UNKNOWN],
            to_send=self.to_send,
            repeats=self._repeats,
            requests=-(-self.to_send // chunk_size),
            estimate=self.estimate,
            balance=balance,
        )

    def close(self) -> None:
        """Release the room on disk; the counts stay."""
        self.spool.close()
