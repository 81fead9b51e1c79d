from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from airflow_provider_sms.execution.xcom import MAX_RESPONSES
from benchmarks import __main__ as command
from benchmarks.airflow import Ran
from benchmarks.bench import check, ideal
from benchmarks.data import FIRST_NUMBER, write_table
from benchmarks.figures import Figure, at_most
from benchmarks.processes import WrongError
from benchmarks.sizes import FULL, QUICK
from benchmarks.standin import Counters


def test_a_table_has_everybody_once_and_in_no_order(tmp_path):
    """The same number of rows yields the same table, whose numbers cover their whole range."""
    table = pq.read_table(write_table(tmp_path / "one", 1_000, 3))
    numbers = [int(number) for number in table["destination"].to_pylist()]

    assert list(range(FIRST_NUMBER, FIRST_NUMBER + 1_000)) == sorted(numbers) != numbers
    assert table.equals(pq.read_table(write_table(tmp_path / "other", 1_000, 3)))
    assert table.num_columns == 8


@pytest.mark.parametrize(
    ("messages", "distinct", "accepted"),
    [(99, 99, 100), (101, 100, 100), (100, 99, 100), (100, 100, 99)],
    ids=["lost", "twice", "one lost and another twice", "miscounted"],
)
def test_a_send_that_is_wrong_by_one_message_is_noticed(messages, distinct, accepted):
    """A send that lost or repeated a message has no figure, however fast it was."""
    with pytest.raises(WrongError):
        check(_ran(messages, distinct, accepted), 100)
    check(_ran(100, 100, 100), 100)


def test_the_ideal_is_that_of_a_sender_that_costs_nothing():
    """The ideal rate is requests at once, divided by their latency, times a hundred messages."""
    assert ideal(32, 0.05) == 64_000


@pytest.mark.parametrize("sizes", [FULL, QUICK, FULL.with_rows(2_000_000)])
def test_xcoms_of_both_tables_are_beyond_their_limit(sizes):
    """Both tables exceed the limit of responses, in a quick run too, so that their XComs are comparable."""
    assert sizes.small // 100 > MAX_RESPONSES
    assert sizes.bare <= sizes.small


def _lose(_bench):
    raise WrongError("a message was lost")


@pytest.mark.parametrize(
    ("case", "status"),
    [
        (lambda _: [Figure("slow", "100 s", 100.0, at_most(1.0, "1 s"))], 0),
        (_lose, 1),
        (lambda _: 1 / 0, 1),
    ],
    ids=["slow", "wrong", "broken"],
)
def test_the_exit_status_is_about_what_is_wrong_and_not_about_times(case, status, tmp_path, monkeypatch, capsys):
    """A missed goal is a figure; a lost message is a failure."""
    monkeypatch.setitem(command.CASES, "rate", case)
    monkeypatch.setattr(command.machine, "calibration", lambda: 0.5)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    path = tmp_path / "figures.json"

    assert status == command.main(["--quick", "--only", "rate", "--json", str(path)])
    assert path.exists()
    assert (case is _lose) == ("a message was lost" in capsys.readouterr().out)


def _ran(messages, distinct, accepted):
    return Ran(
        state="success",
        cpu=1.0,
        wall=1.0,
        whole=1.0,
        peak=1,
        xcom_bytes=1,
        xcom_shape="",
        summary={"rows": 100, "accepted": accepted},
        counters=Counters(messages=messages),
        distinct=distinct,
    )
