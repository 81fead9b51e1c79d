from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest
from support.sending import people
from support.versions import HAS_COMMANDS_OF_PROVIDERS

from airflow_provider_sms.ledger.model import UNKNOWN


def found_in(folder, words):
    """Return the files of a folder that hold a text.

    Another process reads them: SQLite's locks on a database that is in use end when this process closes a file of it.
    """
    found = subprocess.run(["grep", "-rlF", words, folder], check=False, capture_output=True, text=True)
    assert found.returncode < 2, found.stderr
    return found.stdout.splitlines()


@pytest.mark.slow
def test_airflow_has_the_commands_from_3_2_on(airflow):
    """``airflow sms`` is there where Airflow takes commands of providers; before that Airflow says that it is not."""
    said = airflow("sms", "--help")
    unknown = "invalid choice: 'sms'" in said.err
    assert (said.status, unknown) == ((0, False) if HAS_COMMANDS_OF_PROVIDERS else (2, True))


@pytest.mark.slow
def test_data_is_all_that_is_on_stdout(ledger_command, sent_to_file):
    """JSON can be read by a program; the hint for a person is on stderr."""
    sent_to_file(people(3))
    sent_to_file(people(2, 10), UNKNOWN)
    said = ledger_command("show", "spring", "-o", "json")
    assert (said.status, said.data[0]["accepted"]) == (0, "3")
    assert "1 request is unknown" in said.err


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
def test_what_is_not_done_has_its_status_in_airflow_too(ledger_command, file_store):
    """Status 1, one line on stderr, no traceback."""
    said = ledger_command("show", "sprign")
    last = said.err.splitlines()[-1]  # after what Airflow logs when it is loaded
    assert "Traceback" not in said.err
    assert (said.status, said.out, last) == (1, "", "The ledger has no campaign 'sprign'")


@pytest.mark.slow
def test_a_person_is_asked_at_a_terminal(console_script, sent_to_file):
    """The console script asks at a real terminal, and does what it is told there."""
    request = sent_to_file(people(3), UNKNOWN)
    keyboard, terminal = pty.openpty()
    command = [*console_script, "resolve", str(request), "--as", "not-sent"]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        os.write(keyboard, b"y\n")
        words = process.communicate(timeout=120)[0].decode()
    os.close(keyboard)
    os.close(terminal)
    assert (process.returncode, "Closed as not sent: 1 of 1 request, 3 messages" in words) == (0, True)


@pytest.mark.slow
def test_the_console_script_has_the_same_commands(console_script, sent_to_file):
    """Where Airflow does not take commands of providers, the script gives the same data and statuses."""
    sent_to_file(people(3), UNKNOWN)
    done = subprocess.run([*console_script, "unknown", "-o", "json"], capture_output=True, text=True, check=True)
    assert [row["messages"] for row in json.loads(done.stdout)] == ["3"]
    wrong = subprocess.run([*console_script, "unknow"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
