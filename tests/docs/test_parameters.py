from __future__ import annotations

import inspect
import re

import pytest
from support.pages import ROOT

from airflow_provider_sms.notifications.sms import SmsNotifier
from airflow_provider_sms.operators.sms import BulkSmsOperator, GroupSmsOperator, PurgeLedgerOperator
from airflow_provider_sms.sensors.balance import BalanceSensor

TABLES = [
    (BulkSmsOperator, "operators.md", "## BulkSmsOperator", "## GroupSmsOperator"),
    (GroupSmsOperator, "operators.md", "## GroupSmsOperator", "## PurgeLedgerOperator"),
    (PurgeLedgerOperator, "operators.md", "## PurgeLedgerOperator", "## What they return"),
    (SmsNotifier, "other-classes.md", "## Notifier", "### Default text"),
    (BalanceSensor, "other-classes.md", "## Sensor", "### Credit for a table"),
]
OF_AIRFLOW = {"deferrable"}
"""Parameters whose default is a setting of Airflow."""


def documented(page, first, last):
    """Return the parameters in the tables of a page's section, their defaults, and those that it marks with (T)."""
    text = (ROOT / "docs" / page).read_text()
    section = text[text.index(f"\n{first}\n") : text.index(f"\n{last}\n")]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, re.MULTILINE)
    defaults = {name: default.strip("`") for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    return defaults, {name for names, _ in rows for name in re.findall(r"`(\w+)` \(T\)", names)}


def _is_ours(base):
    return base.__module__.startswith("airflow_provider_sms.")


def taken(operator):
    """Return the parameters of a class and of its own bases, with their defaults as code writes them."""
    inits = [vars(base)["__init__"] for base in operator.__mro__ if _is_ours(base) and "__init__" in vars(base)]
    return {
        each.name: "required" if each.default is each.empty else repr(each.default).replace("'", '"')
        for init in inits
        for each in inspect.signature(init).parameters.values()
        if each.name != "self" and each.kind is not each.VAR_KEYWORD
    }


@pytest.mark.parametrize(("operator", "page", "first", "last"), TABLES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_page_lists_every_parameter_with_its_default(operator, page, first, last):
    """The tables of a page name each parameter of the class, no other one, and its default; (T) marks templates."""
    (shown, templated), code = documented(page, first, last), taken(operator)
    if page == "operators.md":
        assert templated == set(operator.template_fields)
    for name in OF_AIRFLOW & code.keys():
        assert "default_deferrable" in shown[name]
        code[name] = shown[name]
    assert code == shown
