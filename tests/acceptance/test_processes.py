from __future__ import annotations

import time

import pytest

from airflow_provider_sms.reporting.summary import COUNTS


def wait_until(condition, process):
    """Wait while a process lives."""
    while not condition():
        assert process.poll() is None, "the process ended too early"
        time.sleep(0.005)


def test_a_process_killed_in_the_middle_texts_nobody_twice(airflow, people, sandbox, witnessed):
    """SIGKILL and start again: no duplicates, rows add up exactly, at most ``concurrency`` requests are unknown."""
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.1, "persistent": True}])
    runs = airflow(people(3000), concurrency=4)
    process = runs.start()
    wait_until(lambda: len(sandbox.state.accepted) >= 1000, process)
    runs.kill()
    sandbox.state.set_faults([])
    before = len(sandbox.state.accepted)

    process = runs.start()
    status = process.wait(120)
    summary = runs.summary()
    assert summary["rows"] == 3000 == sum(summary[name] for name in COUNTS)
    assert (before < 3000, 0 < summary["unknown"] <= 400) == (True, True)
    assert summary["accepted"] + summary["already_sent"] + summary["unknown"] == 3000
    # Everybody that is called texted was; whoever was not is among the unknown.
    assert set(witnessed().values()) == {1}
    assert 3000 - summary["unknown"] <= len(witnessed()) <= 3000
    assert (status, "may have been sent" in runs.log()) == (1, True)


@pytest.mark.slow
def test_two_live_copies_send_each_message_once(airflow, people, sandbox, witnessed):
    """The same send started twice at the same time: the two together text everybody once."""
    source = people(2000)
    sandbox.state.set_faults([{"kind": "delay", "seconds": 0.05, "persistent": True}])
    copies = [airflow(source), airflow(source)]
    processes = [copy.start() for copy in copies]
    assert [process.wait(120) for process in processes] == [0, 0]
    summaries = [copy.summary() for copy in copies]
    assert [sum(summary[name] for name in COUNTS) for summary in summaries] == [2000, 2000]
    assert sum(summary["accepted"] for summary in summaries) == 2000
    assert (len(witnessed()), set(witnessed().values())) == (2000, {1})
