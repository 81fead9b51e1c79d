"""The cases: each is a function that returns figures."""

from __future__ import annotations

import json
import re
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.bench import CONCURRENCY, LATENCY, WrongError
from benchmarks.data import CHUNK
from benchmarks.figures import Figure, ratio
from benchmarks.full_ledger import fill, large_campaign
from benchmarks.ledgers import bytes_of
from benchmarks.pages import SETTINGS, seconds_of
from demo.processes import answering

if TYPE_CHECKING:
    from benchmarks.bench import Bare, Bench, Ran

SLOW_LATENCY, SLOW_CONCURRENCY, SLOW_ROWS = 0.2, 4, 40_000
MEGABYTE = 1_000_000
STARTED = 1_000  # rows of a task that is about its start
LOOKS = 5


def rate(bench: Bench) -> list[Figure]:
    """Send with a ledger in SQLite."""
    rounds, ledger = bench.sqlite_rounds
    best = CONCURRENCY / LATENCY * CHUNK
    shares = [(ran.counters.rate, best) for ran, _ in rounds]
    request = median([ran.counters.cpu / ran.counters.posts for ran, _ in rounds])
    return [
        *_beside_bare(rounds, 1.0, 1.25),
        ratio(f"of the {best:,.0f}/s that the service allows", shares, 0.75, least=True),
        ratio("bare threads, the same", [(bare.rate, best) for _, bare in rounds]),
        Figure("messages/s that the stand-in can take, by its CPU a request", CHUNK / request),
        Figure("ledger, MB", bytes_of(ledger) / MEGABYTE),
    ]


def postgres(bench: Bench) -> list[Figure]:
    """Send with a ledger in PostgreSQL."""
    empty = bytes_of(bench.new_ledger("PostgreSQL"))
    rounds, ledger = bench.rounds("PostgreSQL")
    return [*_beside_bare(rounds, 0.8), Figure("ledger, MB", (bytes_of(ledger) - empty) / MEGABYTE)]


def slow(bench: Bench) -> list[Figure]:
    """Send to a slow service, with few requests at once."""
    rows, best = min(SLOW_ROWS, bench.sizes.small), SLOW_CONCURRENCY / SLOW_LATENCY * CHUNK
    ran = bench.send(rows, bench.new_ledger("SQLite"), SLOW_LATENCY, SLOW_CONCURRENCY)
    bare = bench.bare(rows, SLOW_LATENCY, SLOW_CONCURRENCY)
    return [
        ratio(f"of the {best:,.0f}/s that the service allows", [(ran.counters.rate, best)], 0.97, least=True),
        ratio("bare threads, the same", [(bare.rate, best)]),
    ]


def large(bench: Bench) -> list[Figure]:
    """Send the large table, and compare the send with that of the small one."""
    small, ledger = [ran for ran, _ in bench.sqlite_rounds[0]], bench.new_ledger("SQLite")
    ran = bench.send(bench.sizes.rows, ledger)
    xcoms, small_xcoms = (json.dumps(each.xcoms, sort_keys=True) for each in (ran, small[-1]))
    if _shape(xcoms) != _shape(small_xcoms):
        raise WrongError(f"XComs of {bench.sizes.rows:,} rows: {xcoms}; of a tenth: {small_xcoms}")
    peaks = [(ran.peak / MEGABYTE, each.peak / MEGABYTE) for each in small]
    return [
        Figure("peak memory, MB", ran.peak / MEGABYTE, 450),
        ratio("peak memory, of a tenth of the rows", peaks, 1.1),
        ratio("time, of a tenth of the rows", [(ran.wall, each.wall) for each in small], 11),
        Figure("messages/s", ran.counters.rate),
        Figure("XComs, bytes", len(xcoms), note=f"the same as {len(small_xcoms)} of a tenth, except for digits"),
        Figure("ledger, MB", bytes_of(ledger) / MEGABYTE),
    ]


def resume(bench: Bench) -> list[Figure]:
    """Run the finished small campaign again: in another process, as another run of the DAG."""
    _, ledger = bench.sqlite_rounds
    walls = [bench.send(bench.sizes.small, ledger, again=True).wall for _ in range(bench.sizes.runs)]
    return [Figure("a rerun of a tenth, s, without a request", median(walls), 8)]


