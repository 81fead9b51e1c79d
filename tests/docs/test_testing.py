from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

PAGE = ROOT / "docs" / "sandbox.md"
TEXT = PAGE.read_text()
FILES = dict(re.findall(r"`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
(COMMANDS,) = (block.code for block in blocks(PAGE, "sh") if "-m pytest" in block.code)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_tests_of_the_page_pass(tmp_path):
    """A team's project with the page's DAGs, settings and tests, as they stand, passes with the page's commands."""
    assert {"dags/remind_customers.py", "pytest.ini", "tests/test_remind_customers.py"} == set(FILES)
    for name, code in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {**clean, "PATH": programs, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = ["bash", "-e", "-c", COMMANDS]
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    tests = sum(code.count("\ndef test_") for code in FILES.values())
    assert f"{tests} passed" in done.stdout, done.stdout + done.stderr


def test_the_page_has_every_name_of_the_fixture():
    """The table of the page has the public names of the fixture, and no other."""
    from airflow_provider_sms.testing.sandbox import SmsSandbox

    methods = {name for name in vars(SmsSandbox) if not name.startswith("_")}
    rows = set(re.findall(r"^\| `\.(\w+)", TEXT, re.MULTILINE))
    assert methods | {"service", "ledger_path"} == rows
