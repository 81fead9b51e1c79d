"""What import-linter cannot hold: it stops at packages, and this looks at every import of every module."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "airflow_provider_sms"


def imports():
    """Return the modules of the package, each with the ones that it imports, wherever in it the import stands."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    found = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                # What is imported from a package may be a module of it.
                of_package = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [each for each in of_package if each in modules] or [node.module]
            else:
                continue
            found[name].update(each for each in named if each in modules)
    return found


def test_no_module_is_imported_by_what_it_imports():
    """Imports within functions and those for types alone count, too: each module can be read after those it names."""
    graph = imports()
    assert len(graph) > 100
    # Raises an error that names the modules of a cycle.
    TopologicalSorter(graph).prepare()
