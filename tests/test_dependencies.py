from __future__ import annotations

import ast
import re
import sys
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "airflow_provider_sms"
INSTALLED = packages_distributions()
# Python 3.10 has none; what is declared is the same there.
tomllib = pytest.importorskip("tomllib")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = {"testing": ("testing/",), "postgres": ("hooks/ledger.py", "ledger/postgres")}
"""Paths below the package that may import what an extra declares, by extra."""
OF_AIRFLOW = {
    "hooks/sql_source.py": {"apache-airflow-providers-common-sql"},
    "execution/waits.py": {"apache-airflow-providers-standard"},
}
"""What Airflow brings along wherever a module imports it, by module."""


def canonical(name):
    """Return the name of a distribution, without extras and versions, as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()


def imported(path, *, types=False):
    """Yield what a file imports, wherever the import stands: a module, and the names of it, if any.

    :param types: whether those count that only types need.
    """
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, [alias.name for alias in node.names]


def distributions(module):
    """Return the distributions of which one has a module; none for the standard library and this package."""
    top, *rest = module.split(".")
    if top in sys.stdlib_module_names or top == "airflow_provider_sms":
        return set()
    if module.startswith("airflow.providers."):
        return {"apache-airflow-providers-" + ("common-" + rest[2] if rest[1] == "common" else rest[1])}
    if top == "airflow":
        return {"apache-airflow"}
    # Several distributions may fill one namespace package.
    return {canonical(each) for each in INSTALLED.get(top, [top])}


def test_each_import_is_declared():
    """What the package imports is installed with it, or with the extra that the importing module belongs to."""
    undeclared = {}
    for path in PACKAGE.rglob("*.py"):
        name = str(path.relative_to(PACKAGE))
        declared = {canonical(each) for each in PROJECT["dependencies"]} | OF_AIRFLOW.get(name, set())
        for extra, paths in OPTIONAL.items():
            if name.startswith(paths):
                declared |= {canonical(each) for each in EXTRAS[extra]}
        needed = {module: distributions(module) for module, _ in imported(path)}
        undeclared |= {(name, module): found for module, found in needed.items() if found and not found & declared}
    assert undeclared == {}
    assert distributions("yaml.reader") == {"pyyaml"}


def test_no_module_is_imported_by_what_it_imports():
    """Imports within functions and those for types alone count, too: each module can be read after those it names."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert len(modules) > 100
    graph = {}
    for name, path in modules.items():
        # What is imported from a package may be a module of it.
        found = [
            [f"{module}.{each}" for each in names if f"{module}.{each}" in modules] or [module]
            for module, names in imported(path, types=True)
        ]
        graph[name] = {each for some in found for each in some if each in modules}
    # Raises an error that names the modules of a cycle; import-linter stops at packages.
    TopologicalSorter(graph).prepare()
