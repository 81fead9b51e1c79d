"""Whether a ledger stays small and fast as it grows: also ``python -m benchmarks.cases.growing``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy.engine import URL, make_url

from airflow_provider_sms.sending.claims import ACCEPTED, Chunk, Claimant, Outcome
from airflow_provider_sms.sending.ledger import CampaignLedger
from airflow_provider_sms.sending.postgres import open_postgres
from airflow_provider_sms.sending.sqlite import open_sqlite
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

    from airflow_provider_sms.sending.store import Store
    from benchmarks.bench import Bench

CLAIMS_OF_GOAL = 10_000_000
GIGABYTE = 1_000_000_000
GOAL = at_most(1.3, "1.3 x")
TENTHS = 10
REQUESTS_A_COMMIT = 8
CLAIM_SECONDS = 45.0


def ledger(bench: Bench) -> list[Figure]:
    """Fill a ledger with as many claims as the large table has rows, and one in PostgreSQL with a tenth of them."""
    rows, fewer = bench.sizes.rows, bench.sizes.small
    bench.tell(f"{rows:,} claims are written, SQLite")
    path = bench.folder / f"{bench.name('growing')}.db"
    tenths = _filled(bench, URL.create("sqlite", database=str(path)), rows)
    size = ledger_bytes(path)
    path.unlink()
    bench.tell(f"{fewer:,} claims are written, PostgreSQL")
    database = new_database(bench.postgres, bench.name("growing"))
    empty = database_bytes(database)
    fewer_tenths = _filled(bench, database, fewer)
    return [
        Figure(
            f"ledger of {rows:,} claims, SQLite",
            f"{size / 1e6:,.0f} MB, {size / rows:.0f} bytes a claim",
            size / rows * CLAIMS_OF_GOAL,
            at_most(GIGABYTE, "1 GB for 10 million"),
        ),
        _growth(f"insert time of {rows:,} claims, SQLite, last tenth against first", tenths, "wall", rows, GOAL),
        _growth("  the same in CPU time", tenths, "cpu", rows),
        _growth(f"insert time of {fewer:,} claims, PostgreSQL, last tenth against first", fewer_tenths, "wall", fewer),
        Figure(
            f"ledger of {fewer:,} claims, PostgreSQL",
            f"{(database_bytes(database) - empty) / fewer:.0f} bytes a claim",
            (database_bytes(database) - empty) / fewer * CLAIMS_OF_GOAL,
        ),
    ]


def _filled(bench: Bench, url: URL, rows: int) -> dict[str, list[float]]:
    job = {"url": url.render_as_string(hide_password=False), "rows": rows}
    tenths: dict[str, list[float]] = run_job(bench.folder / "growing", "benchmarks.cases.growing", job)
    return tenths


def _growth(what: str, tenths: dict[str, list[float]], kind: str, rows: int, goal: Goal | None = None) -> Figure:
    first, *_, last = (seconds / (rows // TENTHS) * 1e6 for seconds in tenths[kind])
    text = f"{last:.1f} µs a claim against {first:.1f} µs, {last / first:.2f} x"
    return Figure(what, text, last / first, goal, details={"seconds": tenths[kind]})


def fill(url: str, rows: int) -> dict[str, list[float]]:
    """Claim messages and record their outcomes as a send does, and give the seconds of each tenth's commits.

    :raises WrongError: a claim was refused.
    """
    store = _opened(make_url(url))
    campaign = CampaignLedger(store, "growing", Claimant("dag", "task", "run", -1, 1, "host", 1))
    outcomes: list[Outcome] = []
    spent: dict[str, list[float]] = {"wall": [], "cpu": []}
    claimed = 0
    for chunks in _tenths(rows):
        wall = cpu = 0.0
        for some in chunks:
            began, used = time.perf_counter(), cpu_seconds()
            claims = campaign.commit(outcomes=outcomes, chunks=some, claim_seconds=CLAIM_SECONDS)
            wall += time.perf_counter() - began
            cpu += cpu_seconds() - used
            claimed += sum(len(claim.won) for claim in claims)
            outcomes = [_accepted(claim.request_id) for claim in claims if claim.request_id is not None]
        spent["wall"].append(wall)
        spent["cpu"].append(cpu)
    campaign.finish(outcomes)
    store.close()
    if claimed != rows:
        raise WrongError(f"{claimed} claims of {rows}")
    return spent


def _opened(url: URL) -> Store:
    if url.get_backend_name() == "sqlite":
        return open_sqlite(Path(str(url.database)))
    return open_postgres(url)


def _tenths(rows: int) -> Iterator[Iterator[list[Chunk]]]:
    rng = np.random.default_rng(SEED)
    a_commit = REQUESTS_A_COMMIT * CHUNK

    def commits() -> Iterator[list[Chunk]]:
        left = rows // TENTHS
        while left > 0:
            yield [_chunk(rng, min(CHUNK, left - at)) for at in range(0, min(left, a_commit), CHUNK)]
            left -= a_commit

    for _ in range(TENTHS):
        yield commits()


def _chunk(rng: np.random.Generator, size: int) -> Chunk:
    keys = rng.bytes(16 * size)
    numbers = rng.integers(FIRST_NUMBER, FIRST_NUMBER + 10_000_000, size)
    return Chunk([keys[at : at + 16] for at in range(0, len(keys), 16)], [str(number) for number in numbers])


def _accepted(request_id: int) -> Outcome:
    answer: dict[str, Any] = json.loads(ANSWER % {b"n": CHUNK, b"id": FIRST_EVENT + request_id})
    return Outcome(
        request_id,
        ACCEPTED,
        http_status=200,
        event_id=answer["EventId"],
        messages=CHUNK,
        parts=CHUNK,
        cost="100.0",
        response=json.dumps(answer),
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(fill(**json.loads(Path(sys.argv[1]).read_bytes()))))
