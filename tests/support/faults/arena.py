"""The environment of cases: one ledger, one sandbox with its witness, and a campaign per case."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from sqlalchemy import create_engine

from airflow_provider_sms.sandbox.config import SandboxConfig
from airflow_provider_sms.sandbox.server import running_sandbox
from airflow_provider_sms.sending import sender, settle
from support.faults.tries import TOKEN, Campaign, attempt
from support.faults.verdict import Figures, judge, read_ledger, read_reconciled, read_witness, worst

RICH = 10**9
"""A balance that no campaign exhausts."""
LATER = 100_000.0
"""Seconds after which every claim's deadline has passed."""
POLL_SECONDS = 0.002
"""Seconds between two looks of a sender at what it waits for, where its clock runs fast."""


class Arena:
    """A service and a ledger, which many cases use one after the other.

    Every case is judged in its middle, and again when the service has ended: nothing can arrive after that.

    :param ledgers: function that opens the ledger.
    :param keep_alive: seconds after which the service closes an idle connection.
    :param reconciles: whether campaigns close lost requests by what the balance of a pre-paid account proves.
    """

    def __init__(self, ledgers, *, keep_alive=5.0, reconciles=False):
        self.figures = Figures()
        self._ledgers = ledgers
        self._keep_alive = keep_alive
        self.reconciles = reconciles
        self._stack = ExitStack()
        self._people = 0
        self._id = uuid.uuid4().hex
        self._looks = defaultdict(list)
        self._cases = []

    def __enter__(self):
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="airflow-provider-sms-faults-"))
        self._witness = Path(folder) / "witness.jsonl"
        self._engine = create_engine(self._ledgers.url)
        self._stack.callback(self._engine.dispose)
        self._ledgers().close()
        config = SandboxConfig(
            token=TOKEN, balance=RICH, post_paid=not self.reconciles, log=self._witness, keep_alive=self._keep_alive
        )
        if self.reconciles:
            self._stack.enter_context(patch.object(sender, "POLL_SECONDS", POLL_SECONDS))
            self._stack.enter_context(patch.object(settle, "POLL_SECONDS", POLL_SECONDS))
        self._service = ExitStack()
        self._stack.push(self._service)
        self.sandbox = self._service.enter_context(running_sandbox(config))
        return self

    def __exit__(self, kind, *_):
        with self._stack:
            self._service.close()
            if kind is None:
                self.judge_all()

    def campaign(self, count=40, chunk_size=4):
        """Return a new campaign with its own people."""
        start, self._people = self._people, self._people + count
        self._start = self._witness.stat().st_size
        return Campaign(
            self._ledgers,
            self.sandbox.base_url,
            f"{self._id}-{start}",
            start,
            count,
            chunk_size,
            reconciles_since=time.time() if self.reconciles else None,
        )

    def look(self, campaign, ended):
        """Judge the newest case in its middle: messages may be left over, but every recorded outcome must be true.

        :param ended: the attempt that ended last; None when it was cut short.
        """
        states = self.states(campaign)
        figures = judge(
            self.witnessed(self._start), states, campaign.expected, resumed=False, summary=ended and ended.summary
        )
        self._looks[campaign.name].append(figures)

    def resume(self, name, campaign):
        """Send the rest without faults once every deadline has passed; the case is judged at the end."""
        ended = attempt(campaign, 99, concurrency=2, ahead=lambda: LATER)
        if ended.error is not None:
            raise ended.error
        self._cases.append((name, campaign, ended.summary))

    def witnessed(self, start=0):
        """Return how often each person was sent each text.

        :param start: offset in the witness to start from, at the beginning of a line.
        """
        return read_witness(self._witness, start)

    def states(self, campaign):
        """Return the current states of a campaign's messages."""
        return read_ledger(self._engine, campaign.name)

    def forget_connections(self):
        """Read the ledger by new connections from here on: its address may lead to another server."""
        self._engine.dispose()

    def judge_all(self):
        """Judge every case at its end, once the service has ended."""
        witness = self.witnessed()
        for name, campaign, summary in self._cases:
            mine = {sent: witness[sent] for sent in campaign.expected.values() if sent in witness}
            end = judge(mine, self.states(campaign), campaign.expected, summary=summary)
            # The same defect may show in the middle and at the end: it counts once.
            figures = worst([*self._looks[campaign.name], end])
            figures += Figures(reconciled=sum(read_reconciled(self._engine, campaign.name)))
            self.figures += figures
            if figures.broken:
                sys.stderr.write(f"The promise was broken: {name} on {self._ledgers.name}: {figures}\n")


def send_alone(campaign, options):
    """Make an attempt in a process of its own, and return its summary and the name of its error.

    :param options: of :func:`attempt`; ``ahead`` is a number of seconds.
    """
    logging.disable(logging.CRITICAL)
    sender.POLL_SECONDS = POLL_SECONDS
    ahead = options.get("ahead", 0.0)
    ended = attempt(campaign, **{**options, "ahead": lambda: ahead})
    return ended.summary, None if ended.error is None else type(ended.error).__name__
