from __future__ import annotations

import pytest
from support.reported import NOW, campaign

from airflow_provider_sms.monitoring.reasons import reasons


@pytest.mark.parametrize(
    ("reports", "figures", "words"),
    [
        ("waiting for credit", {"balance_needed": 1200.5}, "waits until the balance is 1,200.50."),
        ("waiting for hours", {"until": "2026-11-23T08:00:00+02:00"}, "waits for its sending hours, until 2026-11-23"),
        ("waiting for hours", {}, "waits for its sending hours."),
        ("failed", {}, "failed. Its log says why; then clear the task."),
    ],
)
def test_a_reader_learns_what_a_campaign_waits_for(reports, figures, words):
    """The reason names the attempt, and what would end the wait."""
    (reason,) = reasons(campaign("sending", reports, **figures), NOW)
    assert reason.startswith(f"Attempt 1 of task t [2] {words}")


def test_a_reader_is_not_told_to_clear_a_task_for_what_the_service_left_out():
    """No later attempt texts people whom the service left out of a request that it took."""
    found = campaign("complete", counts=(3, 0, 0, 3, 3, 2), total=5, done=5)
    assert reasons(found, NOW) == []


def test_rows_that_a_dead_process_did_not_reach_are_counted():
    """An attempt that was killed reports no more; how many rows it left is known all the same."""
    found = campaign("needs attention", "sending", counts=(50,), ago=1000, silent=True, total=100, done=50)
    (reason,) = reasons(found, NOW)
    assert "has reported nothing for 17 min, and has probably ended. 50 rows may not have been reached" in reason


@pytest.mark.parametrize(("rows", "words"), [(3, "3 rows not sent"), (1, "1 row not sent")])
def test_rows_that_were_not_sent_are_a_reason_to_clear_the_task(rows, words):
    """The reason says what the next attempt does."""
    (reason,) = reasons(campaign("needs attention", not_sent=rows), NOW)
    it = "it" if rows == 1 else "them"
    assert reason == f"{words}. The task's log says why; once that is solved, clear the task to send {it}."


def test_messages_that_are_to_be_sent_again_are_a_reason_to_clear_the_task():
    """Nobody has to find out what became of them."""
    (reason,) = reasons(campaign("needs attention", counts=(1, 2, 0, 0, 0, 0, 1, 2)), NOW)
    assert reason == "2 messages may have been sent. Clear the task: its next attempt sends them again."
