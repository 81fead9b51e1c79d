"""Figures on the pages, in tables and in prose: each section says by which command they were measured, and when."""

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
    ("operators.md", "How values are formatted"): "how a value is written",
}
"""Page and heading of a table of numbers that are not measured → what they are."""
WITH_UNIT = re.compile(r"\d[\d.,]*\s?(?:[GMK]i?B|bytes|[mµ]?s|%)(?![\w-])")
SET_BY_SOMEBODY = {
    ("before-sending.md", "Suppression"): "the size of a number in a file of this package",
    ("ledger-command.md", "forget"): "the size of a key",
    ("operators.md", "Files"): "limits of this package and of writers of Parquet",
    ("security.md", "Not protected"): "the size of a key",
    ("security.md", "Over the network"): "a limit of this package",
    ("service.md", "Base URL and headers"): "a limit of this package",
}
"""Page and heading of prose with a number and its unit that was not measured → what it is."""


class Section(NamedTuple):
    """A heading, and the text from it to the next one."""

    page: str
    heading: str
    text: str

    @property
    def place(self):
        return (self.page, self.heading)


def sections():
    """Yield the sections of all pages, and of the text for a package index."""
    for page in [*PAGES, ROOT / "pyproject.toml"]:
        text = page.read_text()
        headings = [found.start() for found in re.finditer(r"^#+ ", _without_code(text), re.MULTILINE)]
        for begin, end in pairwise([*headings, len(text)]):
            section = text[begin:end]
            yield Section(page.name, section.partition("\n")[0].strip("# "), section)


def _without_code(text):
    """Return a page with blanks in place of its blocks of code, in which a comment would be taken for a heading."""
    return re.sub(r"^( *)```.*?^\1```$", lambda found: " " * len(found[0]), text, flags=re.MULTILINE | re.DOTALL)


def has_figures(table):
    """Return whether enough cells of a table are figures."""
    cells = [cell.strip() for row in table.splitlines() for cell in row.strip("|").split(" | ")[1:]]
    return sum(bool(NUMBER.match(cell)) for cell in cells) >= LEAST_SHARE * len(cells)


def prose(section):
    """Return what is no code and no table."""
    return re.sub(r"^\|.*$|`[^`]*`", "", _without_code(section), flags=re.MULTILINE)


TABLES = [each for each in sections() if any(map(has_figures, TABLE.findall(each.text)))]
PROSE = [each for each in sections() if WITH_UNIT.search(prose(each.text))]
MEASURED = [each for each in TABLES if each.place not in MEASURED_BY_NOBODY]
MEASURED += [each for each in PROSE if each.place not in SET_BY_SOMEBODY and each not in MEASURED]


@pytest.mark.parametrize("section", MEASURED, ids=lambda section: f"{section.page}-{section.heading}")
def test_figures_name_their_command_and_their_date(section):
    """A reader can measure them again, and knows how old they are."""
    assert COMMAND.search(section.text), WITH_UNIT.findall(prose(section.text))
    assert DATE.search(section.text)


def test_figures_in_prose_are_found():
    """Those of large tables are among them, and each exception is one and needs no date."""
    found = {section.place: section.text for section in PROSE}
    assert ("scale.md", "What it costs") in found
    assert set(SET_BY_SOMEBODY) < set(found)
    assert [place for place in SET_BY_SOMEBODY if COMMAND.search(found[place])] == []


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It took 0.75 to 1.87 s, of 3 s.", ["1.87 s", "3 s"]),
        ("25.7 µs, 535 MB, 0.4 ms", ["25.7 µs", "535 MB", "0.4 ms"]),
        ("1 MiB, 16 bytes and 80 %", ["1 MiB", "16 bytes", "80 %"]),
        ("`timeout=3 s`, 45 seconds, 3 statements, Python 3.10 and 20 so", []),
        ("| rows | 3 s |\n```text\n3 s\n```\n", []),
    ],
)
def test_a_figure_is_a_number_with_its_unit(text, figures):
    """Code and tables have none, and neither has a duration in words, which mostly is a setting."""
    assert WITH_UNIT.findall(prose(text)) == figures


def test_tables_of_figures_are_found():
    """Those of the proof, of the README and of the benchmarks are among them, and each exception is one."""
    found = {section.place for section in TABLES}
    title = "Bulk SMS from Apache Airflow, without texting anyone twice"
    assert {("README.md", title), ("pyproject.toml", title)} < found
    assert {("proof.md", "What came of it"), ("scale.md", "While people look")} < found
    assert set(MEASURED_BY_NOBODY) < found


def test_each_command_is_one():
    """The modules that pages run exist."""
    named = {module for page in PAGES for module in re.findall(r"-m ((?:support|benchmarks)[\w.]*)", page.read_text())}
    assert named
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
