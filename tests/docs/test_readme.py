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
FIRST_SCREEN_LINES = 36
CHARACTERS_OF_A_PROMISE = 130
DAG_LINES = 11
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


def test_another_wording_texts_nobody_again(run, sandbox):
    """The README's key identifies a message in its campaign, whatever its wording, as the comment in the DAG says."""
    run()
    assert run("is overdue.", "was due last month.").xcoms["text_them"]["already_sent"] == 3
    assert len(sandbox.state.accepted) == 3


def test_the_paste_copies_the_dag():
    """Its program takes the DAG from the README, and no other block."""
    (program,) = re.findall(r"^awk '(.*)' README\.md > ~/sms-airflow/dags/\w+\.py$", COMMANDS, re.MULTILINE)
    taken = subprocess.run(["awk", program, README], capture_output=True, text=True, check=True)
    assert [taken.stdout] == dags(README)


def test_the_dag_is_the_quickstarts():
    """The quickstart's first DAG differs in the place of its table alone, so a reader meets the same campaign again."""

    def told(page):
        first, *_ = dags(page)
        return [
            line.partition("  #")[0] for line in first.splitlines() if not re.search(r"source=|^from pathlib|^$", line)
        ]

    assert told(ROOT / "docs" / "quickstart.md") == told(README)


@pytest.mark.parametrize("path", ["docs/testing.md", "dags/example_sms_from_dataframe.py"])
def test_a_dataframe_is_texted_in_the_same_campaign(path):
    """The page *Testing* and the example have the README's columns, campaign and text."""
    (dag,) = dags(README)
    shown = (ROOT / path).read_text()
    arguments = re.findall(
        r"^ +((?:destination_column|message|campaign|key_columns)=.*?),(?:  #.*)?$", dag, re.MULTILINE
    )
    assert len(arguments) == 4
    assert [each for each in arguments if f"{each},\n" not in shown] == []


def test_the_first_screen_is_short():
    """One sentence, a DAG of ten lines, the table; then three promises and three limits, each of a line."""
    screen = TEXT[: TEXT.index("\n## ")]
    _, first, *_ = screen.split("\n\n")
    (dag,) = dags(README)
    assert len(re.findall(r"\.(?:\s|$)", first)) == 1
    assert screen.index(first) < screen.index(dag) < screen.index("\n|")
    assert len(dag[dag.index("with DAG") :].splitlines()) == DAG_LINES
    assert len(screen.splitlines()) <= FIRST_SCREEN_LINES
    promises, limits = (_section(name).strip().splitlines() for name in ("Before, during, after", "Limits"))
    assert [each.split("**")[1] for each in promises] == ["Before", "During", "After"]
    assert [each[:2] for each in limits] == ["- "] * 3
    assert max(map(len, promises + limits)) <= CHARACTERS_OF_A_PROMISE


def _section(heading):
    """Return the text under a heading."""
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_service_is_named_by_what_it_takes():
    """Path, headers and fields of the README are those that the page *Which service* shows."""
    service = (ROOT / "docs" / "service.md").read_text()
    for part in re.findall(r"`([^`]+)`", _section("Which service")):
        for word in re.findall(r"\w[\w/-]*", part):
            assert word in service or word in {"Hi", "TOKEN"}, word


def test_a_reader_meets_the_campaign_again():
    """The README's campaign and text are those of the pages after it, of an example and of the pictures."""
    shown = [dags(ROOT / "docs" / f"{page}.md")[0] for page in ("quickstart", "testing")]
    shown.append((ROOT / "dags" / "example_sms_from_dataframe.py").read_text())
    pictured = (ROOT / "tests" / "support" / "screenshots" / "campaigns.py").read_text()
    for name in ("campaign", "message"):
        (value,) = re.findall(rf'^ +{name}="(.*?)",', dags(README)[0], re.MULTILINE)
        assert all(f'{name}="{value}"' in code for code in shown)
        assert f'"{name}": "{value}"' in pictured
    for page in ("before-sending", "unknown", "ledger-command", "what-to-do"):
        assert re.search(r"\b[Cc]ampaign `?reminders\b", (ROOT / "docs" / f"{page}.md").read_text()), page


def test_the_order_is_that_of_questions():
    """Try it, test it; what it promises, what it does not do, which service it needs; then where to go."""
    order = ["Try it", "Test it", "Before, during, after", "Limits", "Which service", "Next", "Licence"]
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == order


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
