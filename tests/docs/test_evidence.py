from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing

import pytest
import requests
from support.airflow import everything_logged, load_dags, run_dag, sync_dags
from support.pages import ROOT, blocks

from airflow_provider_sms.cli.main import main

PAGE = ROOT / "docs" / "unknown.md"
TEXT = PAGE.read_text()
HOST = "http://127.0.0.1:8025"
TOKEN = "sandbox-token-0123"
ELSEWHERE = ("mkdir", "export", "cd", "airflow db migrate", ".venv/bin/python -m airflow_provider_sms.sandbox")
"""Commands of which this test does the same in another way."""


@pytest.fixture
def sms_sandbox_config(tmp_path):
    """The settings of the page's sandbox: its credit, and its log where the page has it."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(token=TOKEN, balance=1000, log=tmp_path / "sandbox.jsonl")


def trial_blocks():
    """Return the code blocks of the page's trial."""
    (_, _, part) = TEXT.partition("\n## Try it\n")
    return [block for block in blocks(PAGE) if block.code in part]


class Trial:
    """Does what the page's commands do, and keeps what they print.

    :param folder: the page's ``~/sms-trial``.
    """

    def __init__(self, folder, sandbox, ledger_path, capsys, monkeypatch):
        self.folder, self.sandbox, self.ledger_path = folder, sandbox, ledger_path
        self.capsys, self.monkeypatch = capsys, monkeypatch
        self.said = ""

    def run(self, code):
        """Run the commands of a block."""
        for found in re.finditer(r"^([^\n]*) <<'(\w+)'\n(.*?)^\2$|^([^\n]+)$", code, re.MULTILINE | re.DOTALL):
            command, _, inside, line = found.groups()
            if line is not None:
                self._run_line(line)
            else:
                assert command.startswith("cat > ")
                (self.folder / "dags").mkdir()
                (self.folder / command.removeprefix("cat > ")).write_text(inside)

    def _run_line(self, line):
        words = shlex.split(line)
        if words[0] == "curl":
            _, _, method, url, _, body = words
            assert url.startswith(f"{HOST}/_sandbox/")
            asked = requests.request(
                method, url.replace(f"{HOST}/v1", "").replace(HOST, self.root), data=body, timeout=5
            )
            asked.raise_for_status()
        elif words[:3] == ["airflow", "dags", "test"]:
            self._run_dag(words[3], json.loads(words[5]) if words[4:5] == ["-c"] else None)
        elif words[0] == "airflow-sms":
            self._run_command(words[1:])
        else:
            assert line.startswith(ELSEWHERE)

    @property
    def root(self):
        return self.sandbox.base_url.removesuffix("/v1")

    def _run_dag(self, dag_id, conf):
        import pendulum

        bag = load_dags(self.folder / "dags")  # anew: the DAG of the last run has its params
        sync_dags(bag)
        with everything_logged() as output:
            run_dag(bag.dags[dag_id], pendulum.now("UTC"), conf)
        self.said += output.getvalue()

    def _run_command(self, words):
        if "--read-balance" in words:  # a minute later
            with closing(sqlite3.connect(self.ledger_path)) as ledger, ledger:
                ended = "(SELECT max(finished_at) FROM sms_request)"
                ledger.execute(f"UPDATE sms_request SET deadline = {ended}, evidence = NULL WHERE state = 'unknown'")
        yes = ["--yes"] if words[0] == "resolve" else []
        self.capsys.readouterr()
        self.monkeypatch.chdir(self.folder)
        main([*words, *yes])
        self.said += "".join(self.capsys.readouterr())


@pytest.fixture
def trial(tmp_path, sms_default, sandbox, ledger_path, capsys, monkeypatch):
    """The trial of the page, in a folder of this test's own."""
    return Trial(tmp_path, sandbox, ledger_path, capsys, monkeypatch)


def shown(text):
    """Return lines as they are compared: without what differs in each run, and with cells in place of columns."""
    text = re.sub(r"manual__\S+", "RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\w.:+]*|\d\d:\d\d:\d\d UTC", "TIME", text)
    lines = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) > 2 and not cells[0]:
            continue  # goes on with a cell of the row above
        lines.append(" ".join(" | ".join(cells[:-1] if len(cells) > 2 else cells).split()))
    return lines


@pytest.mark.slow
def test_the_trial_goes_as_the_page_says(trial, sandbox):
    """What the page shows after its commands is what they print: tasks, and the ledger's commands."""
    for block in trial_blocks():
        if block.language == "sh":
            trial.said = ""
            trial.run(block.code)
            continue
        printed = "\n".join(shown(trial.said))
        for line in shown(block.code):
            if line.strip("=+ …") and not line.startswith("Close 1 request as"):
                assert line in printed, f"{block.where}: {line}"
    assert len({number for number, _ in sandbox.state.accepted_messages}) == 400
    assert len((trial.folder / "sandbox.jsonl").read_text().splitlines()) == 400


@pytest.mark.slow
def test_what_the_balance_tells_names_nobody(trial, sandbox, ledger_path):
    """The words that the ledger keeps, which errors, commands and pages show, have no number, text or token."""
    commands = [block.code for block in trial_blocks() if block.language == "sh"]
    for code in commands[:3]:
        trial.run(code)
    with closing(sqlite3.connect(ledger_path)) as ledger:
        told = [words for (words,) in ledger.execute("SELECT evidence FROM sms_request WHERE evidence IS NOT NULL")]
    assert len(told) == 1
    numbers = [number.removeprefix("+") for number, _ in sandbox.state.accepted_messages]
    assert numbers
    assert not any(secret in " ".join(told) for secret in (*numbers, "appointment", TOKEN))
