from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "delivery-guarantees.md"
ROW = re.compile(r"^\| (?P<assumption>.+?) \| (?P<wrong>.+?) \| (?P<test>.+) \|$")
HEADS = ("---", "We assume")


def rows():
    """Return the rows of the tables that name tests."""
    found = []
    (_, told) = PAGE.read_text().split("\n## What we assume of others\n")
    for line in told.splitlines():
        row = ROW.match(line)
        if row and not row["assumption"].startswith(HEADS):
            found.append(row)
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["assumption"][:40])
def test_an_assumption_names_its_test_or_that_there_is_none(row):
    """Each row names tests that exist, or says that there is none."""
    tests = re.findall(r"`(tests/[\w/.]+)`", row["test"])
    assert tests or re.search(r"(?i)not tested|part \*|every test", row["test"])
    assert [path for path in tests if not (ROOT / path).exists()] == []
