"""The engine as an operator puts it together, for lists of messages in place of a checked table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_sms.exceptions import LedgerError, LedgerLostError
from airflow_provider_sms.ledger.model import ACCEPTED
from airflow_provider_sms.messages.message import Outgoing
from airflow_provider_sms.messages.spool import CheckedRows, Status
from airflow_provider_sms.reporting.row_counts import RowCounts, count_rows
from airflow_provider_sms.reporting.summary import Sums, add_up, summarise
from airflow_provider_sms.sending.attempt_loop import send


class Text(NamedTuple):
    """A message to one person, or with None to a group: a row of :class:`Outgoing`."""

    key: bytes
    destination: str | None
    content: str
    parts: int | None = None


def by_request(texts, size=100):
    """Yield texts as the engine takes them: those of one request at a time."""
    rest = iter(texts)
    while some := list(islice(rest, size)):
        yield Outgoing(*map(list, zip(*some, strict=True)))


class Table:
    """Messages that are checked, sent and counted; those with the same key are duplicates of the first."""

    def __init__(self, rows):
        self.rows = len(rows)
        self.messages = list({message.key: message for message in reversed(rows)}.values())[::-1]
        self.counts = RowCounts(not_sent=len(self.messages), duplicate=self.rows - len(self.messages))
        self.statuses = np.full(len(self.messages), Status.FREE, np.uint8)
        self.sums = Sums()
        self.error = None

    def send(self, ledger, sender, settle, chunk_size):
        """Check the messages, send those that are free, and settle what is left."""
        try:
            held = ledger.holders([message.key for message in self.messages])
            self.statuses = ledger.look(b"".join(message.key for message in self.messages)).statuses()
        except LedgerError as error:
            sender.fail(error)
            return
        sender.noted.update(each.request_id for each in held.values() if each.state != ACCEPTED)
        free = [message for message in self.messages if message.key not in held]
        left = [each for each in self.messages if each.key not in held or held[each.key].state != ACCEPTED]

        def free_messages():
            taken = ledger.holders([message.key for message in left])
            return by_request([message for message in left if message.key not in taken], chunk_size)

        send(sender, settle, by_request(free, chunk_size), free_messages)
        self.error = sender.error

    def count(self, ledger):
        """Count the rows by who holds them."""
        keys = pa.array([each.key for each in self.messages], pa.binary(16))
        rows = CheckedRows(0, pa.record_batch({"key": keys}), self.statuses)
        spool = SimpleNamespace(batches=lambda: [rows])
        counts = replace(
            count_rows(spool, Counter(map(Status, self.statuses)), ledger), duplicate=self.counts.duplicate
        )
        self.counts = counts.in_doubt() if isinstance(self.error, LedgerLostError) else counts
        self.sums = add_up(ledger.sent_requests())

    def count_without_ledger(self):
        """Count the messages as unknown, since a ledger that cannot be read may hold any."""
        self.counts = RowCounts(unknown=len(self.messages), duplicate=self.counts.duplicate)

    def summary(self, campaign, reconciled=0):
        """Return the summary of the attempt."""
        return summarise(campaign, self.counts, self.sums, reconciled)
