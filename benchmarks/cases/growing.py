"""Whether a ledger stays small and fast as it grows: also ``python -m benchmarks.cases.growing``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_provider_sms.sending.claims import ACCEPTED, Chunk, Claimant, Outcome
from airflow_provider_sms.sending.ledger import CampaignLedger
from airflow_provider_sms.sending.sqlite import open_sqlite
from benchmarks.bench import ledger_bytes
from benchmarks.data import FIRST_NUMBER, SEED
from benchmarks.figures import Figure, at_most
from benchmarks.processes import WrongError, run_job
from benchmarks.sizes import CHUNK
from benchmarks.standin import ANSWER, FIRST_EVENT
from benchmarks.usage import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.bench import Bench

CLAIMS_OF_GOAL = 10_000_000
GIGABYTE = 1_000_000_000
TIME_RATIO = 1.3
TENTHS = 10
REQUESTS_A_COMMIT = 8
CLAIM_SECONDS = 45.0


def ledger(bench: Bench) -> list[Figure]:
    """Fill a ledger with as many claims as the large table has rows."""
    rows = bench.sizes.rows
    bench.tell(f"{rows:,} claims are written")
    path = bench.folder / f"{bench.name('growing')}.db"
    tenths: dict[str, list[float]] = run_job(
        bench.folder / "growing", "benchmarks.cases.growing", {"path": str(path), "rows": rows}
    )
    size = ledger_bytes(path)
    path.unlink()
    whole = size / rows * CLAIMS_OF_GOAL
    wall, cpu = tenths["wall"], tenths["cpu"]
    each = 1e6 / (rows / TENTHS)
    return [
        Figure(
            f"ledger of {rows:,} claims, SQLite",
            f"{size / 1e6:,.0f} MB, {size / rows:.0f} bytes a claim",
            whole,
            at_most(GIGABYTE, "1 GB for 10 million"),
        ),
        Figure(
            f"ledger: insert time, last tenth of {rows:,} against the first",
            f"{wall[-1] * each:.1f} µs a claim against {wall[0] * each:.1f} µs, {wall[-1] / wall[0]:.2f} x",
            wall[-1] / wall[0],
            at_most(TIME_RATIO, f"{TIME_RATIO} x"),
            details={"wall": wall, "cpu": cpu},
        ),
        Figure(
            "  the same in CPU time",
            f"{cpu[-1] * each:.1f} µs a claim against {cpu[0] * each:.1f} µs, {cpu[-1] / cpu[0]:.2f} x",
            cpu[-1] / cpu[0],
        ),
    ]


def fill(path: str, rows: int) -> dict[str, list[float]]:
    """Claim messages and record their outcomes as a send does, and give the seconds of each tenth's commits.

    :raises WrongError: a claim was refused.
    """
    store = open_sqlite(Path(path))
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
