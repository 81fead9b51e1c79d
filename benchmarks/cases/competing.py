"""Several sender processes of one campaign, against a campaign each: also ``python -m benchmarks.cases.competing``."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, make_url, text

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Claimant
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import Scan, outgoing_blocks
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.sending.sender import Sender, SendingOptions
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.stop_flag import StopFlag
from benchmarks.data import MESSAGE
from benchmarks.figures import Figure, at_least, median
from benchmarks.postgres import new_database, with_commit_delay
from benchmarks.processes import WrongError, end_of, put, python, wait_for
from benchmarks.usage import Meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

    from benchmarks.bench import Bench

TOKEN = "benchmark-token"  # noqa: S105 - of a stand-in
CONCURRENCY = 4
"""Requests in flight of each sender: the operator's default."""
GOAL_SENDERS, KEPT_SHARE = 8, 0.67
START_SECONDS, SEND_SECONDS = 120.0, 600.0
LOOK_SECONDS = 0.1
_ACTIVITY = text(
    "SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'Lock' AND wait_event = 'advisory') "
    "FROM pg_stat_activity WHERE datname = :name AND backend_type = 'client backend'"
)
_TRANSACTIONS = text("SELECT xact_commit FROM pg_stat_database WHERE datname = :name")


@dataclass(frozen=True)
class Setting:
    """How long everybody waits.

    :param what: the setting in words.
    :param latency: seconds of a response.
    :param commit_delay: seconds by which a commit takes longer than on this disk.
    :param share: rows of a sender, as a share of the usual number.
    """

    what: str
    latency: float
    commit_delay: float
    share: float


SETTINGS = (
    Setting("20 ms", 0.02, 0.0, 1.0),
    Setting("20 ms, commits 5 ms slower", 0.02, 0.005, 1.0),
    # As on a machine of ten times the cores: processors cost a tenth of what they cost beside these waits.
    Setting("200 ms, commits 50 ms slower", 0.2, 0.05, 1 / 3),
)


@dataclass(frozen=True)
class Sent:
    """What senders did at the same time.

    :param rate: messages a second, of all of them.
    :param commits: commits of claims and outcomes a second.
    :param transactions: transactions a second that the server counts as committed: checks of connections are among
        them.
    :param locked: share of their time for which senders waited for the campaign's lock.
    :param committing: share of their time for which they were in a commit, waits for the lock included.
    :param waiting: mean number of connections that wait for a lock, as the server shows.
    :param connections: the most connections to the ledger at once.
    """

    rate: float
    commits: float
    transactions: float
    locked: float
    committing: float
    waiting: float
    connections: int


def senders(bench: Bench) -> list[Figure]:
    """Send disjoint tables with PostgreSQL from several processes, all in one campaign, and in a campaign each."""
    numbers = [number for number in (1, 2, 4, 8) if number <= bench.sizes.most_senders]
    return [_figure(bench, setting, number) for setting in SETTINGS for number in numbers]


def _figure(bench: Bench, setting: Setting, number: int) -> Figure:
    ones, owns, ratios = [], [], []
    for _ in range(bench.sizes.runs):
        ones.append(_send(bench, setting, number, one=True))
        owns.append(ones[-1] if number == 1 else _send(bench, setting, number, one=False))
        ratios.append(ones[-1].rate / owns[-1].rate)
    one, own = _median(ones), _median(owns)
    goal = at_least(KEPT_SHARE, f"{KEPT_SHARE} of a campaign each") if number == GOAL_SENDERS else None
    words = f"{one.rate:,.0f} messages/s, {one.commits:.0f} commits/s, {one.locked:.0%} of the time for the lock"
    if number > 1:
        words += f"; a campaign each {own.rate:,.0f}, {own.commits:.0f}, {own.locked:.0%}; {median(ratios):.2f} of it"
    return Figure(
        f"senders of one campaign: {number}, {setting.what}",
        words,
        median(ratios),
        goal,
        tuple(ratios),
        {"one": [vars(each) for each in ones], "own": [vars(each) for each in owns]},
    )


