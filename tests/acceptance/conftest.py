from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pandas as pd
import pytest
from support.airflow import stored_xcoms
from support.pages import ROOT
from support.reader import ACTIVATE, ENVIRONMENT, INSTALL, PASTE, README, Reader
from support.terminal import Terminal
from support.whole import run_all

DAG = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_sms.operators.sms import BulkSmsOperator

with DAG("campaign", schedule=None):
    BulkSmsOperator(
        task_id="send",
        source={source!r},
        message="Hi {{first_name}}",
        campaign="spring",
        concurrency={concurrency},
    )
"""


SHARING = (("whole", "privacy"), ("first_half_hour", "commands_of_pages"))
"""Files whose tests share a fixture that takes a minute or more: ``whole``, and ``home``."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the files that share a fixture in one process, and so make the fixture once."""
    from xdist.scheduler import LoadFileScheduling

    first_of = {f"test_{each}.py": f"test_{files[0]}.py" for files in SHARING for each in files}

    class Sharing(LoadFileScheduling):
        def _split_scope(self, nodeid):
            folder, _, file = super()._split_scope(nodeid).rpartition("/")
            return f"{folder}/{first_of.get(file, file)}"

    return Sharing(config, log)


class Airflow:
    """An Airflow home with one DAG, whose runs are processes of their own."""

    def __init__(self, home, connection, ledger):
        self.home = home
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__SMS__LEDGER_PATH": str(ledger),
            # Each start is a run of its own: it waits for the claims of one that was killed until their deadline.
            "AIRFLOW__SMS__LEDGER_PATIENCE": "0",
            "AIRFLOW_CONN_SMS_DEFAULT": json.dumps(connection),
        }
        self.processes = []

    def start(self):
        """Start a run of the DAG, in a process group of its own."""
        log = (self.home / f"run-{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", "dags", "test", "campaign"],
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def kill(self):
        """Kill every run that still lives, at once and with no chance to tidy up."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def log(self):
        return (self.home / f"run-{len(self.processes) - 1}.log").read_text()

    def summary(self):
        """Read the last run's summary with the means of this process's Airflow."""
        pushed = stored_xcoms(self.home, dag_id="campaign", key="return_value")
        return max(pushed, key=lambda pair: pair[0].timestamp)[1]


@pytest.fixture
def people(tmp_path):
    """Write a Parquet of that many people."""

    def people(count):
        frame = pd.DataFrame(
            {
                "destination": [str(27_820_000_000 + n) for n in range(count)],
                "first_name": [f"Name{n}" for n in range(count)],
            }
        )
        frame.to_parquet(tmp_path / "people.parquet")
        return str(tmp_path / "people.parquet")

    return people


@pytest.fixture
def airflow(airflow_home, sandbox, tmp_path):
    """Make an Airflow with the campaign in it; all of them share one ledger."""
    made = []
    connection = {
        "conn_type": "sms",
        "host": sandbox.base_url,
        "password": "sandbox-token-0123",
        "extra": {"timeout": 2, "connect_timeout": 1},
    }

    def airflow(source, concurrency=4):
        home = tmp_path / f"airflow-{len(made)}"
        (home / "dags").mkdir(parents=True)
        # A database that is migrated already: making another one takes seconds.
        with (
            closing(sqlite3.connect(airflow_home / "airflow.db")) as migrated,
            closing(sqlite3.connect(home / "airflow.db")) as new,
        ):
            migrated.backup(new)
        (home / "dags" / "campaign.py").write_text(DAG.format(source=source, concurrency=concurrency))
        made.append(Airflow(home, connection, tmp_path / "ledger.db"))
        return made[-1]

    yield airflow
    for each in made:
        each.kill()


@pytest.fixture
def witnessed(sandbox):
    """Count how often each person got each text."""
    return lambda: Counter(sandbox.state.accepted_messages)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Give what was seen of a real Airflow that has run everything once."""
    return run_all(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """The home folder of a person who has this checkout, and has typed the install block of the README."""
    home = tmp_path_factory.mktemp("home")
    terminal = Terminal(home, ROOT)
    terminal.run(INSTALL)
    terminal.close()
    assert (home / ENVIRONMENT / "bin" / "airflow-sms").is_file()
    return home


@pytest.fixture
def reader(home):
    """Somebody who types what a page says, in terminals of their own."""
    reader = Reader(home)
    yield reader
    reader.close()


@pytest.fixture(scope="session")
def campaign(home):
    """Somebody who has pasted the README's block, from its dry run to its inbox; ``said`` is what it printed."""
    reader = Reader(home)
    # A copy: the paste takes the DAG from it.
    (home / "README.md").write_text(reader.adapted(README.read_text()))
    try:
        reader.type(f"cd ~\n{ACTIVATE}")
        reader.said = reader.type(PASTE)
        yield reader
    finally:
        reader.close()
