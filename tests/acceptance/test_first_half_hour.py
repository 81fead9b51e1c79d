"""The commands of the first pages, as they stand there, in a shell and an environment that they make themselves."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
import requests
from support.faults.rest import API_SECONDS, RestApi, until
from support.pages import ROOT, blocks, shell
from support.reader import ACTIVATE, ENVIRONMENT, INSTALL, PASTE, QUICKSTART, README, SETTINGS, Reader, counts, dag_of
from support.terminal import PATIENCE, Terminal

pytestmark = pytest.mark.slow
DAG, TASK = "remind_customers", "text_them"
AN_ERROR = re.compile(r"\[(?:\x1b\[[\d;]*m)*error|XCom not found")
SATURDAY = 5
OPERATIONS, DEPLOYED = 4, 5
"""Terminals in which the ledger is looked after, and in which an Airflow of its own gets the package."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The home folder of a person who has this checkout, and has typed the install block of the README."""
    home = tmp_path_factory.mktemp("home")
    # Without what Python makes of each module of Airflow: most are never used. To pip, 0 is this option's yes.
    terminal = Terminal(home, ROOT, PIP_NO_COMPILE="0")
    terminal.run(INSTALL)
    terminal.close()
    assert (home / ENVIRONMENT / "bin" / "airflow-sms").is_file()
    return home


@pytest.fixture(scope="module")
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


@pytest.fixture
def reader(home):
    """Somebody who types what a page says, in terminals of their own."""
    reader = Reader(home)
    yield reader
    reader.close()


def lines_missing(plan, said):
    """Return the lines of a plan on a page that were not logged; an ellipsis stands for others."""
    return [line for line in plan.splitlines() if line.strip() not in {"…", ""} and line.strip() not in said]


def test_the_readme_leads_to_three_texts(campaign):
    """The paste prints what the page shows, and run again, texts nobody."""
    (shown,) = (block.code for block in blocks(README, "text"))
    (again,) = re.findall(r"Run `(airflow dags test \w+)` again", README.read_text())
    assert lines_missing(shown, campaign.said) == []
    assert AN_ERROR.findall(campaign.said) == []
    assert counts(campaign.type(again))[-1]["already_sent"] == "3"
    assert len(campaign.texts()) == len(set(campaign.texts())) == 3


@pytest.mark.nightly
def test_after_a_restore_nobody_is_texted_again(campaign, home):
    """A backup after a send, put back by the commands of the page *The ledger*, knows who was texted."""
    campaign.type(f"cd ~\n{ACTIVATE}\n{SETTINGS}", terminal=OPERATIONS)
    ledger, moved = home / "sms-airflow" / "sms_ledger.db", home / "ledger-before" / "sms_ledger.db"
    before = campaign.texts()
    campaign.type(shell(".backup("), terminal=OPERATIONS)
    written = ledger.stat().st_ino
    campaign.type(shell("ledger-before"), terminal=OPERATIONS)
    assert (moved.stat().st_ino, ledger.stat().st_mode & 0o777) == (written, 0o600)
    (found,) = counts(campaign.type("airflow dags test remind_customers", terminal=OPERATIONS))[-1:]
    assert (found["accepted"], found["already_sent"]) == ("0", "3")
    assert campaign.texts() == before


@pytest.mark.nightly
def test_after_an_install_airflow_has_the_package(campaign):
    """Each command of the page *Deploy*, with the sandbox in the service's place, finds what the package brings."""
    settings = "export AIRFLOW_HOME=~/deployed AIRFLOW__CORE__TEST_CONNECTION=Enabled"
    campaign.type(f"{ACTIVATE}\n{settings}\nairflow db migrate", terminal=DEPLOYED)
    typed = shell("airflow providers get")
    for of_the_page, of_the_sandbox in (
        ("https://rest.example.com/v1", "http://127.0.0.1:8025/v1"),
        ("THE-TOKEN", "my-token"),
    ):
        assert typed.count(of_the_page) == 1
        typed = typed.replace(of_the_page, of_the_sandbox)
    provider, plugins, option, added, tested = (campaign.type(line, terminal=DEPLOYED) for line in typed.splitlines())
    assert re.search(r"^airflow-provider-sms +\|", provider, re.MULTILINE)
    assert re.search(r"^sms +\|", plugins, re.MULTILINE)
    assert option.split()[-1] == "0"
    assert "Successfully added `conn_id`=sms_default" in added
    assert "Connection success!" in tested


def latest_nine_o_clock(now):
    """Return the latest nine o'clock on a weekday in South Africa."""
    found = now.astimezone(ZoneInfo("Africa/Johannesburg")).replace(hour=9, minute=0, second=0, microsecond=0)
    while found > now or found.weekday() >= SATURDAY:
        found -= timedelta(days=1)
    return found


