from __future__ import annotations

import pytest
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator


@pytest.fixture
def labels(sms_default, ledger_path):
    """Run a task for each source, and give the labels under which Airflow lists them."""

    def labels(template, sources):
        run = run_task(
            lambda: BulkSmsOperator.partial(task_id="send", message="Hi", map_index_template=template).expand(
                source=sources
            ),
            only=None,
        )
        tasks = sorted(run.get_task_instances(), key=lambda ti: ti.map_index)
        assert {str(ti.state) for ti in tasks} == {"success"}
        return [ti.rendered_map_index for ti in tasks]

    return labels


@pytest.mark.slow
def test_mapped_tasks_are_labelled_by_their_files(labels, people):
    """A template sees the source as the task does, so that its file's name is a label."""
    sources = [people(2), people(3)]
    found = labels("{{ task.source.rpartition('/')[2] }}", sources)
    assert found == ["people-2.parquet", "people-3.parquet"]


def test_labels_can_say_what_came_of_it(labels, people):
    """The summary is there once the task has ended."""
    template = "{{ task.source.rpartition('/')[2] }}: {{ ti.xcom_pull(task_ids=ti.task_id, key='return_value') }}"
    (found,) = labels(template, [people(2)])
    assert found.startswith("people-2.parquet: ")


def test_rows_in_memory_are_not_a_label(labels):
    """Airflow shows labels to whoever sees the task: rows are only counted."""
    assert labels("{{ task.source }}", [[{"destination": "27820000001"}]]) == ["list of 1 row"]
