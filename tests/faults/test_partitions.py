from __future__ import annotations

from dataclasses import replace

from support.faults.arena import Arena, send_alone
from support.faults.processes import started
from support.faults.tries import Ledgers
from support.faults.verdict import Figures


def test_processes_of_overlapping_partitions_text_each_person_once(postgres_ledger_url):
    """Four processes at once, each a try of a mapped task: together they text everybody, and nobody twice."""
    with Arena(Ledgers(postgres_ledger_url)) as arena:
        arena.sandbox.state.set_faults([{"kind": "delay", "seconds": 0.02, "persistent": True}])
        everybody = arena.campaign(700, chunk_size=20)
        parts = [replace(everybody, start=everybody.start + 150 * part, count=250) for part in range(4)]
        tasks = [(part, {"concurrency": 2, "map_index": index}) for index, part in enumerate(parts)]
        with started(send_alone, tasks) as processes:
            ended = [process.result() for process in processes]
        assert [error for _, error in ended] == [None] * 4
        assert sum(summary["accepted"] for summary, _ in ended) == 700
        arena.resume("four tasks", everybody)
    assert arena.figures == Figures(cases=1)
