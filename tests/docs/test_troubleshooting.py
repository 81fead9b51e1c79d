from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from support.pages import ROOT

from airflow_provider_sms.sending import outcomes

PAGE = ROOT / "docs" / "failures.md"
ANY = "\0"
"""In place of a value that an error holds."""
OF_AIRFLOW = "Process terminated by signal"
"""What Airflow says of a task that was killed."""


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


def to_alert_on():
    """Return the words of the table of alerts on the page *Deploy*."""
    (_, told) = (ROOT / "docs" / "deploy.md").read_text().split("Alert on these words", 1)
    table = re.search(r"^\|.*\n\|[-:| ]+\|\n((?:\|.*\n)+)", told, re.MULTILINE)[1]
    return [words for line in table.splitlines() for words in re.findall(r"`([^`]+)`", line.strip("|").split(" | ")[0])]


SYMPTOMS = [re.findall(r"`([^`]+)`", row[0])[0] for row in rows() if OF_AIRFLOW not in row[0]]


@pytest.mark.parametrize("phrase", [*SYMPTOMS, *to_alert_on()], ids=lambda phrase: phrase[:50])
def test_the_package_says_the_words(phrase):
    """The first words in code of each symptom, and each to alert on, stand in one text of the package."""
    pattern = ANY.join(map(re.escape, phrase.split("…")))
    assert any(re.search(pattern, text) for text in words()), phrase


def test_the_page_shows_the_table_of_the_code():
    """What each end of a request means is written where it is decided, and the page repeats it word for word."""
    shown = PAGE.read_text().split("## What becomes of a request\n")[1].split("\n## ")[0]
    tables = [[line for line in text.splitlines() if line.startswith("|")] for text in (shown, outcomes.__doc__)]
    assert tables[0] == tables[1]
    assert len(tables[0]) > 10
