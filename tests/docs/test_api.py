from __future__ import annotations

import importlib
import inspect
import re

import pytest
from support.pages import PAGES, ROOT
from support.reference import page as generated

from airflow_provider_sms import exceptions
from airflow_provider_sms.get_provider_info import get_provider_info

PACKAGE = "airflow_provider_sms"
BESIDE_AIRFLOW = [
    f"{PACKAGE}.messages.message",
    f"{PACKAGE}.service.responses",
    f"{PACKAGE}.sandbox.config",
    f"{PACKAGE}.testing.sandbox",
    exceptions.__name__,
]
"""Modules whose classes a user meets, and which Airflow is told nothing of."""


def _named():
    """Give what Airflow is told that a DAG may import: paths of modules, classes and decorators."""
    info = get_provider_info()
    for kind in ("hooks", "operators", "sensors", "triggers"):
        for entry in info.get(kind, []):
            yield from entry["python-modules"]
    yield from info.get("notifications", [])
    yield from (entry["class-name"] for entry in info.get("task-decorators", []))


def _public():
    """Give what a user may import, by its path: the classes of those modules, and what is named by itself."""
    for path in [*_named(), *BESIDE_AIRFLOW]:
        module_path, _, name = path.rpartition(".")
        parent = importlib.import_module(module_path)
        if hasattr(parent, name) and not inspect.ismodule(getattr(parent, name)):
            yield path, getattr(parent, name)
            continue
        module = importlib.import_module(path)
        exported = getattr(module, "__all__", None)
        for name, thing in inspect.getmembers(module, inspect.isclass):
            if name in exported if exported else thing.__module__ == path and not name.startswith("_"):
                yield f"{path}.{name}", thing


PUBLIC = dict(_public())
CLASSES = {path: thing for path, thing in PUBLIC.items() if inspect.isclass(thing)}


def test_what_is_public_is_found():
    """The operators and the others are among what the next tests look at."""
    assert {"BulkSmsOperator", "GroupSmsOperator", "BalanceSensor", "BalanceTrigger", "SmsHook", "InputError"} <= {
        path.rpartition(".")[2] for path in CLASSES
    }


@pytest.mark.parametrize("path", [path for path, each in CLASSES.items() if "__init__" in vars(each)])
def test_every_parameter_is_documented(path):
    """A public class has ``:param:`` for each parameter, those that its own bases take as well, and for no other."""
    ours = [base.__init__ for base in CLASSES[path].__mro__ if base.__module__.startswith(PACKAGE)]
    taken = {
        parameter.name
        for init in ours
        for parameter in inspect.signature(init).parameters.values()
        if parameter.name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    assert taken == set(re.findall(r":param (\w+):", CLASSES[path].__doc__))


IMPORTS = re.compile(rf"^ *from ({PACKAGE}\S*) import (.+)$", re.MULTILINE)


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("dags/*.py"))], ids=lambda page: page.name)
def test_pages_and_examples_import_what_is_public(page):
    """By the paths of the reference, such as ``SendWindow`` from the module of the operators."""
    reference = generated("api")
    found = IMPORTS.findall(page.read_text())
    named = [f"{module}.{name.strip()}" for module, names in found for name in names.split(",")]
    assert [path for path in named if path not in PUBLIC and path not in reference] == []


@pytest.mark.parametrize("path", PUBLIC)
def test_the_reference_has_everything_public(path):
    """What may be imported stands on the page of the reference, by itself or with its module."""
    page = generated("api")
    module, _, name = path.rpartition(".")
    lists = re.findall(rf"automodule:: {re.escape(module)}\n   :members:(.*)$", page, re.MULTILINE)
    assert path in page or any(not listed.strip() or name in listed.replace(",", " ").split() for listed in lists)
