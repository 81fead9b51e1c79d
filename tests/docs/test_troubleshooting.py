from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from support.pages import ROOT

PAGE = ROOT / "docs" / "what-to-do.md"
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


@pytest.mark.parametrize("row", [row for row in rows() if OF_AIRFLOW not in row[0]], ids=lambda row: row[0][:50])
def test_the_package_says_the_words(row):
    """The first words in code of each symptom stand in one text of the package, but for those that Airflow says."""
    (phrase, *_) = re.findall(r"`([^`]+)`", row[0])
    pattern = ANY.join(map(re.escape, phrase.split("…")))
    assert any(re.search(pattern, text) for text in words()), phrase
