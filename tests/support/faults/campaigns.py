"""The people of a scenario, its table, and their records in witness and ledger."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import astuple

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import text

from support.faults.verdict import Figures, judge, read_ledger, read_witness
from support.keys import message_keys

MESSAGE = "Hi {first_name}, your parcel waits at the counter"

_PIDS = text("SELECT k.pid FROM sms_attempt k WHERE k.dag_id = :dag_id ORDER BY k.id DESC")


class Campaign:
    """The people of one scenario.

    :param number: number of the scenario, which has its own range of 100,000 phone numbers.
    :param partitions: number of tables, each of which also contains the first half of the next one.
    :param witness: the service's witness.
    :param ledger: engine that reads the ledger.
    """

    def __init__(self, name, number, people, partitions, folder, witness, ledger):
        self.name = name
        self.people = people
        self._witness = witness
        self.ledger = ledger
        first = 27_820_000_000 + number * 100_000
        everybody = [(str(first + n), MESSAGE.format(first_name=f"Name{n}"), f"Name{n}") for n in range(people)]
        self.tables = []
        self._parts = []
        width = people // partitions
        for part in range(partitions):
            end = None if part == partitions - 1 else (part + 1) * width + width // 2
            rows = everybody[part * width : end]
            path = folder / f"{name}-{part}.parquet"
            columns = {"destination": [row[0] for row in rows], "first_name": [row[2] for row in rows]}
            pq.write_table(pa.table(columns), path)
            self.tables.append(str(path))
            keys = message_keys([row[0] for row in rows], [row[1] for row in rows])
            self._parts.append({key: row[:2] for key, row in zip(keys, rows, strict=True)})
        self.expected = {key: sent for part in self._parts for key, sent in part.items()}

    @property
    def numbers(self):
        return {destination for destination, _ in self.expected.values()}

    def keys_of(self, part):
        """Return the message keys of a table, by its number."""
        return self._parts[part].keys()

    def taken(self):
        """Return how often each person was sent each text so far, by the witness."""
        numbers = self.numbers
        return Counter({sent: n for sent, n in read_witness(self._witness).items() if sent[0] in numbers})

    def pids(self):
        """Return the processes that entered the ledger for the campaign, the latest first."""
        with self.ledger.connect() as connection:
            return connection.execute(_PIDS, {"dag_id": self.name}).scalars().all()

    def states(self):
        """Return the state of each claimed message; a lapsed claim is unknown."""
        return read_ledger(self.ledger, self.name, now=time.time())

    def judge(self, summaries):
        """Judge the scenario at its end.

        :param summaries: summary of the last attempt of each run, by the number of the table.
        """
        witness, states = self.taken(), self.states()
        figures = judge(witness, states, self.expected)
        for part, summary in summaries:
            expected = self._parts[part]
            ours = {key: state for key, state in states.items() if key in expected}
            numbers = {destination for destination, _ in expected.values()}
            seen = {sent: n for sent, n in witness.items() if sent[0] in numbers}
            with_it, without = (judge(seen, ours, expected, summary=it) for it in (summary, None))
            # Defects of the summary.
            figures += Figures(*(a - b for a, b in zip(astuple(with_it), astuple(without), strict=True)))
            # The last attempt met no fault, so no message is left over, and every unknown one is counted.
            unnamed = sum(state == "unknown" for state in ours.values()) - summary["unknown"]
            figures += Figures(lost=summary["not_sent"] + abs(unnamed), reconciled=summary["reconciled"])
        return figures