def _median(sent: Sequence[Sent]) -> Sent:
    return sorted(sent, key=lambda each: each.rate)[len(sent) // 2]


def _send(bench: Bench, setting: Setting, number: int, *, one: bool) -> Sent:
    rows = int(bench.sizes.senders * setting.share) * number
    bench.tell(f"{number} senders, {rows:,} rows, {setting.what}, {'one campaign' if one else 'a campaign each'}")
    source, name = Path(bench.table(rows, number)), bench.name("senders")
    database = new_database(bench.postgres, name)
    if setting.commit_delay:
        with_commit_delay(database, setting.commit_delay)
    folder = bench.folder / name
    folder.mkdir()
    go = folder / "go"
    engine = create_engine(bench.postgres, isolation_level="AUTOCOMMIT")
    try:
        with ExitStack() as stack, engine.connect() as connection:
            started = []
            for place, file in enumerate(sorted(source.iterdir())):
                job = {
                    "url": database.render_as_string(hide_password=False),
                    "campaign": "senders" if one else f"senders {place}",
                    "source": str(file),
                    "service": bench.service.url,
                    "go": str(go),
                }
                started.append(_Started(stack, folder / str(place), job))
            for each in started:
                wait_for(each.ready.exists, each.process, each.log, seconds=START_SECONDS)
            bench.service.set(latency=setting.latency)
            before = connection.execute(_TRANSACTIONS, {"name": name}).scalar_one()
            go.touch()
            looks = _watch(connection, name, started)
            results = [each.result() for each in started]
            transactions = connection.execute(_TRANSACTIONS, {"name": name}).scalar_one() - before
    finally:
        engine.dispose()
    counters = bench.service.counters()
    found = (counters.messages, bench.service.distinct(), sum(each["accepted"] for each in results))
    if found != (rows,) * 3:
        raise WrongError(f"{rows} rows: {found[0]} messages to {found[1]} people, {found[2]} accepted")
    seconds = sum(each["seconds"] for each in results)
    return Sent(
        rate=counters.rate,
        commits=sum(each["commits"] for each in results) / (counters.last - counters.first),
        transactions=transactions / (counters.last - counters.first),
        locked=sum(each["locked"] for each in results) / seconds,
        committing=sum(each["committing"] for each in results) / seconds,
        waiting=sum(waiting for _, waiting in looks) / len(looks),
        connections=max(connections for connections, _ in looks),
    )


class _Started:
    """A sender's process.

    :param stack: ends it.
    :param folder: for its files.
    """

    def __init__(self, stack: ExitStack, folder: Path, job: dict[str, str]) -> None:
        folder.mkdir()
        given, self._result = folder / "job.json", folder / "result.json"
        self.ready, self.log = folder / "ready", folder / "output.log"
        given.write_text(json.dumps({**job, "ready": str(self.ready)}))
        self.process = stack.enter_context(
            python(folder, "-m", "benchmarks.cases.competing", str(given), str(self._result), log=self.log)
        )

    def result(self) -> dict[str, float]:
        """Return what the process measured.

        :raises WrongError: when it failed.
        """
        if self.process.wait() or not self._result.exists():
            raise WrongError(f"a sender failed: {end_of(self.log)}")
        result: dict[str, float] = json.loads(self._result.read_bytes())
        return result


def _watch(connection: Connection, name: str, started: Sequence[_Started]) -> list[tuple[int, int]]:
    """Return how many connections a database had, and how many of these waited for a lock, until all senders end."""
    looks: list[tuple[int, int]] = []
    until = time.monotonic() + SEND_SECONDS
    while not looks or any(each.process.poll() is None for each in started):
        if time.monotonic() > until:
            raise WrongError(f"senders took longer than {SEND_SECONDS:.0f} s")
        connections, waiting = connection.execute(_ACTIVITY, {"name": name}).one()
        looks.append((connections, waiting))
        time.sleep(LOOK_SECONDS)
    return looks


class _Timed:
    """Counts all calls of a method, and adds up their time.

    :param owner: the object; its method is replaced.
    """

    def __init__(self, owner: Any, method: str) -> None:
        self.seconds, self.calls = 0.0, 0
        self._call = getattr(owner, method)
        setattr(owner, method, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        self.calls += 1
        try:
            return self._call(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - began


def send(*, url: str, campaign: str, source: str, service: str, ready: str, go: str) -> dict[str, float]:
    """Send a file as one task does, and return the time of the whole and of its commits.

    :param ready: a file to create once everything is open.
    :param go: a file whose existence begins the send.
    """
    store = open_postgres(make_url(url))
    ledger = CampaignLedger(store, campaign, Claimant("dag", "task", "run", os.getpid(), 1, "host", os.getpid()))
    preparation, scan, stop = Preparation(MESSAGE, None), Scan(Prices()), StopFlag()
    scan.read(open_source(source), preparation, stop)
    locking, committing = _Timed(store, "_lock"), _Timed(ledger, "commit")
    with SmsClient(service, token=TOKEN, pool_size=CONCURRENCY) as client:
        sender = Sender(
            ledger,
            lambda messages: client.send_bulk(MessageColumns.of(messages)),
            post_seconds=60.0,
            options=SendingOptions(concurrency=CONCURRENCY),
            stop=stop,
        )
        Path(ready).touch()
        while not Path(go).exists():
            time.sleep(0.001)
        meter = Meter()
        sender.run(outgoing_blocks(scan.spool, stop))
    used = meter.read()
    store.close()
    if sender.error is not None:
        raise sender.error
    return {
        "accepted": sender.counts.accepted,
        "seconds": used.wall,
        "cpu": used.cpu,
        "commits": committing.calls,
        "locked": locking.seconds,
        "committing": committing.seconds,
    }


if __name__ == "__main__":
    put(Path(sys.argv[2]), send(**json.loads(Path(sys.argv[1]).read_bytes())))
