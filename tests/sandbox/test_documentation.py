from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import orjson
import pytest

from airflow_provider_sms.sandbox.__main__ import _parser
from airflow_provider_sms.sandbox.faults import Fault, FaultKind

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()


def test_every_fault_is_explained(client):
    """The table of faults has every kind, in a form that the sandbox accepts; so it does the list of the example."""
    faults = [Fault(**orjson.loads(text)) for text in re.findall(r"^\| `(\{.*?\})` \|", PAGE, re.MULTILINE)]
    assert {fault.kind for fault in faults} == set(get_args(FaultKind))
    (body,) = re.findall(r"_sandbox/faults -d '(.*)'$", PAGE, re.MULTILINE)
    assert len(client.control("POST", "/faults", data=body).json()["faults"]) == 3


def test_every_option_is_explained():
    """The table of options has every option of the command, and no other; the first command of the page has some."""
    options = {option for action in _parser()._actions for option in action.option_strings} - {"-h", "--help"}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) == options
    (line,) = re.findall(r"^python -m airflow_provider_sms\.sandbox (.*)$", PAGE, re.MULTILINE)
    assert _parser().parse_args(shlex.split(line)).token == "my-token"


@pytest.mark.parametrize(("method", "path"), re.findall(r"\| `([A-Z]+) /_sandbox(\S+?)[`]", PAGE))
def test_every_control_path_exists(client, method, path):
    """Each control path of the table exists, and accepts the body in the table."""
    (body,) = re.findall(rf"`{method} /_sandbox{re.escape(path)}` with `(\{{.*?\}})`", PAGE) or ["[]"]
    assert client.control(method, path, data=body).status_code == 200


def test_the_price_of_a_part_is_as_told(client):
    """The networks and prices on the page are those that the sandbox charges."""
    told = {name: float(price) for price, name in re.findall(r"([\d.]+) on\s+`(\w+)`", PAGE)}
    numbers = ("27821234567", "27601234567", "27711234567", "447700900123")
    breakdown = client.bulk(*((number, "Hello") for number in numbers)).json()["CostBreakDown"]
    assert {line["Network"]: line["Cost"] for line in breakdown} == told
