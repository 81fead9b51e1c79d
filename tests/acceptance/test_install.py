"""The install of the page *Deploy* into the environment of an Airflow that was there before."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest
from support.checkout import PAGE, bash, block, build_wheel
from support.pages import ROOT

FIRST, INSTALL = block("airflow version"), block("constraints/airflow-")
((VERSION, CONSTRAINTS),) = re.findall(r'"apache-airflow==([\d.]+)".* --constraint (\S+)', INSTALL)
ADDRESS, TOKEN = "https://rest.example.com/v1", "THE-TOKEN"
FREE = re.compile(r"(apache-airflow-|starlette=)")
"""Packages whose versions follow from the others."""


def too_old():
    """Return the packages that the page calls too old, each with the version that it has to be older than."""
    (sentence,) = re.findall(r"Files of 2025 do: (.*?) are older", PAGE.read_text(), re.DOTALL)
    bounds = (ROOT / "pyproject.toml").read_text()
    names = re.findall(r"`([\w-]+)`", sentence)
    return {name: re.search(rf'"{re.escape(name)}>=([\d.]+)"', bounds).group(1) for name in names}


@pytest.fixture
def older_airflow(tmp_path, monkeypatch):
    """Return the folder of commands of a new environment: the page's older Airflow, with packages that are too old."""
    # Compiled when they are first needed, the packages are installed in half the time.
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "older"], check=True)
    commands = tmp_path / "older" / "bin"
    build_wheel(tmp_path)
    pins = (tmp_path / CONSTRAINTS).read_text().splitlines(keepends=True)
    kept = [pin for pin in pins if not FREE.match(pin) and pin.partition("==")[0] not in too_old()]
    (tmp_path / "older.txt").write_text("".join(kept))
    wanted = [f"apache-airflow=={VERSION}", *(f"{name}<{bound}" for name, bound in too_old().items())]
    done = bash(f"python -m pip install --quiet {shlex.join(wanted)} --constraint older.txt", tmp_path, commands)
    assert done.returncode == 0, done.stderr
    return commands


def versions(commands, folder):
    """Return the version of each package of an environment, by name."""
    listed = json.loads(bash("python -m pip list --format json", folder, commands).stdout)
    return {each["name"]: each["version"] for each in listed}


def test_the_package_installs_into_an_airflow_of_last_year(older_airflow, tmp_path, sandbox):
    """As on the page: pip finds a conflict with Airflow's file, and none with the project's; the commands work."""
    before = versions(older_airflow, tmp_path)
    (tmp_path / "constraints.txt").write_text("".join(f"{name}=={each}\n" for name, each in before.items()))
    refused = bash(FIRST, tmp_path, older_airflow)
    assert (refused.returncode, versions(older_airflow, tmp_path)) == (1, before)
    assert "ResolutionImpossible" in refused.stderr
    done = bash(INSTALL, tmp_path, older_airflow)
    assert done.returncode == 0, done.stderr
    after = versions(older_airflow, tmp_path)
    assert (before["apache-airflow"], after["apache-airflow"]) == (VERSION, VERSION)
    assert "airflow-provider-sms" in after.keys() - before.keys()
    assert {name for name in too_old() if before[name] == after[name]} == set()
    checked = bash("python -m pip check", tmp_path, older_airflow)
    assert checked.returncode == 0, checked.stdout

    commands = block("airflow providers get").replace(ADDRESS, sandbox.base_url).replace(TOKEN, "sandbox-token")
    home = {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    said = bash(f"airflow db migrate >migrated.txt 2>&1\n{commands}", tmp_path, older_airflow, **home)
    assert said.returncode == 0, said.stderr
    for line in (r"^airflow-provider-sms +\|", r"^sms +\|", r"^0$", r"Connection success!"):
        assert re.search(line, said.stdout, re.MULTILINE), said.stdout
