from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest
from support.sending import people

from airflow_provider_sms.ledger.model import UNKNOWN


def found_in(folder, words):
    """Return the files of a folder that hold a text.

    Another process reads them: SQLite's locks on a database that is in use end when this process closes a file of it.
    """
    found = subprocess.run(["grep", "-rlF", words, folder], check=False, capture_output=True, text=True)
    assert found.returncode < 2, found.stderr
    return found.stdout.splitlines()


@pytest.mark.slow
def test_a_number_that_is_asked_about_stays_out_of_airflows_database(
    ledger_command, airflow, airflow_home, sent_to_file
):
    """Airflow keeps the command lines of its own commands; that of ``who`` it must not get."""
    (somebody,) = people(1, 9_876_543)
    sent_to_file([somebody])
    said = ledger_command("who", somebody.destination, "-o", "json")
    assert (said.status, len(said.data)) == (0, 1)
    # A command of Airflow's own shows that such words would be found.
    assert airflow("connections", "delete", "nobody-4711").status != 0
    assert [path for path in found_in(airflow_home, "nobody-4711") if "airflow.db" in path] != []
    assert found_in(airflow_home, somebody.destination) == []


@pytest.mark.slow
def test_the_console_script_has_the_same_commands(console_script, sent_to_file):
    """Where Airflow takes no commands of providers, it gives the same data, and asks at a real terminal."""
    request = sent_to_file(people(3), UNKNOWN)
    done = subprocess.run([*console_script, "unknown", "-o", "json"], capture_output=True, text=True, check=True)
    assert [row["messages"] for row in json.loads(done.stdout)] == ["3"]
    keyboard, terminal = pty.openpty()
    command = [*console_script, "resolve", str(request), "--as", "not-sent"]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        os.write(keyboard, b"y\n")
        words = process.communicate(timeout=120)[0].decode()
    os.close(keyboard)
    os.close(terminal)
    assert (process.returncode, "Closed as not sent: 1 of 1 request, 3 messages" in words) == (0, True)
