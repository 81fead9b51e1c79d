from __future__ import annotations

import pytest
from support.reported import NOW, campaign

from airflow_provider_sms.monitoring.reasons import reasons

ATTEMPT = "Attempt 1 of task t [2] "
UNREACHED = "and has probably ended. 50 rows may not have been reached. If Airflow does not retry it, clear the task."
KILLED = {"counts": (50,), "ago": 1000, "silent": True, "total": 100, "done": 50}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            campaign("sending", "waiting for credit", balance_needed=1200.5),
            f"{ATTEMPT}waits until the balance is 1,200.50.",
        ),
        (
            campaign("sending", "waiting for hours", until="2026-11-23T08:00:00+02:00"),
            f"{ATTEMPT}waits for its sending hours, until 2026-11-23 08:00:00+02:00.",
        ),
        (campaign("sending", "waiting for hours"), f"{ATTEMPT}waits for its sending hours."),
        (campaign("sending", "failed"), f"{ATTEMPT}failed. Its log says why; then clear the task."),
        (campaign("needs attention", "sending", **KILLED), f"{ATTEMPT}has reported nothing for 17 min, {UNREACHED}"),
        *(
            (
                campaign("needs attention", not_sent=rows),
                f"{said} not sent. The task's log says why; once that is solved, clear the task to send {them}.",
            )
            for rows, said, them in ((3, "3 rows", "them"), (1, "1 row", "it"))
        ),
        (
            campaign("needs attention", counts=(1, 2, 0, 0, 0, 0, 1, 2)),
            "2 messages may have been sent. Clear the task: its next attempt sends them again.",
        ),
        (
            campaign("needs attention", counts=(1, 0, 0, 0, 0, 0, 0, 0, 0, 2)),
            "2 messages closed as not sent. Clear the task to send them.",
        ),
        (
            campaign("needs attention", "failed", counts=(0, 5, 0, 0, 0, 0, 0, 0, 1)),
            f"{ATTEMPT}failed. Its log says why; close its unknown requests, then clear the task.",
        ),
        # No later attempt texts people whom the service left out of a request that it took.
        (campaign("complete", counts=(3, 0, 0, 3, 3, 2), total=5, done=5), None),
    ],
    ids=["credit", "hours", "some hours", "failed", "killed", "rows", "row", "again", "freed", "unknown", "left out"],
)
def test_a_reader_learns_why_a_campaign_waits_or_needs_them(found, words):
    """The reason names the attempt, what would end the wait, and what the next attempt does."""
    assert reasons(found, NOW) == ([] if words is None else [words])
