from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest
from support.airflow import everything_logged
from support.faults.peers import TROUBLES
from support.pages import ROOT, blocks, dags, without_dry_run

from airflow_provider_sms.sandbox.__main__ import _config, _parser

README = ROOT / "README.md"
TEXT = README.read_text()
COMMANDS = "\n".join(block.code for block in blocks(README, "sh"))
(PRINTED,) = (block.code for block in blocks(README, "text"))
PLANNED, LOGGED, INBOX = re.fullmatch(r"(.*are ready\n)…\n(Campaign .*?\n)…\n(.*)", PRINTED, re.DOTALL).groups()
PROOF = (ROOT / "docs" / "proof.md").read_text()
(STARTED,) = re.findall(r"^python -m airflow_provider_sms\.sandbox (.*) &$", COMMANDS, re.MULTILINE)
CONFIG = _config(_parser().parse_args(shlex.split(STARTED)))
FAULTS = {
    "one response is lost": "lost once",
    "the task dies in mid-send and is retried": "dies",
    "the task is cleared and runs again": "again",
}
"""Row of the README's table → fault of the command that prints it."""


@pytest.fixture
def sms_sandbox_config():
    """The credit of the README's command, and the token of the tests."""
    from airflow_provider_sms.sandbox.config import SandboxConfig

    return SandboxConfig(token="sandbox-token-0123", balance=CONFIG.balance)


@pytest.fixture
def run(run_file, tmp_path):
    """Run the README's DAG on its table, in a folder of this test's own: to send, with other words if any are given."""
    (rows,) = re.findall(r"^cat > /tmp/overdue\.csv <<'CSV'\n(.*?)^CSV$", COMMANDS, re.MULTILINE | re.DOTALL)
    (tmp_path / "overdue.csv").write_text(rows)
    (planning,) = dags(README)
    sending = without_dry_run(planning)

    def run(words="", others="", *, dry_run=False):
        dag = planning if dry_run else sending
        assert words in dag
        return run_file(dag.replace(words, others).replace("/tmp/", f"{tmp_path}/"))

    return run


def test_the_first_dag_does_what_is_said_of_it(run, sandbox):
    """The README's DAG texts three people, logs what the README shows, and texts nobody when it runs again."""
    with everything_logged() as output:
        run()
    assert LOGGED.strip() in " ".join(output.getvalue().split())
    assert {
        ("27820000001", "Hi Thandeka, invoice INV-1041 of R1250.50 is overdue. Paid already? Thank you."),
        ("27830000002", "Hi Pieter, invoice INV-1042 of R89.90 is overdue. Paid already? Thank you."),
        ("27840000003", "Hi Naledi, invoice INV-1057 of R12400.00 is overdue. Paid already? Thank you."),
    } == set(sandbox.state.accepted_messages)
    shown = [json.loads(f"{{{line.strip().rstrip(',')}}}")["content"] for line in INBOX.splitlines()]
    assert shown == [text for _, text in sandbox.state.accepted_messages][::-1]
    assert run().xcoms["text_them"]["already_sent"] == 3
    assert len(sandbox.state.accepted) == 3


def test_the_first_run_shows_the_plan_and_sends_nothing(run, sandbox):
    """With ``dry_run=True``, as the DAG stands on the page; the quickstart shows the same plan."""
    with everything_logged() as output:
        run(dry_run=True)
    shown = {line.strip() for line in PLANNED.splitlines()} - {"…"}
    assert [line for line in shown if line not in output.getvalue()] == []
    assert sandbox.state.accepted == []
    assert PLANNED in [block.code for block in blocks(ROOT / "docs" / "quickstart.md", "text")]


def test_the_paste_copies_the_dag():
    """Its program takes the DAG from the README, and no other block."""
    (program,) = re.findall(r"^awk '(.*)' README\.md > ~/sms-airflow/dags/\w+\.py$", COMMANDS, re.MULTILINE)
    taken = subprocess.run(["awk", program, README], capture_output=True, text=True, check=True)
    assert [taken.stdout] == dags(README)


def test_the_figures_are_those_of_the_proof_and_of_its_command():
    """Whom each way texted twice or named is as in the proof; the command named there prints it."""
    rows = re.findall(r"^\| ([a-z].*?) \|(.*)\|$", TEXT, re.MULTILINE)
    assert [name for name, _ in rows] == list(FAULTS)
    for name, cells in rows:
        (measured,) = re.findall(rf"^\| {TROUBLES[FAULTS[name]].name} \|(.*)\|$", PROOF, re.MULTILINE)
        by_way = [cell.split(" / ") for cell in measured.split("|")[:3]]
        told = cells.replace(",", "").split("|")
        assert [int(twice) for twice, *_ in by_way] == [int(cell.partition("(")[0]) for cell in told]
        assert re.findall(r"\((\d+) are \*unknown", cells) == [unknown for _, _, unknown, _ in by_way if int(unknown)]
    (command,) = re.findall(r"^with `--only ([^`]*)`, .*\[README\]", PROOF, re.MULTILINE)
    assert shlex.split(command) == list(FAULTS.values())


def test_the_connection_is_that_of_the_sandbox():
    """The connection has the address and the token of the sandbox that is started."""
    (connection,) = re.findall(r"^export AIRFLOW_CONN_SMS_DEFAULT='(.*)'$", COMMANDS, re.MULTILINE)
    expected = {"conn_type": "sms", "host": f"http://127.0.0.1:{CONFIG.port}/v1", "password": CONFIG.token}
    assert expected == json.loads(connection)
