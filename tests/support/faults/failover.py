"""A primary is lost in mid-send, and its standby takes over, with all commits or without the last ones.

The servers are real. Senders connect to a forwarder, which points to the current primary. Another forwarder is the
link from primary to standby, which falls silent some time before the failover. An asynchronous standby therefore
lags behind, and a commit to a primary that waits for its standby does not return.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass

from sqlalchemy.engine import URL

from airflow_provider_sms.exceptions import LedgerLostError
from airflow_provider_sms.ledger.backend import Patience
from airflow_provider_sms.ledger.model import ACCEPTED, CLAIMED, UNKNOWN
from airflow_provider_sms.reporting.row_counts import COUNTS
from support.cluster import pooler, running_pair, running_pooler
from support.faults.arena import Arena
from support.faults.tries import Ledgers, attempt
from support.faults.verdict import Figures
from support.forwarder import Forwarder
from support.postgres import DRIVER

FULL = 5
"""Repetitions of each case."""
PEOPLE = 200
CHUNK = 5
HANG_SECONDS = 0.5
"""Seconds for which commits to a synchronous primary hang before the failover."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of failover.

    :param synchronous: whether commits wait for the standby.
    :param zombie: whether the old primary survives, and existing connections to it stay open for a while.
    :param pooler: whether senders connect through a pooler, which hides the failover from them.
    """

    synchronous: bool
    zombie: bool = False
    pooler: bool = False

    def __str__(self):
        words = ["synchronous" if self.synchronous else "asynchronous"]
        return ", ".join([*words, *["zombie"] * self.zombie, *["pooler"] * self.pooler])


CASES = tuple(
    Case(synchronous, **more)
    for synchronous, more in itertools.product((False, True), ({}, {"zombie": True}, {"pooler": True}))
)


class Failover:
    """The failover of the servers while an attempt posts."""

    def __init__(self, case, pair, address, chance):
        self._case = case
        self._pair = pair
        self._address = address
        self._posts = itertools.count(1)
        self._silent_at = chance.randint(3, 10)
        self._fail_at = self._silent_at + chance.randint(3, 8)
        self._failed = threading.Event()
        self._posts_since = itertools.count(1)
        self._part_at = chance.randint(1, 5)
        self._failing = threading.Thread(target=self._fail_later, daemon=True)

    def around(self, post):
        """Post, and trigger the failover when it is due."""
        number = next(self._posts)
        if number == self._silent_at:
            self._pair.link.fall_silent()
            if self._case.synchronous:
                self._failing.start()
        if number > self._fail_at and not self._case.synchronous:
            self._failed.wait()  # else the send might be over before its servers change
        response = post()
        if number == self._fail_at and not self._case.synchronous:
            self._fail()
        elif self._case.zombie and self._failed.is_set() and next(self._posts_since) == self._part_at:
            self._address.drop()
        return response

    def wait(self):
        """Wait for the end of the failover, if it has begun."""
        if self._failing.ident is not None:
            self._failing.join()

    def _fail_later(self):
        time.sleep(HANG_SECONDS)
        self._fail()

    def _fail(self):
        if not self._case.zombie:
            self._pair.primary.stop()
        self._pair.standby.promote()
        self._address.lead_to(self._pair.standby.socket)
        if self._case.zombie and self._case.synchronous:
            # Its commits wait for the standby for ever: only whoever fences it ends them.
            time.sleep(HANG_SECONDS)
        if not self._case.zombie or self._case.synchronous:
            self._address.drop()
        self._failed.set()


def play(case, seed):
    """Run a case once, on its own servers."""
    chance = random.Random(seed)
    with ExitStack() as running:
        pair = running.enter_context(running_pair(synchronous=case.synchronous))
        address = running.enter_context(Forwarder(pair.primary.socket))
        server = {"host": address.host, "port": address.port}
        if case.pooler:
            server = {"query": {"host": str(running.enter_context(running_pooler(address)))}}
        ledgers = Ledgers(URL.create(DRIVER, username="postgres", database="postgres", **server))
        with Arena(ledgers) as arena:
            noticed = _send(arena, Failover(case, pair, address, chance), chance)
        return arena.figures + noticed


def _send(arena, failover, chance):
    """Send, and send the rest; return the figures of an attempt after which nobody may."""
    campaign, concurrency = arena.campaign(PEOPLE, chunk_size=CHUNK), chance.randint(1, 4)
    # The new primary may need a moment to accept connections.
    ended = attempt(campaign, concurrency=concurrency, around=failover.around, patience=Patience())
    failover.wait()
    arena.forget_connections()  # from here on, all reads are of the new primary
    if isinstance(ended.error, LedgerLostError):
        return _noticed(arena, campaign, ended)
    arena.resume("a failover", campaign)
    return Figures()


def _noticed(arena, campaign, ended):
    """Judge an attempt that noticed lost commits of its ledger: without a person, there is no further attempt.

    People whose claims the ledger has lost count as unknown, because the error says so.
    """
    witnessed, states, counts = arena.witnessed(), arena.states(campaign), ended.summary
    sent = {key for key, text in campaign.expected.items() if text in witnessed}
    forgotten = sent - states.keys()
    return Figures(
        cases=1,
        duplicates=witnessed.total() - len(witnessed),
        lost=abs(counts["rows"] - sum(counts[name] for name in COUNTS)),
        wrongly_accepted=sum(state == ACCEPTED and key not in sent for key, state in states.items()),
        wrongly_not_sent=max(0, counts["not_sent"] - (PEOPLE - len(sent))),
        unknown=len(forgotten) + sum(state in (CLAIMED, UNKNOWN) for state in states.values()),
    )


def run(_open_store, quick, *, cases=CASES):
    """Run failovers, and print those that broke the promise.

    :param _open_store: unused, because a ledger here has its own two servers.
    """
    total = Figures()
    for case in cases:
        if case.pooler and pooler() is None:
            print(f"not played, since there is no pgbouncer: {case}", file=sys.stderr)  # noqa: T201  # it must be known
            continue
        for seed in range(1 if quick else FULL):
            figures = play(case, seed)
            print(f"failover {case}, seed {seed}: {figures}", file=sys.stderr)  # noqa: T201  # the price of each
            total += figures
    return total
