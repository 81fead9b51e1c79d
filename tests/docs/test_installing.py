from __future__ import annotations

import re

import pytest
from support.pages import PAGES, ROOT, blocks

tomllib = pytest.importorskip("tomllib")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_name_in_an_index_is_installed(page):
    """An install line names a checkout or a wheel; the name in an index could be somebody else's by now."""
    assert re.findall(rf"pip install[^\n`]*\b{PROJECT['name']}\b.*", page.read_text()) == []


def test_what_is_installed_exists():
    """The extras that pages and errors of the package name, and the constraints of the first pages."""
    pages = [extra for page in PAGES for extra in re.findall(r"pip install[^\n`]*'\.\[([\w,]+)\]'", page.read_text())]
    code = "".join(path.read_text() for path in sorted((ROOT / "airflow_provider_sms").rglob("*.py")))
    errors = re.findall(r"install this package with its extra '([^']+)'", code)
    assert "pip install" not in code
    for named in (",".join(pages).split(","), errors):
        assert {"postgres"} <= set(named) <= set(PROJECT["optional-dependencies"])
    for page in ("README.md", "docs/quickstart.md"):
        commands = "\n".join(block.code for block in blocks(ROOT / page, "sh"))
        (constraints,) = re.findall(r"^pip install -c (\S+) \.$", commands, re.MULTILINE)
        assert (ROOT / constraints).is_file()
