from __future__ import annotations

import json

import pytest

from benchmarks.figures import Figure, at_least, at_most
from benchmarks.table import report_of


@pytest.mark.parametrize(
    ("goal", "number", "ratio", "verdict"),
    [
        (at_least(0.9, "0.9"), 0.9, 1.0, "met"),
        (at_least(0.9, "0.9"), 0.45, 0.5, "missed by 50%"),
        (at_most(2.0, "2 x"), 1.0, 0.5, "met"),
        (at_most(2.0, "2 x"), 2.5, 1.25, "missed by 25%"),
        (at_most(1.0, "1 x"), 1.001, 1.001, "missed by 0%"),
        (None, 1.0, None, ""),
    ],
)
def test_a_figure_is_judged_in_units_of_its_goal(goal, number, ratio, verdict):
    """A minimum is missed below its limit, and a maximum above it, however little."""
    figure = Figure("what", "text", number, goal)

    assert (ratio, verdict) == (figure.ratio, figure.verdict)


@pytest.mark.parametrize(("judged", "verdict"), [(True, "missed by 50%"), (False, "")])
def test_a_run_that_does_not_judge_writes_no_verdict(judged, verdict):
    """The figures of a quick run are not compared with the goals."""
    figures = {"rate": [Figure("what", "text", 0.5, at_least(1.0, "1"))]}

    report = json.loads(report_of(figures, {"cores": 2}, {"large": "lost"}, judged=judged))

    assert (2, {"large": "lost"}, judged) == (report["cores"], report["wrong"], report["judged"])
    assert [("rate", "at least 1", 0.5, verdict)] == [
        (line["case"], line["goal"], line["ratio"], line["verdict"]) for line in report["figures"]
    ]
