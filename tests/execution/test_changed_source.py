from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, localcontext

import pandas as pd
import pytest
from support.people import somebody_answers
from support.versions import ASKS_WITHOUT_TRIGGER

from airflow_provider_sms.reporting.summary import COUNTS

TWO_BLOCKS = 10_100
CHANGED = "The source has changed since it was checked, at row {} or after it"


@pytest.fixture
def after_the_check(sandbox):
    """Let something happen while the service is asked for the balance: after the check, before the first claim."""

    def after_the_check(*happens):
        waiting = list(happens)
        found = sandbox.state.take_fault

        def take_fault(target):
            if target == "balance" and waiting:
                waiting.pop(0)()
            return found(target)

        sandbox.state.take_fault = take_fault

    return after_the_check


def frame_of(count, first=0, name="Name"):
    numbers = [str(27_820_000_000 + n) for n in range(first, first + count)]
    return pd.DataFrame({"destination": numbers, "first_name": [f"{name}{n}" for n in range(count)]})


def counts(ran):
    assert ran.summary["rows"] == sum(ran.summary[name] for name in COUNTS)
    return {name: ran.summary[name] for name in COUNTS if ran.summary[name]}


def write(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


OTHERS = {
    "other people": lambda frame: frame_of(len(frame), 500_000),
    "another text": lambda frame: frame.assign(first_name="N" * 700),
    "one text": lambda frame: frame.assign(first_name=[*frame.first_name[:-1], "Somebody"]),
    "another order": lambda frame: frame[::-1],
    "a person more": lambda frame: frame_of(len(frame) + 1),
    "a person less": lambda frame: frame_of(len(frame) - 1),
    "another row that cannot be texted": lambda frame: frame.assign(destination=[*frame.destination[:-1], None]),
}


def test_decimals_of_other_code_are_no_change(send, sandbox):
    """A DAG's file may set how its decimals are rounded, in the thread that checks and not in the one that sends."""
    rows = [{"destination": "27820000001", "amount": 2.665}]
    with localcontext(Context(rounding=ROUND_HALF_UP)):
        ran = send(rows, "You owe R{amount:.2f}")
    assert (ran.state, counts(ran)) == ("success", {"accepted": 1})
    assert sandbox.state.accepted_messages == [("27820000001", "You owe R2.66")]


@pytest.mark.parametrize(("other", "suffix"), [*((name, "parquet") for name in OTHERS), ("other people", "csv")])
def test_what_was_not_checked_is_not_sent(send, sandbox, after_the_check, tmp_path, suffix, other):
    """A file that is replaced after the check: nobody of it is texted, the log says why, and the counts add up."""
    path, frame = tmp_path / f"people.{suffix}", frame_of(100)
    write(frame, path)
    after_the_check(lambda: write(OTHERS[other](frame), path))
    ran = send(str(path), on_invalid="skip")
    assert (ran.state, sandbox.state.accepted, counts(ran)) == ("failed", [], {"not_sent": 100})
    assert CHANGED.format(0) in ran.log


@pytest.mark.parametrize("how", [{}, {"max_requests_per_second": 1000}, {"suppress": [{"destination": "27820000005"}]}])
def test_a_text_that_a_key_does_not_hold_is_compared(send, sandbox, after_the_check, tmp_path, how):
    """With key columns another text has the same key; it is not what was planned all the same."""
    path, frame = tmp_path / "people.parquet", frame_of(100).assign(invoice=range(100))
    write(frame, path)
    after_the_check(lambda: write(frame.assign(first_name="N" * 700), path))
    ran = send(str(path), key_columns=["invoice"], **how)
    assert (ran.state, sandbox.state.accepted) == ("failed", [])
    assert CHANGED.format(0) in ran.log


def test_the_files_of_a_directory_are_compared_one_by_one(send, sandbox, after_the_check, tmp_path):
    """Two files that change places are another table, though all their people are the same."""
    one, two = tmp_path / "table" / "1.parquet", tmp_path / "table" / "2.parquet"
    one.parent.mkdir()
    write(frame_of(60), one)
    write(frame_of(60, 60), two)

    def change_places():
        write(frame_of(60, 60), one)
        write(frame_of(60), two)

    after_the_check(change_places)
    ran = send(str(one.parent))
    assert (ran.state, sandbox.state.accepted) == ("failed", [])


def test_a_file_that_joins_a_directory_was_not_checked(send, witnessed, after_the_check, tmp_path):
    """The files are those that the check found: nobody of a new one is texted, and all of the others are."""
    one = tmp_path / "table" / "1.parquet"
    one.parent.mkdir()
    write(frame_of(60), one)
    after_the_check(lambda: write(frame_of(60, 60), one.parent / "2.parquet"))
    ran = send(str(one.parent))
    assert (ran.state, counts(ran), len(witnessed())) == ("success", {"accepted": 60}, 60)


def test_the_same_rows_in_a_new_file_are_what_was_checked(send, after_the_check, tmp_path):
    """A file that was written again with the same rows, in other row groups, is sent."""
    path = tmp_path / "people.parquet"
    write(frame_of(250), path)
    after_the_check(lambda: frame_of(250).to_parquet(path, row_group_size=70))
    ran = send(str(path))
    assert (ran.state, counts(ran)) == ("success", {"accepted": 250})


def test_rows_that_change_places_between_blocks_are_seen(send, sandbox, after_the_check, tmp_path):
    """Two people, one of each block, change places: nothing goes out, though the plan's id would be the same."""
    path, frame = tmp_path / "people.parquet", frame_of(TWO_BLOCKS)
    write(frame, path)
    places = [10_050, *range(1, 10_050), 0, *range(10_051, TWO_BLOCKS)]
    after_the_check(lambda: write(frame.iloc[places], path))
    ran = send(str(path))
    assert (ran.state, sandbox.state.accepted) == ("failed", [])


def test_the_blocks_before_the_change_go_out(send, witnessed, after_the_check, tmp_path):
    """What was checked is sent, up to the block that has changed; none of that block is."""
    path, frame = tmp_path / "people.parquet", frame_of(TWO_BLOCKS)
    write(frame, path)
    changed = frame.assign(destination=[*frame.destination[:-1], "27829999999"])
    after_the_check(lambda: write(changed, path))
    ran = send(str(path))
    assert (ran.state, counts(ran)) == ("failed", {"accepted": 10_000, "not_sent": 100})
    assert {destination for destination, _ in witnessed()} == set(frame.destination[:10_000])
    assert CHANGED.format(10_000) in ran.log


def test_a_retry_checks_and_plans_the_table_as_it_is_then(send, witnessed, after_the_check, tmp_path):
    """The next try sends the new table, by a plan of its own."""
    path = tmp_path / "people.parquet"
    write(frame_of(100), path)
    after_the_check(lambda: write(frame_of(100, 500_000), path))
    ran = send(str(path), retries=1)
    assert (ran.state, ran.tries, counts(ran)) == ("success", 2, {"accepted": 100})
    assert {destination for destination, _ in witnessed()} == set(frame_of(100, 500_000).destination)


@pytest.mark.skipif(not ASKS_WITHOUT_TRIGGER, reason="before Airflow 3.3 nobody can answer in dag.test()")
def test_what_a_person_approved_is_what_is_sent(send, sandbox, after_the_check, tmp_path):
    """After the answer all is checked anew: what changes after that check is sent as little as before it."""
    path = tmp_path / "people.parquet"
    write(frame_of(100), path)
    after_the_check(lambda: None, lambda: write(frame_of(100, 500_000), path))
    with somebody_answers("Send"):
        ran = send(str(path), approve=True)
    assert (ran.state, sandbox.state.accepted, ran.xcoms["approval"]["decision"]) == ("failed", [], "send")
    assert CHANGED.format(0) in ran.log
