"""The commands of the first pages, as they stand there, in a shell and an environment that they make themselves."""

from __future__ import annotations

import re

import pytest
import requests
from support.faults.standalone import free_port
from support.pages import ROOT, blocks
from support.terminal import Terminal

README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
INSTALL = next(block.code for block in blocks(README, "sh") if "pip install" in block.code)
(ENVIRONMENT,) = re.findall(r"venv ~/(\S+)", INSTALL)


@pytest.fixture(scope="module")
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
    """Somebody who types what a page says, in two terminals."""
    reader = Reader(home)
    yield reader
    reader.close()


class Reader:
    """Does what a page says; the port of its sandbox and its folder ``/tmp`` are this test's own.

    :param home: their home folder.
    """

    def __init__(self, home):
        self.port, self._tmp = free_port(), home / "tmp"
        self._tmp.mkdir(exist_ok=True)
        self._terminals = [Terminal(home, ROOT), Terminal(home, ROOT)]

    def adapted(self, code):
        """Return the code of a page with this test's port and folder."""
        return code.replace("8025", str(self.port)).replace("/tmp/", f"{self._tmp}/")

    def type(self, code):
        """Type a block of the page in the first terminal, and return what it prints."""
        return self._terminals[0].run(self.adapted(code))

    def start_sandbox(self, code):
        """Type the block that starts the sandbox in the second terminal, and return when it is ready."""
        self._terminals[1].run(self.adapted(code), until="sandbox ready at ")

    def texts(self):
        """Return the texts that the sandbox accepted, in order."""
        found = requests.get(f"http://127.0.0.1:{self.port}/_sandbox/messages", timeout=5).json()
        return [message["content"] for message in found["messages"]]

    def close(self):
        """Close both terminals."""
        for each in self._terminals:
            each.close()


def dag_of(page):
    """Return the first DAG of a page, and the place below the home folder where the page says to save it."""
    place, *_ = re.findall(r"^Save th(?:e|is) DAG(?: above)? as `~/(\S+)`", page.read_text(), re.MULTILINE)
    return place, next(block.code for block in blocks(page) if block.is_dag)


def counts(said):
    """Return the counts of each line of a log that sums up the campaign."""
    return [dict(re.findall(r"(\w+) (\d+)", line)) for line in re.findall(r"Campaign reminders: (rows .*?);", said)]


def test_the_readme_leads_to_three_texts_and_one_that_is_unknown(home, reader):
    """Connect, run, run again, fail: each block as it stands, and the error that the page shows."""
    _, install, sandbox, connection, table, run, fail = (block.code for block in blocks(README, "sh"))
    reader.start_sandbox(sandbox)
    reader.type(install.splitlines()[1])
    reader.type(connection)
    reader.type(table)
    place, code = dag_of(README)
    (home / place).write_text(reader.adapted(code))
    assert counts(reader.type(run))[-1]["accepted"] == "3"
    assert counts(reader.type(run.splitlines()[-1]))[-1]["already_sent"] == "3"
    (error,) = (block.code.strip() for block in blocks(README, "text"))
    assert error in " ".join(reader.type(fail).split())
    assert len(reader.texts()) == len(set(reader.texts())) == 4


def test_the_quickstart_leads_to_four_texts(home, reader):
    """Steps 2 to 5, in the environment that the same line of the README made, and the lines that the page shows."""
    install, sandbox, connection, table, run, again = [block.code for block in blocks(QUICKSTART, "sh")][:6]
    assert install.splitlines()[-1] == INSTALL.splitlines()[-1]
    (own,) = re.findall(r"venv ~/(\S+)", install)
    (home / own).parent.mkdir()
    (home / own).symlink_to(home / ENVIRONMENT)
    reader.start_sandbox(sandbox)
    reader.type(install.splitlines()[1])
    assert "Connection success!" in reader.type(connection)
    reader.type(table)
    place, code = dag_of(QUICKSTART)
    (home / place).write_text(reader.adapted(code))
    shown = [line for block in blocks(QUICKSTART, "text") for line in counts(block.code)]
    assert [counts(reader.type(code))[-1] for code in (run, again)] == shown
    assert len(reader.texts()) == len(set(reader.texts())) == 4
