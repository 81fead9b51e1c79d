"""The time of a send by stage: also ``python -m benchmarks.cases.profiling``."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from sqlalchemy import event
from sqlalchemy.engine import make_url

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Claimant
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.messages.blocks import BlockBuilder
from airflow_provider_sms.messages.outgoing import MessageColumns
from airflow_provider_sms.messages.prepare import Preparation
from airflow_provider_sms.planning.prices import Prices
from airflow_provider_sms.planning.scan import BLOCK_ROWS, Scan, outgoing_blocks
from airflow_provider_sms.recipients.sources import open_source
from airflow_provider_sms.sending.counts import SendCounts
from airflow_provider_sms.sending.pending import PendingMessages
from airflow_provider_sms.sending.request_batch import RequestBatch
from airflow_provider_sms.sending.response_handler import answered
from airflow_provider_sms.sending.sender import Sender, SendingOptions
from airflow_provider_sms.sending.threads import WorkerPool
from airflow_provider_sms.service.client import SmsClient
from airflow_provider_sms.service.responses import SendResponse, parse_send_response
from airflow_provider_sms.stop_flag import StopFlag
from benchmarks.bench import CONCURRENCY, LATENCY, SLOW_CONCURRENCY, SLOW_LATENCY
from benchmarks.data import MESSAGE
from benchmarks.figures import Figure
from benchmarks.postgres import new_database
from benchmarks.processes import WrongError, run_job
from benchmarks.sizes import CHUNK
from benchmarks.standin import ANSWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from airflow_provider_sms.messages.outgoing import Outgoing
    from benchmarks.bench import Bench

REQUESTS_A_COMMIT = 8
POSTS_A_BLOCK = 10
A_COMMIT = "a commit"
TOKEN = "benchmark-token"  # noqa: S105 - of a stand-in


def profile(bench: Bench) -> list[Figure]:
    """Measure the stages of a send one after the other in one thread, then its threads during sends."""
    small, few = bench.sizes.small, bench.sizes.slow
    slow = {"latency": SLOW_LATENCY, "concurrency": SLOW_CONCURRENCY}
    figures = []
    for part, what, rows, database, send in (
        ("stages", "one after the other, in one thread", small, False, {"latency": 0.0}),
        ("stages", "the same, PostgreSQL", small, True, {"latency": 0.0}),
        ("threads", "at once, as they are", small, False, {}),
        ("threads", "the same, PostgreSQL", small, True, {}),
        ("threads", f"the same, {SLOW_CONCURRENCY} in flight, {SLOW_LATENCY * 1000:.0f} ms", few, False, slow),
    ):
        bench.tell(f"{rows:,} rows are taken apart: {part}, {what}")
        settings: dict[str, Any] = {"latency": LATENCY, "concurrency": CONCURRENCY, **send}
        bench.service.set(latency=settings.pop("latency"))
        folder = bench.folder / bench.name(part)
        folder.mkdir()
        url = new_database(bench.postgres, bench.name("profile")) if database else None
        ledger = str(folder / "ledger.db") if url is None else url.render_as_string(hide_password=False)
        job = {"part": part, "source": bench.table(rows), "rows": rows, "url": bench.service.url, "ledger": ledger}
        spent: dict[str, list[float]] = run_job(folder, "benchmarks.cases.profiling", {**job, **settings})
        requests_of, statements, used, passed = spent.pop(A_COMMIT)
        figures.append(Figure(f"where the time goes, {what}:", "µs a message: CPU, wall", 0.0))
        figures += [
            Figure(f"  {stage}", f"{cpu:.2f} CPU, {wall:.2f} wall", cpu, details={"wall": wall})
            for stage, (cpu, wall) in spent.items()
        ]
        figures.append(
            Figure(
                f"  a commit of {requests_of:.1f} requests, by {statements:.1f} statements",
                f"{used:.2f} ms CPU, {passed:.2f} ms wall",
                used,
                details={"wall": passed},
            )
        )
    return figures


class Clock:
    """Adds up the time of named stages.

    :param cpu: function that returns CPU seconds, of this thread or of the process.
    """

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        self.spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._cpu = cpu
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str, messages: int) -> Iterator[None]:
        """Measure a block, in microseconds per message."""
        cpu, wall = self._cpu(), time.perf_counter()
        try:
            yield
        finally:
            used, passed = self._cpu() - cpu, time.perf_counter() - wall
            with self._lock:
                spent = self.spent[name]
                spent[0] += used / messages * 1e6
                spent[1] += passed / messages * 1e6

    def around(self, owner: Any, method: str, name: str, messages: int) -> None:
        """Measure every call of a method, in the order of these calls of ``around``."""
        self.spent[name] = [0.0, 0.0]
        call = getattr(owner, method)

        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name, messages):
                return call(*args, **kwargs)

        setattr(owner, method, measured)


class Commits:
    """Measures every commit of a campaign.

    :param cpu: function that returns CPU seconds, of this thread or of the process.
    """

    def __init__(self, store: LedgerBackend, campaign: CampaignLedger, cpu: Callable[[], float]) -> None:
        self._commits, self._requests, self._statements, self._running = 0, 0, 0, False
        self._used, self._passed = 0.0, 0.0
        self._cpu, self._commit = cpu, campaign.commit
        event.listen(store._engine, "before_cursor_execute", self._count)  # noqa: SLF001 - nothing else tells
        campaign.commit = self._measured  # type: ignore[method-assign]

    def _count(self, *_: Any) -> None:
        self._statements += self._running

    def _measured(self, *, chunks: Sequence[Any] = (), **options: Any) -> Any:
        self._running, cpu, began = True, self._cpu(), time.perf_counter()
        try:
            return self._commit(chunks=chunks, **options)
        finally:
            self._running = False
            self._used += self._cpu() - cpu
            self._passed += time.perf_counter() - began
            self._commits += 1
            self._requests += len(chunks)

    @property
    def means(self) -> list[float]:
        """The requests, statements, CPU milliseconds and milliseconds of a commit.

        BEGIN counts as a statement in SQLite only, and COMMIT in none of both.
        """
        numbers = self._requests, self._statements, self._used * 1e3, self._passed * 1e3
        return [each / self._commits for each in numbers]


def stages(*, source: str, rows: int, url: str, ledger: str, **_: Any) -> dict[str, list[float]]:
    """Perform the work of a send one stage at a time."""
    clock = Clock(time.process_time)
    store = _opened(ledger)
    campaign = CampaignLedger(store, "profile", _claimant())
    commits = Commits(store, campaign, time.process_time)
    preparation, batches = Preparation(MESSAGE, None), 0
    client = SmsClient(url, token=TOKEN, pool_size=1)
    session = requests.Session()
    posts = -(-rows // BLOCK_ROWS) * POSTS_A_BLOCK * CHUNK
    reading = open_source(source).batches(preparation.columns)
    answer = ANSWER % {b"n": CHUNK, b"id": 1}
    while True:
        with clock.stage("read Parquet (done twice)", rows):
            batch = next(reading, None)
        if batch is None:
            break
        batches += len(batch)
        with clock.stage("prepare: numbers, texts, keys", rows):
            prepared = preparation.prepare(batch, batches)
        with clock.stage("gather a block by key", rows):
            builder = BlockBuilder()
            builder.add(prepared)
            block = builder.build(batches, by_key=True)
        with clock.stage("look up held messages, take", rows):
            pending = PendingMessages([block], campaign, SendCounts(), resend=lambda *_: False)
            taken = [pending.next_chunk(CHUNK)[0] for _ in range(-(-len(block) // CHUNK))]
        requests_made: list[tuple[int, RequestBatch]] = []
        for at in range(0, len(taken), REQUESTS_A_COMMIT):
            with clock.stage("parse responses, make outcomes", rows):
                outcomes = [answered(made, parse_send_response(answer), batch) for made, batch in requests_made]
            with clock.stage("commit claims and records", rows):
                some = taken[at : at + REQUESTS_A_COMMIT]
                made_of = [RequestBatch(part, {}) for part in some]
                chunks = [batch.chunk for batch in made_of]
                claims = campaign.commit(outcomes=outcomes, chunks=chunks, claim_seconds=60.0)
            requests_made = [
                (claim.request_id, batch)
                for claim, batch in zip(claims, made_of, strict=True)
                if claim.request_id is not None
            ]
        for part in taken[:POSTS_A_BLOCK]:
            with clock.stage("post, ours", posts):
                _post(client, part)
            pairs = [{"Content": m.content, "Destination": m.destination} for m in part]
            body = json.dumps({"Messages": pairs}).encode()
            with clock.stage("post, bare requests", posts):
                session.post(f"{url}/bulkmessages", data=body, headers={"Authorization": f"Bearer {TOKEN}"}).json()
    return {**clock.spent, A_COMMIT: commits.means}


def threads(*, source: str, rows: int, url: str, ledger: str, concurrency: int) -> dict[str, list[float]]:
    """Send, and add up the time of each kind of thread and of the ledger's work.

    :raises WrongError: when not every row was accepted.
    """
    clock = Clock()
    posting = "  of it: requests"
    for owner, method, name in (
        (Sender, "run", "the thread that claims and records"),
        (CampaignLedger, "commit", "  of it: commits"),
        (CampaignLedger, "holders", "  of it: look-ups"),
        (WorkerPool, "_run", f"the {concurrency} threads that post, together"),
    ):
        clock.around(owner, method, name, rows)
    clock.spent[posting] = [0.0, 0.0]
    preparation, scan, stop = Preparation(MESSAGE, None), Scan(Prices()), StopFlag()
    scan.read(open_source(source), preparation, stop)
    store = _opened(ledger)
    campaign = CampaignLedger(store, "profile", _claimant())
    commits = Commits(store, campaign, time.thread_time)
    with SmsClient(url, token=TOKEN, pool_size=concurrency) as client:

        def post(messages: Sequence[Outgoing]) -> SendResponse:
            with clock.stage(posting, rows):
                return _post(client, messages)

        sender = Sender(
            campaign,
            post,
            post_seconds=60.0,
            options=SendingOptions(concurrency=concurrency),
            stop=stop,
        )
        sender.run(outgoing_blocks(scan.spool, stop))
    if sender.counts.accepted != rows:
        raise WrongError(f"{sender.counts.accepted} of {rows} accepted") from sender.error
    return {**clock.spent, A_COMMIT: commits.means}


def _opened(ledger: str) -> LedgerBackend:
    return open_postgres(make_url(ledger)) if "://" in ledger else open_sqlite(Path(ledger))


def _claimant() -> Claimant:
    return Claimant("dag", "task", "run", -1, 1, "host", 1)


def _post(client: SmsClient, messages: Sequence[Outgoing]) -> SendResponse:
    return client.send_bulk(MessageColumns.of(messages))


if __name__ == "__main__":
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_bytes())
    spent = {"stages": stages, "threads": threads}[job.pop("part")](**job)
    Path(sys.argv[2]).write_text(json.dumps(spent))
