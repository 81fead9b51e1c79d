from __future__ import annotations

from collections import Counter

import pyarrow.parquet as pq
import pytest
from support.before_scenarios import IN_FLIGHT, LARGE, PEOPLE, SCENARIOS, SUPPRESSED_EACH
from support.before_sending import play_all
from support.faults.airflow import TOKEN

from airflow_provider_sms.reporting.summary import COUNTS


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Play everything once, in one Airflow."""
    return play_all(tmp_path_factory.mktemp("before"), SCENARIOS)


@pytest.fixture
def stages(played):
    return played.stages


def counts(stage):
    """Give the counts of a summary that are not 0; they add up to its rows."""
    assert sum(stage.summary[name] for name in COUNTS) == stage.summary["rows"]
    return {name: stage.summary[name] for name in COUNTS if stage.summary[name]}


def everybody_once(stage):
    return stage.texted() == Counter(stage.people)


def tries(stage):
    """Give the state and the try of a task instance whenever it waited, and in the end."""
    return [(each["state"], each["try_number"]) for each in [*(seen for seen, _ in stage.waited), stage.end]]


def test_credit_that_runs_out_is_waited_for(stages):
    """Once the service refuses a request, the task is deferred, outlives its triggerer, and sends the rest."""
    stage = stages["credit_refused"]
    (first, taken) = stage.waited[0]
    assert tries(stage) == [("deferred", first["try_number"]), ("success", first["try_number"])]
    assert (taken, everybody_once(stage)) == (600, True)
    assert [request.error for request in stage.requests() if request.error] == ["InsufficientCredits"]
    assert counts(stage) == {"accepted": PEOPLE}
    assert (stage.summary["requests"], stage.summary["cost"], len(stage.seen["responses"])) == (10, 1000.0, 10)
    assert "Waiting for credit: the balance has to be at least" in stage.log


def test_a_process_killed_after_its_wait_texts_nobody_twice(stages):
    """The next try sends the rest; only what was in flight is unknown."""
    stage = stages["credit_killed"]
    (first, taken) = stage.waited[0]
    assert (first["state"], taken) == ("deferred", 500)
    assert (500 < stage.seen["killed"] < PEOPLE, stage.end["try_number"] > first["try_number"]) == (True, True)
    unknown = stage.summary["unknown"]
    assert (0 < unknown <= 20, stage.end["state"], counts(stage).keys() - {"accepted", "already_sent", "unknown"}) == (
        True,
        "failed",
        set(),
    )
    texted = stage.texted()
    assert set(texted.values()) == {1}
    assert PEOPLE - unknown <= texted.total() <= PEOPLE


def test_hours_that_end_in_the_middle_are_waited_for(stages):
    """The task is deferred; what is left goes out in the same try, and not before they begin again."""
    stage = stages["hours_end"]
    (first, taken) = stage.waited[0]
    assert tries(stage) == [("deferred", first["try_number"]), ("success", first["try_number"])]
    assert (PEOPLE // 5 <= taken < PEOPLE, everybody_once(stage)) == (True, True)
    assert {message.at >= stage.seen["opening"] for message in stage.service.accepted[taken:]} == {True}
    assert counts(stage) == {"accepted": PEOPLE}


def test_closed_hours_are_waited_for(stages, played):
    """To the minute in which they begin; a person who ends the wait has texted nobody."""
    stage = stages["hours_closed"]
    moments = [arguments for name, arguments in played.triggers if name.endswith(".DateTimeTrigger")]
    assert sum(str(stage.seen["opening"].timestamp()) in arguments for arguments in moments) == 1
    assert stage.waited[0][0]["state"] == "deferred"
    assert (stage.seen["later"], stage.end["state"], stage.taken()) == ("deferred", "failed", 0)
    assert counts(stage) == {"not_sent": 10}


def test_a_paused_campaign_sends_nothing_until_it_is_resumed(stages):
    """Once the command has returned, what is in flight ends and nothing begins; then everybody gets the text."""
    stage = stages["paused"]
    at_once, ended, (later, state) = (stage.seen[name] for name in ("at_once", "under_way_ended", "later"))
    assert (at_once <= ended <= at_once + IN_FLIGHT, later, state) == (True, ended, "running")
    assert ended < PEOPLE // 5
    assert "is paused: from now on no task on any machine claims any of it" in stage.seen["said"]
    assert stage.seen["status"]["paused"][0].startswith("by ")
    assert (stage.end["state"], everybody_once(stage), counts(stage)) == ("success", True, {"accepted": PEOPLE})


def test_who_has_opted_out_of_a_large_table_is_not_texted(stages):
    """Of 100,000 rows the 2% that a file names are left out, and the report says so of exactly those."""
    stage = stages["large"]
    out = set(stage.seen["suppressed"])
    assert counts(stage) == {"accepted": LARGE - len(out), "suppressed": len(out)}
    assert len(out) == LARGE // SUPPRESSED_EACH == 2000
    assert stage.texted() == Counter(number for number in stage.people if number not in out)
    report = pq.read_table(stage.seen["report"], columns=["destination", "status"]).to_pylist()
    assert [row["destination"] for row in report] == stage.people
    assert [row["status"] for row in report] == [
        "suppressed" if number in out else "accepted" for number in stage.people
    ]


def test_no_trigger_holds_the_token(played):
    """What a triggerer waits for is the name of a connection, or a moment."""
    assert [name for name, arguments in played.triggers if TOKEN in arguments] == []
    assert sum(name.endswith(".BalanceTrigger") for name, _ in played.triggers) == 2


def test_no_log_names_anybody(played):
    """No number, text or token."""
    assert played.leaking == []
