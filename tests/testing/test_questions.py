from __future__ import annotations

import pytest

from airflow_provider_sms.testing.questions import WHO_ANSWERED, answer_event, questions_in_memory

QUESTION = {"options": ["Send", "Stop"], "subject": "Campaign `c`: send 2 messages?", "assigned_users": None}


def test_an_answer_is_one_of_the_options():
    """It comes back as Airflow brings it back, from somebody."""
    event = answer_event("text", QUESTION, "Send")
    assert event["chosen_options"] == ["Send"]
    assert event["responded_by_user"] == {"id": WHO_ANSWERED, "name": WHO_ANSWERED}


def test_a_user_answers_to_whom_the_question_is_assigned():
    """Nobody else may."""
    assigned = {**QUESTION, "assigned_users": [{"id": "3", "name": "ann"}, {"id": "4", "name": "bob"}]}
    assert answer_event("text", assigned, "Stop")["responded_by_user"] == {"id": "3", "name": "ann"}


@pytest.mark.parametrize("answer", [None, "Yes"])
def test_a_question_without_an_answer_is_an_error(answer):
    """It shows the question, and what can be answered."""
    with pytest.raises(LookupError, match=r"task text asks a person.*send 2 messages\?.*answer='Send' or 'Stop'"):
        answer_event("text", QUESTION, answer)


def test_questions_are_kept_in_memory():
    """Airflow's database is not asked for, and only meanwhile."""
    from airflow.sdk.execution_time import hitl

    before = hitl.upsert_hitl_detail
    with questions_in_memory() as asked:
        hitl.upsert_hitl_detail(ti_id=None, **QUESTION)
    assert asked == [{"ti_id": None, **QUESTION}]
    assert hitl.upsert_hitl_detail is before
