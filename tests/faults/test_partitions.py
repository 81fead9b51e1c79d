from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support.faults.arena import Arena, send_alone
from support.faults.processes import started
from support.faults.tries import Ledgers
from support.faults.verdict import Figures

CHUNK, CONCURRENCY = 20, 2


@pytest.fixture
def arena(postgres_ledger_url):
    with Arena(Ledgers.on_server(postgres_ledger_url)) as arena:
        yield arena


def orders(arena):
    """Return four tasks, of which neighbours share people, and a campaign that has all."""
    everybody = arena.campaign(700, chunk_size=CHUNK)
    parts = [replace(everybody, start=everybody.start + 150 * part, count=250) for part in range(4)]
    return everybody, [(part, {"concurrency": CONCURRENCY, "map_index": index}) for index, part in enumerate(parts)]


def test_processes_of_overlapping_partitions_text_each_person_once(arena):
    """Four processes at once, each a try of a mapped task: together they text everybody, and nobody twice."""
    arena.sandbox.state.set_faults([{"kind": "delay", "seconds": 0.02, "persistent": True}])
    everybody, tasks = orders(arena)
    with started(send_alone, tasks) as processes:
        ended = [process.result() for process in processes]
    assert [error for _, error in ended] == [None] * 4
    assert sum(summary["accepted"] for summary, _ in ended) == 700
    arena.resume("four tasks", everybody)
    arena.judge_all()
    assert arena.figures == Figures(cases=1)


def test_mapped_tasks_that_are_killed_leave_few_unknown_and_nobody_twice(arena):
    """SIGKILL of all four, and the next try: unknown is what was in flight, all others are texted once."""
    arena.sandbox.state.set_faults([{"kind": "delay", "seconds": 0.1, "persistent": True}])
    everybody, tasks = orders(arena)
    with started(send_alone, tasks):
        while len(arena.sandbox.state.accepted) < 200:
            time.sleep(0.005)
    arena.sandbox.state.set_faults([])
    arena.resume("four tasks that were killed", everybody)
    arena.judge_all()
    assert (arena.figures.cases, arena.figures.broken) == (1, 0)
    assert 0 < arena.figures.unknown <= 4 * CONCURRENCY * CHUNK
