"""The sending rate, and the sending process's CPU time per message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.airflow import postgres_ledger, sqlite_ledger
from benchmarks.bench import CONCURRENCY, LATENCY, SLOW_CONCURRENCY, SLOW_LATENCY, ideal, ledger_bytes
from benchmarks.figures import Figure, at_least, at_most, median
from benchmarks.postgres import database_bytes, new_database
from benchmarks.sizes import CHUNK

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from benchmarks.bench import Bench, Round

SQLITE_OF_BARE, POSTGRES_OF_BARE = 1.0, 0.8
SQLITE_SHARE, SLOW_SHARE = 0.75, 0.97
CPU_RATIO = 1.25
CEILING_THREADS = 8
MILLION = 1_000_000


def rate(bench: Bench) -> list[Figure]:
    """Send with a ledger in SQLite."""
    rounds = bench.sqlite_rounds()
    bare = median([each.bare.rate for each in rounds])
    service = median([each.bare.service_cpu for each in rounds])
    of_ideal = bare / ideal(CONCURRENCY, LATENCY)
    disk = ledger_bytes(bench.small_ledger) / bench.sizes.small
    bench.tell("posting by bare threads without latency")
    ceiling = bench.bare(CEILING_THREADS, 0.0).rate
    return [
        *_rate_figures("SQLite", rounds, SQLITE_OF_BARE, SQLITE_SHARE),
        Figure("bare requests threads, the same bodies", f"{bare:,.0f} messages/s, {of_ideal:.2f} of the ideal", bare),
        _cpu_figure("SQLite", rounds, CPU_RATIO),
        Figure("bare requests threads without latency", f"{ceiling:,.0f} messages/s", ceiling),
        Figure(
            "CPU of the stand-in per request",
            f"{service * 1e6:.0f} µs, enough for {CHUNK / service:,.0f} messages/s",
            service,
        ),
        Figure(f"end to end, {bench.sizes.small:,} rows, SQLite", f"{_end_to_end(rounds):.1f} s", _end_to_end(rounds)),
        Figure("disk, a million messages, SQLite", f"{disk:.0f} MB", disk * MILLION),
    ]


def postgres(bench: Bench) -> list[Figure]:
    """Send with a ledger in PostgreSQL."""
    databases: list[URL] = []

    def ledger(_: int) -> dict[str, str]:
        databases.append(new_database(bench.postgres, bench.name("ledger")))
        return postgres_ledger(databases[-1])

    empty = database_bytes(new_database(bench.postgres, bench.name("empty")))
    rounds = bench.rounds(max(1, bench.sizes.runs - 1), ledger, "PostgreSQL")
    disk = (database_bytes(databases[-1]) - empty) / bench.sizes.small
    return [
        *_rate_figures("PostgreSQL", rounds, POSTGRES_OF_BARE),
        _cpu_figure("PostgreSQL", rounds),
        Figure(
            f"end to end, {bench.sizes.small:,} rows, PostgreSQL", f"{_end_to_end(rounds):.1f} s", _end_to_end(rounds)
        ),
        Figure("disk, a million messages, PostgreSQL", f"{disk:.0f} MB", disk * MILLION),
    ]


def slow(bench: Bench) -> list[Figure]:
    """Send to a slow service, with few requests at once."""
    rows = bench.sizes.slow
    bench.tell(f"sending {rows:,} rows to a slow service")
    task = bench.task(rows, service={"latency": SLOW_LATENCY}, concurrency=SLOW_CONCURRENCY)
    ran = bench.send(task, sqlite_ledger(bench.folder / f"{bench.name('slow')}.db"), rows)
    best = ideal(SLOW_CONCURRENCY, SLOW_LATENCY)
    bench.tell(f"posting {rows:,} messages to it by bare threads")
    bare = bench.bare(SLOW_CONCURRENCY, SLOW_LATENCY, rows).rate
    return [
        Figure(
            f"sending rate, concurrency={SLOW_CONCURRENCY}, latency {SLOW_LATENCY * 1000:.0f} ms",
            f"{ran.rate:,.0f} messages/s, {ran.rate / best:.3f} of the ideal",
            ran.rate / best,
            at_least(SLOW_SHARE, f"{SLOW_SHARE} of {best:,.0f}/s"),
            details={"most_in_flight": ran.counters.most_in_flight},
        ),
        Figure("bare requests threads, the same", f"{bare:,.0f} messages/s, {bare / best:.3f} of the ideal", bare),
    ]


def _rate_figures(store: str, rounds: list[Round], least: float, share: float | None = None) -> list[Figure]:
    """Return the rate against that of bare threads, and against the ideal.

    :param least: goal of the first.
    :param share: goal of the second; None for none.
    """
    best = ideal(CONCURRENCY, LATENCY)
    of_bare = tuple(each.ran.rate / each.bare.rate for each in rounds)
    of_ideal = tuple(each.ran.rate / best for each in rounds)
    bare, number = median([each.bare.rate for each in rounds]), median(of_ideal)
    what = f"sending rate, {store}, concurrency={CONCURRENCY}, latency {LATENCY * 1000:.0f} ms"
    return [
        Figure(
            f"{what}, against bare threads",
            f"{number * best:,.0f} messages/s, {median(of_bare):.2f} of bare ({bare:,.0f})",
            median(of_bare),
            at_least(least, f"{least:.2f} of bare"),
            of_bare,
        ),
        Figure(
            f"{what}, against the ideal",
            f"{number:.2f} of {best:,.0f}/s",
            number,
            None if share is None else at_least(share, f"{share:.2f} of {best:,.0f}/s"),
            of_ideal,
            {"most_in_flight": [each.ran.counters.most_in_flight for each in rounds]},
        ),
    ]


def _cpu_figure(store: str, rounds: list[Round], most: float | None = None) -> Figure:
    ours = [each.ran.cpu / each.ran.counters.messages for each in rounds]
    ratios = tuple(cpu / each.bare.cpu for cpu, each in zip(ours, rounds, strict=True))
    number, bare = median(ratios), median([each.bare.cpu for each in rounds])
    return Figure(
        f"CPU per message of the sending process, {store}",
        f"{median(ours) * 1e6:.1f} µs, {number:.2f} x bare ({bare * 1e6:.1f} µs)",
        number,
        None if most is None else at_most(most, f"{most:.2f} x bare"),
        ratios,
        {"ours_us": [cpu * 1e6 for cpu in ours], "bare_us": [each.bare.cpu * 1e6 for each in rounds]},
    )


def _end_to_end(rounds: list[Round]) -> float:
    return median([each.ran.wall for each in rounds])
