from __future__ import annotations

import re

import pytest
from support.privacy import People, logs_of
from support.versions import KEEPS_TASK_STATE
from support.whole import TOKEN, run_at_debug

pytestmark = pytest.mark.skipif(not KEEPS_TASK_STATE, reason="older versions of Airflow print other things at DEBUG")

MESSAGE = re.compile(r"Received message from task runner.* msg=(\w+)\((?:key='(\w+)')?")
"""What a worker prints of each message from a task: its kind, and of an XCom the key."""


@pytest.fixture(scope="module")
def at_debug(tmp_path_factory):
    """A send that asks a person and keeps raw responses, in an Airflow whose log level is DEBUG."""
    return run_at_debug(tmp_path_factory.mktemp("debug"))


@pytest.fixture(scope="module")
def people(at_debug):
    return People(at_debug.taken)


def test_the_logs_of_tasks_name_nobody(at_debug, people):
    """At DEBUG, too, a task's own log holds no number, no text and no token."""
    logs = list((at_debug.home / "logs").rglob("*.log"))
    assert (at_debug.states, people.count, len(logs) > 0) == ({"approved": "success"}, 250, True)
    assert [path.name for path in logs if people.stand_in(path.read_text(errors="replace"))] == []


def test_a_worker_prints_the_texts_that_airflow_stores_and_no_others(at_debug, people):
    """Its output has each message from a task: XComs, here with raw responses, and the question to a person."""
    printed = {}
    for path in logs_of(at_debug.home):
        for line in path.read_text(errors="replace").split("\n"):
            if texts := people.texts_in(line):
                found = MESSAGE.search(line)
                printed.setdefault(found.groups() if found else line, set()).add(texts)
    assert printed == {("SetXCom", "responses"): {3}, ("CreateHITLDetailPayload", None): {3}}


def test_nothing_prints_a_number_or_the_token(at_debug, people):
    """Neither the worker, nor the scheduler, the triggerer and the web server, nor the pages and commands."""
    texts = {path.name: path.read_text(errors="replace") for path in logs_of(at_debug.home)}
    texts |= at_debug.shown
    assert [name for name, text in texts.items() if TOKEN in text or people.are_numbers_in(text)] == []