def words(listed):
    """Return the words of a table and of what follows it, sorted: cells are as wide as there is room. Times differ."""
    listed = re.sub(r"\S*\d\d[-:]\S*|[=+|-]{2,}", "", listed[listed.index("request ") :])
    return sorted(listed.replace("|", " ").split())


@pytest.fixture
def quickstart(reader, home):
    """Somebody who has done steps 1 to 5, in the environment that the same line of the README made: four texts."""
    install, sandbox, connection, table, plan, run, again, who, *_ = [b.code for b in blocks(QUICKSTART, "sh")]
    (planned,) = (b.code for b in blocks(QUICKSTART, "text") if "dry run" in b.code)
    assert install.splitlines()[-1] == INSTALL.splitlines()[-1]
    (own,) = re.findall(r"venv ~/(\S+)", install)
    (home / own).parent.mkdir()
    (home / own).symlink_to(home / ENVIRONMENT)
    reader.type(sandbox, terminal=2, until="sandbox ready at ")
    reader.type(install.splitlines()[1])
    assert "Connection success!" in reader.type(connection)
    reader.type(table)
    place, code = dag_of(QUICKSTART)
    (home / place).write_text(reader.adapted(code))
    assert lines_missing(planned, reader.type(plan)) == []
    shown = [line for b in blocks(QUICKSTART, "text") for line in counts(b.code)]
    assert [counts(reader.type(code))[-1] for code in (run, again)] == shown
    assert "accepted" in reader.type(who)
    assert len(reader.texts()) == len(set(reader.texts())) == 4
    return reader


@pytest.mark.nightly
def test_the_quickstart_leads_to_one_text_after_a_lost_response(quickstart, home):
    """Each step prints what the page shows; with a standalone Airflow: the run at nine, the alert, what is unknown."""
    reader = quickstart
    install, _, connection, _, _, _, _, _, *after = (b.code for b in blocks(QUICKSTART, "sh"))
    standalone, unpause, lose, unknown, close = after
    (listed,) = (b.code for b in blocks(QUICKSTART, "text") if b.code.startswith("request"))
    (remove,) = re.findall(r"\nTo remove everything, press Ctrl\+C .* `(rm -r ~/\S+)`", QUICKSTART.read_text())
    place, _ = dag_of(QUICKSTART)
    _, scheduled, *_ = (b.code for b in blocks(QUICKSTART) if b.is_dag)

    # Step 6.
    (home / place).write_text(reader.adapted(scheduled))
    assert re.search(r"Password for user 'admin': \S+", reader.start_airflow(standalone))
    (airflow_home,) = re.findall(r"^export AIRFLOW_HOME=~/(\S+)", connection, re.MULTILINE)
    web = RestApi(reader.web_url, home / airflow_home)
    exports = [line for line in connection.splitlines() if line.startswith("export ")]
    reader.type("\n".join([install.splitlines()[1], *exports]), terminal=3)
    nine = latest_nine_o_clock(datetime.now().astimezone())
    assert DAG in reader.type(unpause, terminal=3)

    def at_nine():
        with suppress(requests.ConnectionError):  # the server starts
            return [run for run in web.runs(DAG) if run["run_type"] == "scheduled"]
        return []

    (run,) = until(at_nine, seconds=PATIENCE, what="there is a scheduled run", every=API_SECONDS)
    run_id = quote(run["dag_run_id"])
    assert (web.await_end(DAG, run_id), datetime.fromisoformat(run["logical_date"])) == ("success", nine)
    assert web.xcom(DAG, run_id, TASK, "return_value")["already_sent"] == 4

    # Step 7.
    reader.type(lose, terminal=3)
    (run_id,) = re.findall(r"--run-id (\S+)", lose)
    assert web.await_end(DAG, run_id) == "failed"
    (task,) = web.instances(DAG, run_id)
    assert (task["state"], task["try_number"], task["max_tries"]) == ("failed", 1, 3)
    until(lambda: len(reader.messages()) == 6, seconds=PATIENCE, what="somebody is alerted")
    lerato, alert = ((message["destination"], message["content"]) for message in reader.messages()[4:])
    assert lerato[0] == "27820000005"
    assert alert == ("27820000099", f"{DAG}: {TASK} failed, see Airflow")
    assert words(reader.type(unknown, terminal=3)) == words(listed)
    reader.type(close, terminal=3)
    until(lambda: web.await_end(DAG, run_id) == "success", seconds=PATIENCE, what="the cleared task has ended")
    assert web.xcom(DAG, run_id, TASK, "return_value")["already_sent"] == 5
    assert [message["destination"] for message in reader.messages()].count("27820000005") == 1

    for terminal in (1, 2):
        reader.terminals[terminal].hang_up()
    reader.type(remove, terminal=3)
    assert not (home / place).exists()
