"""The page *Deploy*: its commands, its executors, its backup."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing

import pytest
from support.checkout import PAGE, bash, block, build_wheel
from support.pages import ROOT, blocks
from support.sending import claimant, people

from airflow_provider_sms.exceptions import InputError, LedgerError
from airflow_provider_sms.get_provider_info import get_provider_info
from airflow_provider_sms.hooks.ledger import LOCAL_EXECUTORS, refuse_several_machines
from airflow_provider_sms.ledger.claims import CampaignLedger
from airflow_provider_sms.ledger.model import Chunk
from airflow_provider_sms.ledger.open import check_version
from airflow_provider_sms.ledger.schema import SCHEMA_VERSION
from airflow_provider_sms.ledger.sqlite import open_sqlite

TEXT = PAGE.read_text()
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
"""Settings of pip by which it takes what is installed, and asks no package index. The second one is read as a flag."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder with what the build needs, in which the page's first block has built the wheel."""
    folder = tmp_path_factory.mktemp("checkout")
    build_wheel(folder, **OFFLINE)
    return folder


@pytest.mark.slow
def test_the_wheel_installs_beside_airflow(checkout):
    """With the versions of this project as constraints, pip would install the package and change nothing else."""
    only_report = {"PIP_DRY_RUN": "1", "PIP_REPORT": "report.json"}
    done = bash(block("airflow version"), checkout, **OFFLINE, **only_report)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((checkout / "report.json").read_text())
    assert {each["metadata"]["name"] for each in report["install"]} <= {"airflow-provider-sms"}


def test_the_versions_of_the_page_are_tested(checkout):
    """The published file that the page names is for the Airflow of the tests, and the file for an older one exists."""
    (version,) = re.findall(r"^`https://\S+/constraints-([\d.]+)/constraints-3\.11\.txt`", TEXT, re.MULTILINE)
    assert f"apache-airflow=={version}\n" in (ROOT / "constraints.txt").read_text()
    (named, file) = re.search(r'apache-airflow==([\d.]+)".* --constraint (\S+)', block("constraints/airflow-")).groups()
    assert f"apache-airflow=={named}\n" in (ROOT / file).read_text()


def test_the_packages_that_conflict_have_bounds():
    """The page names packages of which this one needs a newer version than a file of Airflow from 2025 has."""
    (sentence,) = re.findall(r"from 2025 does: (.*?) are older", TEXT)
    bounds = (ROOT / "pyproject.toml").read_text()
    for name in re.findall(r"`([\w-]+)`", sentence):
        assert re.search(rf'"{re.escape(name)}>=', bounds), name


def test_airflow_has_the_commands_after_the_install(airflow_home):
    """Each command is one of Airflow's, with its arguments, and what they name is the package's."""
    from airflow.cli.cli_parser import get_parser

    lines = block("airflow providers get").splitlines()
    parsed = [get_parser().parse_args(shlex.split(line.partition("airflow ")[2])) for line in lines]
    assert all(each.func for each in parsed)
    assert parsed[0].provider_name == get_provider_info()["package-name"]
    assert (parsed[2].section, parsed[2].option in get_provider_info()["config"]["sms"]["options"]) == ("sms", True)
    assert parsed[3].conn_type == get_provider_info()["connection-types"][0]["connection-type"]


def executors():
    """Return the executors of the table of kinds of Airflow, with the ledger that the page gives each."""
    rows = re.findall(r"^\| [^|]+ \| (`\w+Executor`[^|]*) \| ([^|]+) \| [^|]+ \|$", TEXT, re.MULTILINE)
    return {(name, ledger.partition(" ")[0]) for names, ledger in rows for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(("executor", "ledger"), sorted(executors()))
def test_an_executor_takes_the_ledger_of_the_page(executor, ledger):
    """Executors that run tasks on one machine take a file, and all others refuse it."""
    if ledger == "file":
        assert executor in LOCAL_EXECUTORS
        refuse_several_machines(executor, {})
    else:
        assert ledger == "PostgreSQL"
        with pytest.raises(InputError, match=f"{executor} runs tasks on several machines"):
            refuse_several_machines(executor, {})


def test_each_kind_of_airflow_is_there():
    """The page speaks of six executors and services beside one machine."""
    assert {"CeleryExecutor", "KubernetesExecutor", "EdgeExecutor", "AstroExecutor", "LocalExecutor"} == {
        executor for executor, _ in executors()
    }
    for service in ("Astronomer", "Amazon MWAA", "Google Cloud Composer"):
        assert f"- **{service}**:" in TEXT


def test_the_backup_has_what_was_claimed_last(tmp_path):
    """A backup of a file that a task has open holds its claims; the file alone, copied, does not."""
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "sms_ledger.db"
    with closing(open_sqlite(path)) as store:
        ledger = CampaignLedger(store, "c", claimant())
        chunk = Chunk([person.key for person in people(3)], [person.destination for person in people(3)])
        ledger.commit(chunks=[chunk], claim_seconds=60.0)
        done = bash(block("backup("), tmp_path, AIRFLOW_HOME=str(path.parent))
        assert done.returncode == 0, done.stderr
        (tmp_path / "copy.db").write_bytes(path.read_bytes())
    assert _messages(tmp_path / "ledger-backup.db") == 3
    assert _messages(tmp_path / "copy.db") == 0
    assert (tmp_path / "ledger-backup.db").stat().st_mode & 0o777 == 0o600


def _messages(path):
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM sms_message").fetchone()[0]
        except sqlite3.DatabaseError:
            return 0


def test_an_upgrade_and_its_rollback(tmp_path):
    """The page's backup, the command that upgrades a file, and the page's restore each leave the right version."""
    older, home = SCHEMA_VERSION - 1, tmp_path / "home"
    home.mkdir()
    with closing(sqlite3.connect(home / "sms_ledger.db")) as connection:
        connection.executescript((ROOT / "tests" / "ledgers" / f"version_{older}.sql").read_text())
    upgrade = "airflow-sms ledger unknown"
    assert f"`{upgrade}`" in TEXT.partition("## Upgrade")[2].partition("## Roll back")[0]
    for code, version in ((block("backup("), older), (upgrade, SCHEMA_VERSION), (block("ledger-before"), older)):
        done = bash(code, tmp_path, AIRFLOW_HOME=str(home))
        assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(home / "sms_ledger.db")) as connection:
            assert connection.execute("SELECT version FROM sms_ledger_version").fetchone() == (version,), code


def test_an_older_package_refuses_a_newer_ledger():
    """The error of a rollback by mistake is the one on the page."""
    (shown,) = (block.code.strip() for block in blocks(PAGE, "text"))
    with pytest.raises(LedgerError) as refused:
        check_version(99)
    assert shown == str(refused.value)
    assert f"version {SCHEMA_VERSION}." in shown


def test_the_web_server_lists_the_plugin(airflow_home):
    """The entry point by which Airflow finds the pages is named as the page says."""
    from importlib.metadata import entry_points

    (entry,) = (each for each in entry_points(group="airflow.plugins") if each.dist.name == "airflow-provider-sms")
    assert entry.load().name == "sms"
    assert "lists `sms`" in TEXT
