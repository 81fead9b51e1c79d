from __future__ import annotations

from types import SimpleNamespace

from benchmarks.cases import starting as case
from benchmarks.sizes import QUICK


def test_a_small_task_is_compared_with_one_that_does_nothing(tmp_path):
    """In time, of the whole task beyond that of an empty one, with a goal in the same unit; and in memory."""
    ways, whole, peak = [], {"nothing": 2.0, "ours": 3.25}, {"nothing": 275_000_000, "ours": 318_000_000}

    def run(tasks, ledger):
        ways.extend(task.way for task in tasks)
        return [SimpleNamespace(whole=whole[task.way], peak=peak[task.way]) for task in tasks]

    bench = SimpleNamespace(
        sizes=QUICK,
        folder=tmp_path,
        airflows=SimpleNamespace(run=run),
        name=lambda kind: kind,
        tell=lambda _: None,
        task=lambda rows, **_: SimpleNamespace(way="ours", rows=rows),
        send=lambda task, ledger, rows: run([task], ledger)[0],
    )
    figure, memory = case.start(bench)

    assert ways == ["nothing", "nothing", "ours"]
    assert (figure.number, figure.goal.limit, figure.verdict) == (1.25, 1.5, "met")
    assert figure.what == "a task of 200 rows, beside an empty task"
    assert memory.text == "318 MB against 275 MB"
