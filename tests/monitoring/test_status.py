from __future__ import annotations

import pytest

from airflow_provider_sms.monitoring.status import LIVE, STATES, Note, current, is_silent, state_of

NOW = 10_000.0


def note(state="ended", *, claimant_id=1, task="t", run="r", map_index=-1, ago=1.0, not_sent=0):
    return Note(claimant_id, "d", task, run, map_index, state, NOW - ago, not_sent)


def stands(*notes, unknown=False, under_way=False, paused=False):
    return state_of(notes, unknown=unknown, under_way=under_way, paused=paused, now=NOW)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("checking", "sending"),
        ("sending", "sending"),
        ("paused", "sending"),
        ("waiting for approval", "waiting for a person"),
        ("waiting for an answer", "waiting for a person"),
        ("waiting for credit", "waiting for credit"),
        ("waiting for hours", "waiting for hours"),
        ("ended", "complete"),
        ("failed", "needs attention"),
        ("earlier", "sent earlier"),
    ],
)
def test_each_thing_a_try_says_is_a_state(said, state):
    """What a try noted is told in the words of the list."""
    assert stands(note(said)) == state
    assert state in STATES


def test_what_was_left_unsent_or_is_unknown_needs_attention():
    """A campaign is complete only where nobody has to do anything about it."""
    assert stands(note(not_sent=1)) == "needs attention"
    assert stands(note(), unknown=True) == "needs attention"
    assert stands(note("earlier"), unknown=True) == "needs attention"
    assert stands(note(not_sent=None)) == "complete"


def test_what_goes_on_is_told_before_what_is_wrong():
    """While a try is at work or waits, that is the state, whatever has gone wrong already."""
    assert stands(note("failed"), note("sending"), unknown=True) == "sending"
    assert stands(note("waiting for credit"), unknown=True) == "waiting for credit"
    assert stands(note(), under_way=True) == "sending"
    assert stands(note("waiting for hours"), note("waiting for approval")) == "waiting for a person"
    assert stands(note("sending"), paused=True) == "paused"


def test_what_failed_is_told_before_a_wait_that_ends_by_itself():
    """Nobody would look at a copy that failed while another one waits for days."""
    for wait in ("waiting for credit", "waiting for hours"):
        assert stands(note(wait), note("failed")) == "needs attention"
        assert stands(note(wait), note("sending", ago=1e6)) == "needs attention"
    assert stands(note("waiting for approval"), note("failed")) == "waiting for a person"


@pytest.mark.parametrize(("said", "patience"), [("sending", 300), ("paused", 300), ("checking", 1800)])
def test_a_try_that_says_nothing_for_long_is_taken_for_dead(said, patience):
    """A process that was killed says nothing; one that waits need not say anything for days."""
    assert stands(note(said, ago=patience - 1)) == "sending"
    assert stands(note(said, ago=patience + 1)) == "needs attention"
    assert is_silent(note(said, ago=patience + 1), NOW)
    assert not is_silent(note("waiting for credit", ago=1e6), NOW)
    assert stands(note("waiting for credit", ago=1e6)) == "waiting for credit"


def test_of_each_task_the_last_run_counts_and_in_it_the_last_of_each_copy():
    """A try replaces the one before it, and a run all copies of the one before it."""
    notes = [
        note("failed", claimant_id=1, run="a", map_index=0),
        note("failed", claimant_id=2, run="a", map_index=5),
        note("failed", claimant_id=3, run="b", map_index=0),
        note("ended", claimant_id=4, run="b", map_index=0),
        note("ended", claimant_id=5, run="b", map_index=1),
        note("ended", claimant_id=6, task="other", run="a"),
    ]
    assert [each.claimant_id for each in current(notes, NOW)] == [6, 5, 4]
    assert stands(*current(notes, NOW)) == "complete"


def test_an_earlier_run_that_is_still_at_work_counts_too():
    """Two runs may send one campaign at the same time; one that is silent has been replaced."""
    later = note("ended", claimant_id=5, run="b")
    busy, silent = note("sending", claimant_id=2, run="a"), note("sending", claimant_id=2, run="a", ago=1e6)
    assert stands(*current([busy, later], NOW)) == "sending"
    assert current([silent, later], NOW) == [later]
    replaced = [note("sending", claimant_id=2, run="a"), note("failed", claimant_id=3, run="a"), later]
    assert current(replaced, NOW) == [later]


def test_states_that_go_on_by_themselves_are_looked_at_again():
    """A page of a campaign that is over does not ask for it every few seconds."""
    assert {state for state in STATES if state not in LIVE} == {"complete", "needs attention", "sent earlier"}
