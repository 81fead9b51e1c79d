"""The files of ``docs/deploy`` as the engine uses them: databases, roles, settings, and the commands of ``init``."""

from __future__ import annotations

import os
import subprocess

import yaml

from support.cluster import LONGEST, _binaries
from support.pages import ROOT

DEPLOY = ROOT / "docs" / "deploy"
METADATA = "airflow"
"""Airflow's own database, and its role."""
LEDGER = "sms"
"""The ledger's database, and its role."""


def create_databases(node, **settings):
    """Run the script that makes databases and roles on an empty server.

    :param settings: user and passwords, as the Compose file gives them.
    """
    place = {"PGHOST": str(node.folder), "PGPORT": str(node.port), "PATH": f"{_binaries()}:{os.environ['PATH']}"}
    command = ["sh", DEPLOY / "create-databases.sh"]
    subprocess.run(command, env={**place, **settings}, check=True, capture_output=True, timeout=LONGEST)


def init_command():
    """Return the command of the Compose file's service ``init``."""
    init = _read("compose.yaml")["services"]["init"]
    return [*init["entrypoint"], *init["command"]]


def settings():
    """Return Airflow's settings of the files, as environment variables, but for places, folders and secrets."""
    found = {
        f"AIRFLOW__{section}__{name}".upper(): str(value)
        for section, options in _read("helm-values.yaml")["config"].items()
        for name, value in options.items()
    }
    compose = _read("compose.yaml")["x-airflow"]["environment"]
    found.update((name, value) for name, value in compose.items() if name.startswith("AIRFLOW__"))
    return {name: value for name, value in found.items() if not any(sign in value for sign in ("${", "/"))}


def _read(name):
    return yaml.safe_load((DEPLOY / name).read_text())
