from __future__ import annotations

import ast
import re
import shlex
from functools import cache

import pytest
from support.pages import ROOT

PAGE = ROOT / "docs" / "what-to-do.md"
ANY = "\0"
"""In place of a value that an error holds."""
OF_AIRFLOW = "Process terminated by signal"
"""What Airflow says of a task that was killed."""
NAMES = {"CAMPAIGN": "spring", "FILE": "outcomes.json", "DAG_ID": "d", "TASK_ID": "t", "RUN_ID": "r"}


def rows():
    """Return the rows of the page's tables: what is seen, why, and what to do."""
    (_, told) = PAGE.read_text().split("\n## Words of errors\n")
    lines = [line for line in told.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in found if row[0] != "You see"]


@cache
def words():
    """Return the texts of the package, but for docstrings, each whole and with a sign in place of its values."""
    found = []
    for path in sorted((ROOT / "airflow_provider_sms").rglob("*.py")):
        tree = ast.parse(path.read_text())
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else ANY for part in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                found.append(re.sub(r"%(?:\.\d)?[sdfr]", ANY, node.value))
    return found


def commands():
    """Return the commands of ours and of Airflow that the page says to run."""
    return sorted({each for row in rows() for each in re.findall(r"`((?:airflow|airflow-sms) [^`]+)`", row[2])})


def test_the_most_likely_symptoms_are_there():
    """The page has at least twenty symptoms, and none twice with the same cause."""
    assert len(rows()) >= 20
    assert len({(row[0], row[1]) for row in rows()}) == len(rows())
    assert {len(row) for row in rows()} == {3}


@pytest.mark.parametrize("row", [row for row in rows() if OF_AIRFLOW not in row[0]], ids=lambda row: row[0][:50])
def test_the_package_says_the_words(row):
    """The first words in code of each symptom stand in one text of the package, but for those that Airflow says."""
    (phrase, *_) = re.findall(r"`([^`]+)`", row[0])
    pattern = ANY.join(map(re.escape, phrase.split("…")))
    assert any(re.search(pattern, text) for text in words()), phrase


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_each_symptom_has_something_to_do(row):
    """It has a command, an argument, or a page that says more."""
    assert re.search(r"`[^`]+`|\]\(", row[2])


@pytest.mark.parametrize("command", [each for each in commands() if each.startswith("airflow-sms ")])
def test_our_commands_are_ours(command):
    """The package has each command, with its arguments."""
    from airflow_provider_sms.cli.main import _parser

    _, *arguments = shlex.split(command)
    assert _parser().parse_args([NAMES.get(each, each) for each in arguments]).func


@pytest.mark.parametrize("command", [each for each in commands() if each.startswith("airflow ")])
def test_airflows_commands_are_airflows(command, airflow_home):
    """Airflow has each command, with its arguments."""
    from airflow.cli.cli_parser import get_parser

    _, *arguments = shlex.split(command)
    assert get_parser().parse_args(arguments).func
