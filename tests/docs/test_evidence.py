from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing

import pytest
from support.airflow import everything_logged, load_dags, run_dag, sync_dags
from support.pages import ROOT, blocks

from airflow_provider_sms.cli.main import main

PAGE = ROOT / "docs" / "failures.md"
TOKEN = "sandbox-token-0123"
DAG = """
from airflow.sdk import DAG

from airflow_provider_sms.operators.sms import BulkSmsOperator

with DAG("reminders", schedule=None):
    BulkSmsOperator(
        task_id="send",
        source=[{"destination": str(27_820_000_000 + n)} for n in range(400)],
        message="Your appointment is tomorrow",
        campaign="reminders",
        concurrency=1,
    )
"""
"""The page's campaign of 400 people in four requests."""


@pytest.fixture
def sms_sandbox_config():
    """Credit for the campaign, as the page shows it."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(token=TOKEN, balance=1000)


def shown_blocks():
    """Return the commands and the outputs of the page's section."""
    (_, _, part) = PAGE.read_text().partition("\n## Decide\n")
    part = part.partition("\n## ")[0]
    return [block for block in blocks(PAGE) if block.code in part]


class Person:
    """Does what the page says, and keeps what is printed.

    :param folder: in which the DAG is, and the ledger.
    """

    def __init__(self, folder, ledger_path, capsys):
        self.folder, self.ledger_path, self.capsys = folder, ledger_path, capsys
        (folder / "dags").mkdir()
        (folder / "dags" / "reminders.py").write_text(DAG)

    def run_dag(self):
        """Run the DAG, and return its log."""
        import pendulum

        bag = load_dags(self.folder / "dags")
        sync_dags(bag)
        with everything_logged() as output:
            run_dag(bag.dags["reminders"], pendulum.now("UTC"))
        return output.getvalue()

    def run_command(self, line):
        """Run a command of the page, a minute after the send, and return its output."""
        _, *words = shlex.split(line)
        if "--read-balance" in words:
            with closing(sqlite3.connect(self.ledger_path)) as ledger, ledger:
                ended = "(SELECT max(finished_at) FROM sms_request)"
                ledger.execute(f"UPDATE sms_request SET deadline = {ended}, evidence = NULL WHERE state = 'unknown'")
        self.capsys.readouterr()
        main([*words, *(["--yes"] if words[0] == "resolve" else [])])
        return "".join(self.capsys.readouterr())


@pytest.fixture
def person(tmp_path, sms_default, ledger_path, capsys):
    """Somebody with the page's campaign, in a folder of this test's own."""
    return Person(tmp_path, ledger_path, capsys)


def shown(text):
    """Return lines as they are compared: without what differs in each run, and with cells in place of columns."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\w.:+]*|\d\d:\d\d:\d\d UTC", "TIME", text)
    lines = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) > 2 and not cells[0]:
            continue  # goes on with a cell of the row above
        lines.append(" ".join(" | ".join(cells[:-1] if len(cells) > 2 else cells).split()))
    return lines


@pytest.mark.slow
def test_a_lost_request_is_closed_as_the_page_says(person, sandbox):
    """What the page shows is printed: the task's error, the evidence, the decision, and the next attempt."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_before"}])
    said = person.run_dag()
    for block in shown_blocks():
        if block.language == "sh":
            said = person.run_command(block.code)
            continue
        if block.code.startswith("Campaign"):
            said = person.run_dag()
        printed = "\n".join(shown(said))
        for line in shown(block.code):
            if line.strip("=+ …") and not line.startswith("Close 1 request as"):
                assert line in printed, f"{block.where}: {line}"
    assert len(sandbox.state.accepted_messages) == len(set(sandbox.state.accepted_messages)) == 400


@pytest.mark.slow
def test_what_the_balance_tells_names_nobody(person, sandbox, ledger_path):
    """The words that the ledger keeps, which errors, commands and pages show, have no number, text or token."""
    sandbox.state.set_faults([{"kind": "none"}, {"kind": "drop_before"}])
    person.run_dag()
    person.run_command("airflow-sms unknown --read-balance")
    with closing(sqlite3.connect(ledger_path)) as ledger:
        told = [words for (words,) in ledger.execute("SELECT evidence FROM sms_request WHERE evidence IS NOT NULL")]
    assert len(told) == 1
    numbers = [number for number, _ in sandbox.state.accepted_messages]
    assert numbers
    assert not any(secret in " ".join(told) for secret in (*numbers, "appointment", TOKEN))
