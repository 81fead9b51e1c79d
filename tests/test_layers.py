"""What import-linter cannot hold: it stops at packages, and this looks at every import of every module."""

from __future__ import annotations

import ast
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


def cycles(graph):
    """Return the strongly connected parts of a graph (Tarjan), and the nodes that lead to themselves."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1 or node in graph[node]:
                found.append(sorted(part))

    for node in graph:
        if node not in order:
            visit(node)
    return sorted(found)


def test_cycles_are_found():
    """Of two modules, of several with a way in and a way out, and of a module with itself."""
    graph = {"in": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a", "out"}, "out": set(), "x": {"y"}, "y": {"x"}, "z": {"z"}}
    assert cycles(graph) == [["a", "b", "c"], ["x", "y"], ["z"]]


def test_no_module_is_imported_by_what_it_imports():
    """Imports within functions and those for types alone count, too: each module can be read after those it names."""
    graph = imports()
    assert len(graph) > 100
    assert cycles(graph) == []
