from __future__ import annotations

import re
import shlex

import pytest
from support.pages import PAGES, ROOT, blocks
from support.versions import AIRFLOW

from airflow_provider_sms.cli.main import _parser
from airflow_provider_sms.get_provider_info import get_provider_info

NAMES = {"CAMPAIGN": "spring", "FILE": "outcomes.json", "DAG_ID": "d", "TASK_ID": "t", "RUN_ID": "r"}
"""Words that stand for a name of the reader's."""


def _called(pattern):
    """Return the commands that pages show in shell blocks, or tell to run in tables, each once."""
    shown = "\n".join(block.code for page in PAGES for block in blocks(page) if block.language in ("sh", "text"))
    lines = re.findall(rf"^(?:\$ )?({pattern} [^|#\n]+)", shown.replace("\\\n", ""), re.MULTILINE)
    rows = re.findall(r"^\| .*$", (ROOT / "docs" / "failures.md").read_text(), re.MULTILINE)
    return sorted(
        {each.strip() for each in lines} | {each for row in rows for each in re.findall(rf"`({pattern} [^`]+)`", row)}
    )


OURS, AIRFLOWS = _called("airflow-sms"), _called("airflow")


@pytest.mark.parametrize("command", OURS)
def test_our_commands_are_ours(command):
    """The package has each command, with its arguments."""
    _, *arguments = shlex.split(command)
    assert _parser().parse_args([NAMES.get(each, each) for each in arguments]).func


@pytest.mark.parametrize("command", [each for each in AIRFLOWS if AIRFLOW >= (3, 3) or "dags clear" not in each])
def test_airflows_commands_are_airflows(command, airflow_home):
    """Airflow has each command, with its arguments, and what of this package they name is there."""
    from airflow.cli.cli_parser import get_parser

    _, *arguments = shlex.split(command)
    parsed, info = vars(get_parser().parse_args(arguments)), get_provider_info()
    assert parsed["func"]
    assert parsed.get("provider_name") in (None, info["package-name"])
    assert parsed.get("conn_type") in (None, info["connection-types"][0]["connection-type"])
    if section := parsed.get("section"):
        assert parsed.get("option") in {None, *info["config"][section]["options"]}
