from __future__ import annotations

import time

import pytest

from benchmarks import __main__ as command
from benchmarks.bare import bodies_of, post_all
from benchmarks.bench import Ran, WrongError, check
from benchmarks.data import table_of_people
from benchmarks.figures import Figure, ratio
from benchmarks.service import Counters, reset
from demo.processes import answering


def test_the_stand_in_counts_and_is_never_early(tmp_path):
    """Every message counts, a person who is texted twice counts once, and each measurement begins with no counts."""
    bodies = bodies_of(table_of_people(tmp_path / "tables", 250), 250)
    with answering("benchmarks.service", None, home=tmp_path / "service", settings={}) as port:
        reset(port, latency=0.1)
        began = time.monotonic()
        post_all(port, [*bodies, bodies[0]], threads=2)
        took = time.monotonic() - began
        counters, anew = reset(port), reset(port)

    assert (counters.posts, counters.messages, counters.people) == (4, 350, 250)
    assert took >= 0.2
    assert 0 < counters.rate <= 1_750
    assert (anew.posts, anew.messages, anew.people, anew.rate) == (0, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("messages", "people", "accepted", "already_sent"),
    [(99, 99, 100, 0), (101, 100, 100, 0), (100, 99, 100, 0), (100, 100, 99, 0), (0, 0, 0, 100)],
    ids=["lost", "twice", "one lost and another twice", "miscounted", "never sent"],
)
def test_a_send_that_is_wrong_by_one_message_is_noticed(messages, people, accepted, already_sent):
    """A send that lost or repeated a message has no figure, however fast it was; neither has a rerun that sends."""
    with pytest.raises(WrongError):
        check(_ran(messages, people, accepted, already_sent), 100)
    with pytest.raises(WrongError):
        check(_ran(100, 100, 100, 0), 100, again=True)
    check(_ran(100, 100, 100, 0), 100)
    check(_ran(0, 0, 0, 100), 100, again=True)


def _ran(messages, people, accepted, already_sent):
    counts = {"rows": 100, "accepted": accepted, "already_sent": already_sent}
    return Ran(1.0, 1.0, 1.0, 1, {"return_value": counts}, Counters(1, messages, people, 1.0, 1.0))


def test_a_figure_is_judged_in_units_of_its_goal():
    """A minimum is missed below its limit, and a maximum above it, however little."""
    assert Figure("messages/s", 0.45, 0.9, least=True).verdict == "missed by 50.0%"
    assert Figure("s", 2.5, 2.0).verdict == "missed by 25.0%"
    assert Figure("messages/s", 0.9, 0.9, least=True).verdict == Figure("s", 2.0, 2.0).verdict == "met"
    assert Figure("s", 1.0).verdict == ""
    # The median of the pairs' ratios, and not the ratio of the medians.
    assert ratio("x", [(1.0, 2.0), (6.0, 4.0), (8.0, 8.0)]) == Figure("x", 1.0, note="6 beside 4")


@pytest.mark.parametrize(
    ("case", "status"),
    [(lambda _: [Figure("slow, s", 100.0, 1.0)], 0), (lambda _: check(_ran(99, 99, 99, 0), 100), 1)],
    ids=["slow", "wrong"],
)
def test_the_exit_status_is_about_what_is_wrong_and_not_about_times(case, status, monkeypatch, capsys):
    """A missed goal is a figure; a lost message is a failure."""
    monkeypatch.setitem(command.CASES, "rate", case)
    monkeypatch.setattr(command, "interrupt_once", lambda: None)

    assert status == command.main(["--only", "rate"])
    shown = capsys.readouterr().out
    assert ("wrong: rate" in shown, "missed by" in shown) == (status == 1, status == 0)
