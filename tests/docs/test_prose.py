"""Phrases that no text for users has: in documentation, docstrings, errors, pages, help and examples."""

from __future__ import annotations

import re

import pytest
from support.pages import ROOT

FOLDERS = ("airflow_provider_sms", "dags", "docs")
SUFFIXES = (".py", ".md", ".html", ".js")
TEXTS = [
    *(path for path in ROOT.glob("*.md")),
    *(path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.suffix in SUFFIXES),
]
PHRASES = re.compile(
    r"\b(?:(?:is|are) to be|had best|(?:come|comes|came) to|by (?:itself|themselves)|mend(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)


def test_there_are_texts():
    """The texts are found from here."""
    assert {"README.md", "index.md", "sender.py", "campaign.html"} <= {path.name for path in TEXTS}


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_a_text_is_written_plainly(folder):
    """A native writer would put each of these phrases in another way."""
    of_folder = [path for path in TEXTS if path.relative_to(ROOT).parts[:-1][:1] == tuple(filter(None, [folder]))]
    found = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in of_folder
        if "_build" not in path.parts
        for match in PHRASES.finditer(path.read_text())
    }
    assert (found, of_folder != []) == (set(), True)
