"""Figures on the pages: each table of them says by which command they were measured, and when."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import pytest
from support.faults.proof import HEAD
from support.faults.table import OF_NO_ROW, PARTS
from support.pages import PAGES, ROOT

COMMAND = re.compile(r"make (?:bench|faults|several-machines)\b|-m (?:benchmarks|support\.[\w.]+)|pytest tests/\S+")
DATE = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")
NUMBER = re.compile(r"[≈~<]? ?\d")
TABLE = re.compile(r"^\|.*\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", re.MULTILINE)
"""A table, without its head."""
LEAST_SHARE = 0.5
"""Share of a table's cells, without the first of each row, that begin with a number: such a table is one of figures."""
MEASURED_BY_NOBODY = {
    ("costs.md", "An example"): "a sum worked out, which tests/docs/test_costs.py compares with a plan",
    ("costs.md", "SMS parts"): "the standard's sizes of a part",
    ("unknown.md", "Ask"): "what a person is shown",
    ("postgresql.md", "A silent server"): "bounds that the code sets",
    ("operators.md", "Numbers"): "how a number is read",
    ("operators.md", "How values are formatted"): "how a value is written",
    (
        "several-machines.md",
        "Sizing",
    ): "sums of figures of scale.md, which tests/docs/test_several_machines.py compares",
    ("scale.md", "Choose concurrency and rate"): "sums by the formula above it",
}
"""Page and heading of a table of numbers that are not measured → what they are."""


class Figures(NamedTuple):
    """A table of figures.

    :param section: text from the heading above it to the next one.
    """

    page: str
    heading: str
    section: str


def tables():
    """Yield the tables of figures on all pages."""
    for page in PAGES:
        text = page.read_text()
        headings = [found.start() for found in re.finditer(r"^#+ ", _without_code(text), re.MULTILINE)]
        for begin, end in pairwise([*headings, len(text)]):
            section = text[begin:end]
            for table in TABLE.findall(section):
                cells = [cell.strip() for row in table.splitlines() for cell in row.strip("|").split(" | ")[1:]]
                if sum(bool(NUMBER.match(cell)) for cell in cells) >= LEAST_SHARE * len(cells):
                    yield Figures(page.name, section.partition("\n")[0].strip("# "), section)


def _without_code(text):
    """Return a page with blanks in place of its blocks of code, in which a comment would be taken for a heading."""
    return re.sub(r"^```.*?^```$", lambda found: " " * len(found[0]), text, flags=re.MULTILINE | re.DOTALL)


TABLES = list(tables())


@pytest.mark.parametrize("figures", TABLES, ids=lambda figures: f"{figures.page}-{figures.heading}")
def test_a_table_of_figures_names_its_command_and_its_date(figures):
    """A reader can measure them again, and knows how old they are."""
    if (figures.page, figures.heading) in MEASURED_BY_NOBODY:
        return
    assert COMMAND.search(figures.section)
    assert DATE.search(figures.section)


def test_tables_of_figures_are_found():
    """Those of the proof, of the README and of the benchmarks are among them, and each exception is one."""
    found = {(figures.page, figures.heading) for figures in TABLES}
    assert {("README.md", "Bulk SMS from Apache Airflow, without texting anyone twice")} < found
    assert {("proof.md", "What came of it"), ("scale.md", "Against the goals")} < found
    assert set(MEASURED_BY_NOBODY) < found


def test_each_command_is_one():
    """The modules that pages run exist."""
    named = {module for page in PAGES for module in re.findall(r"-m ((?:support|benchmarks)[\w.]*)", page.read_text())}
    assert len(named) > 4
    for module in named:
        folder = ROOT if module.startswith("benchmarks") else ROOT / "tests"
        place = folder / module.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_each_part_of_the_proof_has_a_row():
    """The proof says of each part what is broken, and what came of it, or that it has had no full run."""
    page = (ROOT / "docs" / "proof.md").read_text()
    proof = page[: page.index("\n## Would it notice\n")]
    described, results = re.findall(r"^\| Part \|.*\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", proof, re.MULTILINE)
    assert proof.count(HEAD) == 1
    for table in (described, results):
        assert set(PARTS) - OF_NO_ROW == {row.strip("| ").split(" | ")[0] for row in table.splitlines()}
