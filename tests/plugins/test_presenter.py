from __future__ import annotations

import pytest
from support.reported import campaign

from airflow_provider_sms.plugins import presenter


def test_the_outcomes_count_what_the_service_left_out():
    """Apart from what is accepted and what is still to do."""
    found = campaign("complete", counts=(3, 0, 0, 3, 3, 2), total=5, done=5)
    assert presenter.outcomes(found) == [("accepted", 3), ("left out by the service", 2)]


def test_the_outcomes_count_what_a_dead_process_did_not_reach():
    """An attempt that was killed reports no more; how many rows it left is known all the same."""
    found = campaign("needs attention", "sending", counts=(50,), ago=1000, silent=True, total=100, done=50)
    assert ("still to do", 50) in presenter.outcomes(found)


@pytest.mark.parametrize(
    ("unknown", "words"),
    [(0, ""), (1, "1 message has no outcome yet. Find out below whether it was"), (3, "3 messages have no outcome")],
)
def test_the_page_says_where_unknown_messages_are_closed(unknown, words):
    """Below, with a button for each request."""
    told = presenter.unknown_words(campaign("needs attention", counts=(0, unknown)))
    assert (told.startswith(words), bool(told)) == (True, bool(unknown))