def start(bench: Bench) -> list[Figure]:
    """Run a task without work and a task of few rows in turns, each in a fresh process."""
    ledger = bench.new_ledger("SQLite")
    bench.run(ledger)  # not measured: the first one reads Airflow's files from the disk
    turns = [(bench.run(ledger), bench.send(STARTED, bench.new_ledger("SQLite"))) for _ in range(bench.sizes.runs)]
    more = median([ran.whole - empty.whole for empty, ran in turns])
    return [
        Figure(f"a task of {STARTED:,} rows, s more than an empty task", more, 1.5),
        ratio("its time, s", [(ran.whole, empty.whole) for empty, ran in turns]),
        ratio("its peak memory, MB", [(ran.peak / MEGABYTE, empty.peak / MEGABYTE) for empty, ran in turns]),
    ]


def imports(bench: Bench) -> list[Figure]:
    """Import the operators after Airflow's own modules, each time in a fresh process."""
    folder, taken = bench.folder / "importing", []
    settings = {"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    bench.tell("importing the operators")
    for _ in range(1 + 3 * bench.sizes.runs):
        with answering("benchmarks.importing", None, home=folder, settings=settings) as seconds:
            taken.append((seconds["ours"] * 1000, seconds["airflow"] * 1000))
    del taken[0]  # it compiled
    return [
        Figure("import of the operators, ms", median([ours for ours, _ in taken]), 50),
        ratio("of the import of Airflow's own, ms", taken),
    ]


def pages(bench: Bench) -> list[Figure]:
    """Load the pages of ledgers with many campaigns, one of them large, and Airflow's own list of DAGs in turns."""
    campaigns, rows = bench.sizes.campaigns, bench.sizes.rows
    paths = ("/sms/", f"/sms/campaigns/{large_campaign(campaigns)}", "/api/v2/dags")
    figures = []
    for store in ("SQLite", "PostgreSQL"):
        ledger = bench.new_ledger(store)
        bench.tell(f"creating a ledger of {campaigns:,} campaigns, {store}")
        fill(ledger, campaigns, rows)
        bench.tell(f"opening pages, {store}")
        with bench.airflow("benchmarks.pages", ledger, **SETTINGS) as served:
            # The first looks pay for what a process of Airflow does only once.
            looks = [[seconds_of(path, **served) for path in paths] for _ in range(1 + LOOKS)][1:]
        listed, opened, own = (median(each) for each in zip(*looks, strict=True))
        for what, seconds in ((f"list of {campaigns:,} campaigns", listed), (f"campaign of {rows:,} messages", opened)):
            note = f"{seconds / own:.1f} x Airflow's own list of DAGs"
            figures.append(Figure(f"{what}, s, {store}", seconds, 0.3, note=note))
    return figures


def _beside_bare(rounds: list[tuple[Ran, Bare]], least: float, most_cpu: float | None = None) -> list[Figure]:
    """Return the rate and the CPU of sends beside those of bare threads, and the time that they took.

    :param least: goal of the rate, in those of bare threads.
    :param most_cpu: goal of the CPU, in those of bare threads; None for none.
    """
    rates = [(ran.counters.rate, bare.rate) for ran, bare in rounds]
    cpus = [(ran.cpu / ran.counters.messages * 1e6, bare.cpu * 1e6) for ran, bare in rounds]
    return [
        ratio(f"messages/s, {CONCURRENCY} in flight, of bare threads", rates, least, least=True),
        ratio("µs of CPU a message, of bare threads", cpus, most_cpu),
        Figure("from the check to the summary, s", median([ran.wall for ran, _ in rounds])),
    ]


def _shape(xcoms: str) -> str:
    """Return XComs with every number, id and markdown replaced by 0, to compare them regardless of digits."""
    return re.sub(r'"(id|markdown)": "(?:[^"\\]|\\.)*"|\d+(\.\d+)?', "0", xcoms)


CASES = {case.__name__: case for case in (rate, postgres, slow, large, resume, start, imports, pages)}
