from __future__ import annotations

import re

from support.faults.proof import HEAD
from support.faults.table import OF_NO_ROW, PARTS
from support.pages import ROOT


def test_each_part_of_the_proof_has_a_row():
    """The proof says of each part what is broken, and what came of it, or that it has had no full run."""
    page = (ROOT / "docs" / "proof.md").read_text()
    proof = page[: page.index("\n## Would it notice\n")]
    described, results = re.findall(r"^\| Part \|.*\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", proof, re.MULTILINE)
    assert proof.count(HEAD) == 1
    for table in (described, results):
        assert set(PARTS) - OF_NO_ROW == {row.strip("| ").split(" | ")[0] for row in table.splitlines()}
