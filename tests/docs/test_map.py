from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_sms"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MAP = CONTRIBUTING[CONTRIBUTING.index("## The map") : CONTRIBUTING.index("### Words")]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PLACES = re.findall(r"`([a-z_/]+(?:/|\.py))`", MAP)
FOLDERS = sorted(
    str(folder.relative_to(PACKAGE)) for folder in PACKAGE.rglob("*") if folder.is_dir() and list(folder.glob("*.py"))
)


def test_contributing_begins_with_the_map():
    """A newcomer sees where things are before anything else."""
    assert CONTRIBUTING.startswith("# Contributing\n\n## The map\n")


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_each_place_on_the_map_exists(place):
    """The map names no file and no folder that is gone."""
    assert (PACKAGE / place).exists()


def test_each_folder_and_shared_module_is_on_the_map():
    """What is in the tree is on the map."""
    assert [folder for folder in FOLDERS if f"{folder}/" not in PLACES] == []
    shared = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "get_provider_info.py"}
    assert shared - set(PLACES) == set()


def test_the_map_has_the_order_of_the_import_contract():
    """The folders stand in the order in which imports run."""
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" | ") for layer in contracts[0]["layers"]]
    names = [name.removeprefix("airflow_provider_sms.") for layer in layers for name in layer]
    rooms = [place.rstrip("/").removesuffix(".py") for place in PLACES]
    assert [rooms.index(name) for name in names] == sorted(rooms.index(name) for name in names)


def test_each_layer_is_in_the_diagram():
    """The diagram of layers shows each folder, too."""
    diagram = ARCHITECTURE[ARCHITECTURE.index("## Layers") : ARCHITECTURE.index("## Two kinds of ledger")]
    assert [
        f for f in FOLDERS if f not in {"sandbox", "recipients/numbers"} and not re.search(rf"\b{f}\b", diagram)
    ] == []


def test_each_command_of_the_fault_suite_has_one_row():
    """A command with two rows would be described in two ways; one that is no module would not run."""
    commands = re.findall(r"^\| `support\.faults\.?(\w*)", CONTRIBUTING, re.MULTILINE)
    assert len(commands) == len(set(commands)) > 5
    suite = ROOT / "tests" / "support" / "faults"
    assert [each for each in commands if not (suite / f"{each or '__main__'}.py").exists()] == []
