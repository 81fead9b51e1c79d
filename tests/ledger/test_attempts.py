from __future__ import annotations

from support.sending import claimant

from airflow_provider_sms.ledger.attempts import has_trace


def test_a_trace_is_one_of_the_same_task_instance(enter, store):
    """Any try of the task instance leaves a trace; other tasks, runs and map indexes leave none of it."""
    enter(1)
    assert has_trace(store, claimant(2))
    for other in ({"task_id": "x"}, {"run_id": "x"}, {"dag_id": "x"}, {"map_index": 3}):
        assert not has_trace(store, claimant(2, **other))
