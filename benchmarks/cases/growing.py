"""The size and speed of a growing ledger: also ``python -m benchmarks.cases.growing``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy.engine import URL, make_url

from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import ACCEPTED, Chunk, Claimant, Outcome
from airflow_provider_sms.ledger.postgres import open_postgres
from airflow_provider_sms.ledger.sqlite import open_sqlite
from airflow_provider_sms.messages.keys import KEY_BYTES
from airflow_provider_sms.planning.scan import BLOCK_ROWS, rows_of_block
from benchmarks.bench import ledger_bytes
from benchmarks.data import FIRST_NUMBER, SEED
from benchmarks.figures import Figure, Goal, at_most
from benchmarks.postgres import database_bytes, new_database
from benchmarks.processes import WrongError, run_job
from benchmarks.sizes import CHUNK
from benchmarks.standin import ANSWER, FIRST_EVENT
from benchmarks.usage import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from benchmarks.bench import Bench

CLAIMS_OF_GOAL = 10_000_000
GIGABYTE = 1_000_000_000
GOAL = at_most(1.3, "1.3 x")
TENTHS = 10
REQUESTS_A_COMMIT = 8
CLAIM_SECONDS = 45.0


def ledger(bench: Bench) -> list[Figure]:
    """Fill a SQLite ledger with as many claims as the large table has rows, and one in PostgreSQL with a tenth."""
    rows, fewer = bench.sizes.rows, bench.sizes.small
    bench.tell(f"writing {rows:,} claims, SQLite")
    path = bench.folder / f"{bench.name('growing')}.db"
    tenths = filled(bench, URL.create("sqlite", database=str(path)), rows)
    size = ledger_bytes(path)
    path.unlink()
    bench.tell(f"writing {fewer:,} claims in the order of a table, SQLite")
    path = bench.folder / f"{bench.name('unordered')}.db"
    unordered = filled(bench, URL.create("sqlite", database=str(path)), fewer, by_key=False)
    path.unlink()
    bench.tell(f"writing {fewer:,} claims, PostgreSQL")
    database = new_database(bench.postgres, bench.name("growing"))
    empty = database_bytes(database)
    fewer_tenths = filled(bench, database, fewer)
    return [
        Figure(
            f"ledger of {rows:,} claims, SQLite",
            f"{size / 1e6:,.0f} MB, {size / rows:.0f} bytes per claim",
            size / rows * CLAIMS_OF_GOAL,
            at_most(GIGABYTE, "1 GB for 10 million"),
        ),
        _growth(f"insert time of {rows:,} claims, SQLite, last tenth against first", tenths, "wall", rows, GOAL),
        _growth("  the same in CPU time", tenths, "cpu", rows),
        _compared(f"{fewer:,} claims, SQLite, in the order of keys against that of a table", tenths, unordered, rows),
        _growth(f"insert time of {fewer:,} claims, PostgreSQL, last tenth against first", fewer_tenths, "wall", fewer),
        Figure(
            f"ledger of {fewer:,} claims, PostgreSQL",
            f"{(database_bytes(database) - empty) / fewer:.0f} bytes per claim",
            (database_bytes(database) - empty) / fewer * CLAIMS_OF_GOAL,
        ),
    ]


def filled(bench: Bench, url: URL, rows: int, *, by_key: bool = True) -> dict[str, list[float]]:
    """Fill a ledger in a process of its own, and return the seconds of each tenth's commits."""
    job = {"url": url.render_as_string(hide_password=False), "rows": rows, "by_key": by_key}
    tenths: dict[str, list[float]] = run_job(bench.folder / "growing", "benchmarks.cases.growing", job)
    return tenths


def _growth(what: str, tenths: dict[str, list[float]], kind: str, rows: int, goal: Goal | None = None) -> Figure:
    first, *_, last = (seconds / (rows // TENTHS) * 1e6 for seconds in tenths[kind])
    text = f"{last:.1f} µs per claim against {first:.1f} µs, {last / first:.2f} x"
    return Figure(what, text, last / first, goal, details={"seconds": tenths[kind]})


def _compared(what: str, tenths: dict[str, list[float]], unordered: dict[str, list[float]], rows: int) -> Figure:
    ours, theirs = tenths["wall"][0] / (rows // TENTHS) * 1e6, sum(unordered["wall"]) / (rows // TENTHS) * 1e6
    return Figure(what, f"{ours:.1f} µs per claim against {theirs:.1f} µs, {ours / theirs:.2f} x", ours / theirs)


def fill(url: str, rows: int, *, by_key: bool) -> dict[str, list[float]]:
    """Claim messages and record their outcomes like a send, and return the seconds of each tenth's commits.

    :param by_key: whether to claim in the order in which a send claims.
    :raises WrongError: when a claim was refused.
    """
    store = _opened(make_url(url))
    campaign = CampaignLedger(store, "growing", Claimant("dag", "task", "run", -1, 1, "host", 1))
    outcomes: list[Outcome] = []
    spent: dict[str, list[float]] = {"wall": [0.0] * TENTHS, "cpu": [0.0] * TENTHS}
    claimed = 0
    for chunks in _commits(rows, by_key=by_key):
        began, used = time.perf_counter(), cpu_seconds()
        claims = campaign.commit(outcomes=outcomes, chunks=chunks, claim_seconds=CLAIM_SECONDS)
        tenth = claimed * TENTHS // rows
        spent["wall"][tenth] += time.perf_counter() - began
        spent["cpu"][tenth] += cpu_seconds() - used
        claimed += sum(len(claim.won) for claim in claims)
        outcomes = [_accepted(claim.request_id) for claim in claims if claim.request_id is not None]
    campaign.finish(outcomes)
    store.close()
    if claimed != rows:
        raise WrongError(f"{claimed} claims of {rows}")
    return spent


def _opened(url: URL) -> LedgerBackend:
    if url.get_backend_name() == "sqlite":
        return open_sqlite(Path(str(url.database)))
    return open_postgres(url)


def _commits(rows: int, *, by_key: bool) -> Iterator[list[Chunk]]:
    """Yield the claims of each commit: in blocks ordered by key as a send gathers them, or in random order."""
    rng = np.random.default_rng(SEED)
    left = rows
    while left > 0:
        size = min(max(rows_of_block(rows - left), BLOCK_ROWS), left)
        keys = [rng.bytes(KEY_BYTES) for _ in range(size)]
        keys = sorted(keys) if by_key else keys
        numbers = rng.integers(FIRST_NUMBER, FIRST_NUMBER + 10_000_000, size).tolist()
        chunks = [
            Chunk(keys[at : at + CHUNK], [str(number) for number in numbers[at : at + CHUNK]])
            for at in range(0, size, CHUNK)
        ]
        for at in range(0, len(chunks), REQUESTS_A_COMMIT):
            yield chunks[at : at + REQUESTS_A_COMMIT]
        left -= size


def _accepted(request_id: int) -> Outcome:
    response: dict[str, Any] = json.loads(ANSWER % {b"n": CHUNK, b"id": FIRST_EVENT + request_id})
    return Outcome(
        request_id,
        ACCEPTED,
        http_status=200,
        event_id=response["EventId"],
        messages=CHUNK,
        parts=CHUNK,
        cost="100.0",
        response=json.dumps(response),
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(fill(**json.loads(Path(sys.argv[1]).read_bytes()))))
