from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from support.airflow import run_task

from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator


def campaigns(path):
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sms_campaign ORDER BY id")]


def test_a_campaign_has_the_name_of_its_task_and_run(send, people, ledger_path):
    """With slashes between them, which no id of a DAG or a task has; summary, notes and ledger agree."""
    ran = send(people(3))
    name = ran.summary["campaign"]
    assert name.split("/", 2)[1:] == ["send", ran.run_id]
    assert campaigns(ledger_path) == [name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "campaign",
    ["{{ dag_run.conf.get('name') }}", " {{ '' }} ", "{{ none }}", "sale{{ '\\x1f' }}spring", "{{ 'x' * 1001 }}"],
    ids=ascii,
)
def test_a_campaign_that_renders_to_no_name_is_refused(send, people, sandbox, ledger_path, campaign):
    """Else all runs would be one campaign, and the second day would be green and text nobody."""
    ran = send(people(3), campaign=campaign, retries=2)
    assert (ran.state, ran.tries, sandbox.state.requests) == ("failed", 1, [])
    assert ("Nothing was sent. Give the campaign a name" in ran.log, campaigns(ledger_path)) == (True, [])
    assert ran.xcoms == {}


def test_a_name_that_is_none_without_becoming_text_is_refused(sms_default, ledger_path, people, sandbox):
    """A DAG may render its templates to Python's own objects."""
    source = people(3)
    ran = run_task(
        lambda: BulkSmsOperator(task_id="send", source=source, message="Hi", campaign="{{ none }}"),
        render_template_as_native_obj=True,
    )
    assert (ran.state, "campaign is None" in ran.log, sandbox.state.requests) == ("failed", True, [])


def test_a_group_is_not_texted_in_a_campaign_without_a_name(sms_default, ledger_path, sandbox):
    """The same holds for groups."""
    ran = run_task(lambda: GroupSmsOperator(task_id="text", message="Hi", groups="staff", campaign="{{ none }}"))
    assert (ran.state, "campaign is None" in ran.log, sandbox.state.requests) == ("failed", True, [])


def test_blanks_around_a_name_are_no_part_of_it(send, people, witnessed, ledger_path):
    """A template may end with a line break."""
    source = people(3)
    first, second = send(source, campaign=" spring\n"), send(source, campaign="spring")
    assert (first.summary["accepted"], second.summary["already_sent"]) == (3, 3)
    assert (set(witnessed().values()), campaigns(ledger_path)) == ({1}, ["spring"])
