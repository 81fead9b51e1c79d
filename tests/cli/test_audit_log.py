from __future__ import annotations

import getpass
import logging
import socket
import sys

import pytest
from support.sending import people
from support.told import pause_of


@pytest.fixture
def typed(monkeypatch, ledger):
    """Run a command whose line the process has, as a shell gives it."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["airflow-sms", *arguments])
        return ledger(*arguments)

    return run


def test_a_command_is_in_airflows_audit_log(typed, sent, audit_rows):
    """As a command of Airflow's own is: with the user, the machine and the command line; the task that it names."""
    sent(people(1))
    typed("pause", "spring")
    typed("adopt", "d", "t", "r", "--yes")
    line = {"host_name": socket.gethostname(), "full_command": "['airflow-sms', 'pause', 'spring']"}
    pause, adopt = audit_rows()
    assert pause == ("cli_sms_pause_campaign", getpass.getuser(), None, line)
    assert (adopt[0], adopt[2]) == ("cli_sms_adopt_task", "d")


@pytest.mark.parametrize("name", ["who", "forget"])
def test_a_number_in_a_command_is_masked_in_the_audit_log(typed, sent, audit_rows, name):
    """However it is written."""
    sent(people(1))
    for number in ("+27820000000", "+27 82 000 0000"):
        typed(name, number)
    lines = [details["full_command"] for *_, details in audit_rows()]
    assert [("*****" in line, "0000000" in line.replace(" ", "")) for line in lines] == [(True, False)] * 2


def test_a_command_does_not_wait_for_the_audit_log(typed, sent, store, monkeypatch, caplog):
    """As with Airflow's own commands: a pause may be urgent, and the ledger says who paused."""

    def fail(**row):
        raise OSError

    sent(people(1))
    monkeypatch.setattr("airflow.utils.cli_action_loggers.__pre_exec_callbacks", [fail])
    with caplog.at_level(logging.ERROR):
        assert typed("pause", "spring").status == 0
    assert pause_of(store, "spring").paused_by == getpass.getuser()
