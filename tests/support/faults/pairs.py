"""Two or four live senders of one campaign text everybody exactly once."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

from support.faults.lives import PATIENCE
from support.faults.plans import people
from support.faults.processes import Order, started
from support.faults.sendings import Sending
from support.faults.stage import play_all
from support.faults.verdict import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sms.ledger.backend import LedgerBackend
    from support.faults.stage import Stage

FULL = 1_000
QUICK = 40
PROCESSES_EVERY = 16
"""One trial in this many runs real processes."""
MAPPED_EVERY = 5
"""One trial in this many runs four mapped tasks, each with its share of the table and half of the next."""


def orders(stage: Stage, campaign: str, chance: random.Random, *, mapped: bool) -> tuple[list[str], list[Order]]:
    """Return a table, and the rows that each sender sends, in order."""
    rows = people(chance.randint(8, 80))
    if mapped:
        quarter = len(rows) // 4
        parts = [rows[n * quarter : (n + 1) * quarter + quarter // 2] for n in range(3)] + [rows[3 * quarter :]]
    else:
        common = chance.randint(1, len(rows))
        alone = chance.randint(0, len(rows) - common)
        parts = [rows[: alone + common], rows[alone:]]
    return rows, [
        Order(
            stage.sandbox.base_url,
            stage.url,
            campaign,
            number=1 if mapped else n,
            map_index=n if mapped else -1,
            rows=chance.sample(part, len(part)),
            block=chance.randint(1, len(part)),
            chunk_size=chance.randint(1, 10),
            concurrency=chance.randint(1, 4),
        )
        for n, part in enumerate(parts)
    ]


def by_threads(stores: Sequence[LedgerBackend], given: Sequence[Order]) -> list[dict[str, Any]]:
    """Let threads send at once, each with its own ledger connection."""
    barrier = threading.Barrier(len(given))
    ended: list[dict[str, Any]] = []

    def send(store: LedgerBackend, order: Order) -> None:
        sending = Sending(
            order.base_url,
            store,
            order.campaign,
            order.number,
            map_index=order.map_index,
            chunk_size=order.chunk_size,
            concurrency=order.concurrency,
        )
        barrier.wait(PATIENCE)
        sending.run(order.rows, order.block)
        ended.append(sending.ended)

    threads = [threading.Thread(target=send, args=each, daemon=True) for each in zip(stores, given, strict=False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return ended


def by_processes(given: Sequence[Order]) -> list[dict[str, Any]]:
    """Let processes send at once."""
    with started(given) as processes:
        for process in processes:
            process.go()
        return [process.result() for process in processes]


def play(stage: Stage, stores: Sequence[LedgerBackend], trial: int) -> Figures:
    """Let all send at once, and judge: nobody twice, nobody left out, nothing unknown, and consistent counts."""
    chance = random.Random(trial)
    campaign = stage.new_campaign(f"pair {trial}")
    rows, given = orders(stage, campaign, chance, mapped=trial % MAPPED_EVERY == 0)
    stage.sandbox.state.set_faults([{"kind": "delay", "seconds": chance.uniform(0.0, 0.005)} for _ in range(100)])
    ended = by_processes(given) if trial % PROCESSES_EVERY == 0 else by_threads(stores, given)
    figures = stage.judge(campaign, rows)
    wrong = sum(each["miscounted"] + (each["error"] is not None) for each in ended) + len(given) - len(ended)
    uncounted = abs(sum(each["accepted"] for each in ended) - len(rows))
    return figures + Figures(lost=wrong + uncounted + figures.unknown)


def run(
    open_store: Callable[[], LedgerBackend],
    quick: bool,  # noqa: FBT001  # the common signature of all sections
    *,
    count: int | None = None,
) -> Figures:
    """Run senders on one kind of ledger, and print the trials that broke the promise.

    :param open_store: function that opens the shared ledger, like one more process.
    :param count: number of trials; None means 40 in a quick run, else 1,000.
    """
    stores: list[LedgerBackend] = []

    def play_with_stores(stage: Stage, trial: int) -> Figures:
        if not stores:
            stores.extend(stage.open_store() for _ in range(4))
        return play(stage, stores, trial)

    trials = range(count if count is not None else QUICK if quick else FULL)
    return play_all(open_store, play_with_stores, trials, lambda _, trial: f"the pair of seed {trial}")
