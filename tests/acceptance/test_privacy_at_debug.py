from __future__ import annotations

import pytest
from support.privacy import People, logs_of
from support.versions import KEEPS_TASK_STATE
from support.whole import TOKEN, run_at_debug

pytestmark = pytest.mark.skipif(not KEEPS_TASK_STATE, reason="older versions of Airflow print other things at DEBUG")


@pytest.fixture(scope="module")
def at_debug(tmp_path_factory):
    """A send in an Airflow whose log level is DEBUG."""
    return run_at_debug(tmp_path_factory.mktemp("debug"))


@pytest.fixture(scope="module")
def people(at_debug):
    return People(at_debug.taken)


def test_the_logs_of_tasks_name_nobody(at_debug, people):
    """At DEBUG, too, a task's own log holds no number, no text and no token."""
    logs = list((at_debug.home / "logs").rglob("*.log"))
    assert (at_debug.states, people.count, len(logs) > 0) == ({"sent": "success"}, 250, True)
    assert [path.name for path in logs if people.stand_in(path.read_text(errors="replace"))] == []


def test_nothing_prints_a_number_a_text_or_the_token(at_debug, people):
    """Neither the worker, nor the scheduler, the triggerer and the web server, nor the pages and commands."""
    texts = {path.name: path.read_text(errors="replace") for path in logs_of(at_debug.home)}
    texts |= at_debug.shown
    assert [name for name, text in texts.items() if TOKEN in text or people.stand_in(text)] == []
