"""Somebody who does what a page says, in terminals."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from pathlib import Path

import requests

from support.faults.standalone import free_port, wrapper
from support.pages import ROOT, blocks
from support.terminal import Terminal

README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
INSTALL = next(block.code for block in blocks(README, "sh") if "pip install" in block.code)
(ENVIRONMENT,) = re.findall(r"venv ~/(\S+)", INSTALL)
ACTIVATE = INSTALL.splitlines()[1]
PASTE = next(block.code for block in blocks(README, "sh") if "airflow dags test" in block.code)
SETTINGS = "".join(re.findall(r"^export .*\n", PASTE, re.MULTILINE))


class Reader:
    """Does what a page says, in terminals with numbers, each of which is opened when it is first used.

    The ports of the programs that it starts and its folder ``/tmp`` are this reader's own.
    """

    def __init__(self, home):
        self._home = home
        self._port, web_port = free_port(), free_port()
        self.web_url = f"http://127.0.0.1:{web_port}"
        (home / "tmp").mkdir(exist_ok=True)
        self._tmp = Path(tempfile.mkdtemp(dir=home / "tmp"))
        variables = {
            # Airflow prints at once what it prints to a terminal, and not to a pipe.
            "PYTHONUNBUFFERED": "1",
            # A busy machine must not look like a dead API or a dead scheduler.
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "60",
            # A DAG file that was changed is believed at once: a person takes longer than this to go from step to step.
            "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(web_port),
            "AIRFLOW__API__BASE_URL": self.web_url,
        }
        self.terminals = defaultdict(lambda: Terminal(home, ROOT, **variables))

    def adapted(self, code):
        """Return the code of a page with this reader's ports and folder."""
        return code.replace("8025", str(self._port)).replace("/tmp/", f"{self._tmp}/")

    def type(self, code, *, terminal=1, until=None):
        """Type a block of a page, and return what it prints; see :meth:`Terminal.run`."""
        return self.terminals[terminal].run(self.adapted(code), until=until)

    def start_airflow(self, code):
        """Type the block that starts Airflow in the first terminal, and return what it prints until it is ready.

        Airflow's servers for logs, which would listen on every address of the machine, are left out.
        """
        folder = wrapper(self._tmp / "bin", f"{self._home / ENVIRONMENT}/bin/airflow")
        return self.type(f'PATH="{folder}:$PATH"\n{code}', until="standalone | Airflow is ready")

    def messages(self):
        """Return the messages that the sandbox accepted, in order."""
        return requests.get(f"http://127.0.0.1:{self._port}/_sandbox/messages", timeout=60).json()["messages"][::-1]

    def texts(self):
        return [message["content"] for message in self.messages()]

    def close(self):
        for each in self.terminals.values():
            each.close()


def dag_of(page):
    """Return the first DAG of a page, and the place below the home folder where it goes."""
    saved = r"^(?:Save this DAG as `|awk .* README\.md > )~/([^\s`]+)"
    place, *_ = re.findall(saved, page.read_text(), re.MULTILINE)
    return place, next(block.code for block in blocks(page) if block.is_dag)


def counts(said):
    """Return the counts of each line of a log that sums up the campaign."""
    return [dict(re.findall(r"(\w+) (\d+)", line)) for line in re.findall(r"Campaign reminders: (rows .*?);", said)]
