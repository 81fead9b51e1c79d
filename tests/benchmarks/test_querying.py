from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.airflow import Ran
from benchmarks.cases import querying as case
from benchmarks.data import FIRST_NUMBER, NAMES
from benchmarks.processes import WrongError
from benchmarks.sizes import QUICK
from benchmarks.standin import Counters


@pytest.mark.parametrize("rows", [1_000, QUICK.small])
def test_a_query_has_everybody_once_and_in_no_order(tmp_path, rows):
    """Its numbers cover their whole range, as those of the tables of the other cases do."""
    case.write_names(tmp_path / "names.db")
    with closing(sqlite3.connect(tmp_path / "names.db")) as connection:
        found = connection.execute(case.STATEMENT, {"rows": rows}).fetchall()
    numbers = [int(number) for number, _, _ in found]

    assert list(range(FIRST_NUMBER, FIRST_NUMBER + rows)) == sorted(numbers) != numbers
    assert {name for _, name, _ in found} == set(NAMES)
    assert {type(amount) for _, _, amount in found} == {float}


@pytest.mark.parametrize(
    ("rows", "not_sent", "posts"),
    [(99, 99, 0), (100, 99, 0), (100, 100, 1)],
    ids=["a row is missing", "a row is invalid or a repeat", "a request is made"],
)
def test_a_plan_that_is_wrong_by_one_row_is_noticed(rows, not_sent, posts):
    """A dry run that left out a row, or sent something, has no figure."""
    with pytest.raises(WrongError):
        case.check(_ran(rows, not_sent, posts), 100)
    case.check(_ran(100, 100, 0), 100)


def test_a_tenth_of_the_rows_is_compared_with_all_of_them(tmp_path):
    """The ratio of both peaks has a goal, and so has the larger of them; the seconds have none."""
    planned = []

    def run(tasks, _ledger):
        (task,) = tasks
        planned.append((task.way, task.arguments["rows"]))
        rows = task.arguments["rows"]
        return [replace(_ran(rows, rows, 0), peak=400_000_000 + 2_000 * rows)]

    bench = SimpleNamespace(
        sizes=QUICK,
        folder=tmp_path,
        airflows=SimpleNamespace(run=run),
        name=lambda kind: kind,
        tell=lambda _: None,
    )
    ratio, peak, seconds = case.query(bench)

    assert planned == [("query", QUICK.small), ("query", QUICK.rows)]
    assert ratio.number == pytest.approx((400 + 0.002 * QUICK.rows) / (400 + 0.002 * QUICK.small))
    assert (ratio.goal.limit, ratio.verdict) == (1.1, "missed by 34%")
    assert (peak.number, peak.goal.limit, peak.verdict) == (620.0, 450.0, "missed by 38%")
    assert (seconds.number, seconds.goal) == (1.0, None)


def _ran(rows, not_sent, posts):
    return Ran(
        state="success",
        cpu=1.0,
        wall=1.0,
        whole=1.0,
        peak=1,
        xcom_bytes=1,
        xcom_shape="",
        summary={"rows": rows, "not_sent": not_sent},
        seen={},
        counters=Counters(posts=posts),
        distinct=0,
    )
