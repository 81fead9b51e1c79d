"""What pages name of this repository; of their links to each other ``make docs`` sees that they hold."""

from __future__ import annotations

import re

import pytest
from support.pages import PAGES, ROOT

PACKAGE = ROOT / "airflow_provider_sms"
MAP = (ROOT / "CONTRIBUTING.md").read_text().partition("## The map")[2].partition("## One command")[0]
ON_THE_MAP = set(re.findall(r"`([a-z_/]+(?:/|\.py))`", MAP))
OF_A_PROJECT = {"sandbox.md": "tests/test_remind_customers.py"}
"""Pages whose example is a project of its own, with its test."""


def named_tests(page):
    """Return the tests that a page names: each a path, and a function or nothing."""
    found = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", page.read_text())
    return [each for each in found if each[0] != OF_A_PROJECT.get(page.name)]


@pytest.mark.parametrize("page", [each for each in PAGES if named_tests(each)], ids=lambda page: page.name)
def test_the_tests_that_a_page_names_exist(page):
    """A rule whose test is gone or renamed is held by nothing that a reader can find."""
    for path, name in named_tests(page):
        assert (ROOT / path).exists(), path
        assert f"\ndef {name}(" in f"\n{(ROOT / path).read_text()}" if name else True, f"{path}::{name}"


def test_the_modules_that_pages_run_exist():
    """Each is a file or a folder that can be run."""
    named = {module for page in PAGES for module in re.findall(r"-m ((?:support|benchmarks)[\w.]*)", page.read_text())}
    assert named
    for module in named:
        folder = ROOT if module.startswith("benchmarks") else ROOT / "tests"
        place = folder / module.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module


def test_the_map_is_that_of_the_tree():
    """The map of the package names each folder and shared module, and no place that is gone."""
    folders = {
        f"{each.relative_to(PACKAGE)}/" for each in PACKAGE.rglob("*") if each.is_dir() and list(each.glob("*.py"))
    }
    shared = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "get_provider_info.py"}
    assert [place for place in sorted(ON_THE_MAP) if not (PACKAGE / place).exists()] == []
    assert (folders | shared) - ON_THE_MAP == set()
