from __future__ import annotations

import re

import pytest
from support.pages import PAGES, ROOT, blocks

tomllib = pytest.importorskip("tomllib")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = PROJECT["name"]
DEPLOYED = [path for path in (ROOT / "docs" / "deploy").iterdir() if path.is_file()]
CLAIMS = re.compile(r"pypi|shields\.io|badge|(?:github|gitlab)\.(?:com|io)/\S*sms|readthedocs", re.IGNORECASE)
"""Words of a release or of an address of the project, as long as it has neither."""


@pytest.mark.parametrize("page", [*PAGES, *DEPLOYED, ROOT / "pyproject.toml"], ids=lambda page: page.name)
def test_no_name_and_no_address_of_the_project_is_claimed(page):
    """An install line names a checkout or a wheel; the name in an index could be somebody else's by now."""
    text = page.read_text()
    assert re.findall(rf"pip install[^\n`]*\b{NAME}\b.*", text) == []
    assert page in DEPLOYED or CLAIMS.findall(text) == []


def test_each_extra_that_a_page_installs_exists():
    """An install line such as ``pip install '.[postgres]'`` names extras of this package."""
    wanted = [
        extra
        for page in PAGES
        for extras in re.findall(r"pip install[^\n`]*'\.\[([\w,]+)\]'", page.read_text())
        for extra in extras.split(",")
    ]
    assert {"postgres"} <= set(wanted) <= set(PROJECT["optional-dependencies"])


def test_errors_name_extras_and_no_index():
    """What the code says to install is this package, however it was installed, with an extra that it has."""
    code = "".join(path.read_text() for path in sorted((ROOT / "airflow_provider_sms").rglob("*.py")))
    named = re.findall(r"install this package with its extra '([^']+)'", code)
    assert "pip install" not in code
    assert {"postgres"} == set(named) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_install_lines_name_files_of_the_checkout(page):
    """The constraints exist."""
    commands = "\n".join(block.code for block in blocks(ROOT / page, "sh"))
    (constraints,) = re.findall(r"^pip install -c (\S+) \.$", commands, re.MULTILINE)
    assert (ROOT / constraints).is_file()
